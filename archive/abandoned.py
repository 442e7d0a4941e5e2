"""Staging that was left behind: attempts that died, removed once they are old."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from archive.canary import PREFIX as CANARY
from archive.catalog import read_catalog, unpublished
from archive.layout import parse_part, staging_dir
from archive.objects import Store, StoredObject

KEEP = timedelta(days=7)

Season = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Staged:
    """The staged parts of one attempt. ``modified`` is when the newest of them was written."""

    board: str
    season: str
    attempt: str
    parts: tuple[StoredObject, ...]

    @property
    def modified(self) -> datetime:
        return max(part.modified for part in self.parts)

    @property
    def size(self) -> int:
        """The bytes of all parts."""
        return sum(part.size for part in self.parts)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of an attempt's staged parts, and why; the same in dry run and real run."""

    staged: Staged
    removed: bool
    reason: str


def verdicts(store: Store, older_than: timedelta, now: datetime, *, unsealed: bool = False) -> list[Verdict]:
    """Return a verdict on every attempt that has staged parts, by path.

    Removed is an attempt whose newest part is at least ``older_than`` old. Kept, however old, is the attempt that a
    seal names until its parts are all in their place (they may be the only copy), and the newest of a season that is
    not sealed, for a hold may wait for it, unless ``unsealed`` gives it up too. What is not named as a staged part
    belongs to no attempt. Raises ArchiveMismatchError if a seal cannot be read, for it might name an attempt.
    """
    attempts: dict[tuple[str, str, str], list[StoredObject]] = defaultdict(list)
    for stored in store.list("staging"):
        if (place := parse_part(stored.path)) and place.attempt:
            attempts[place.board, place.season, place.attempt].append(stored)
    if not attempts:
        return []
    found = [Staged(*names, tuple(parts)) for names, parts in sorted(attempts.items())]
    needed, sealed = _sealed(store)
    newest = {} if unsealed else _newest(one for one in found if (one.board, one.season) not in sealed)

    def verdict(staged: Staged) -> Verdict:
        season = (staged.board, staged.season)
        if now - staged.modified < older_than:
            return Verdict(staged, False, "too young")
        if staging_dir(staged.board, staged.season, staged.attempt) in needed:
            return Verdict(staged, False, "sealed, but not yet all in its place")
        if newest.get(season) == staged.attempt:
            return Verdict(staged, False, "the newest of a season that is not sealed: a hold may wait for it")
        return Verdict(staged, True, "the season is sealed" if season in sealed else "abandoned")

    return [verdict(staged) for staged in found]


def sweep_abandoned(store: Store, older_than: timedelta, now: datetime, *, unsealed: bool = False) -> list[Verdict]:
    """Remove what ``verdicts`` says may go and return them all; safe to repeat.

    Nothing but staged parts is ever removed; folders that this leaves empty go with them.
    """
    found = verdicts(store, older_than, now, unsealed=unsealed)
    for verdict in found:
        if verdict.removed:
            for part in verdict.staged.parts:
                store.delete(part.path)
    return found


def _sealed(store: Store) -> tuple[set[str], set[Season]]:
    """Return the staging folders whose parts may be the only copy, and the seasons whose standings are sealed."""
    catalog = read_catalog(store)
    catalog.check()
    missing = unpublished(store, catalog.seals)
    needed = {one.seal.staging for one in catalog.seals if one.seal.path in missing}
    standings = (one.seal for one in catalog.seals if one.seal.kind == "standings")
    return needed, {(seal.board_name, seal.bounds.id) for seal in standings}


def _newest(staged: Iterable[Staged]) -> Mapping[Season, str]:
    ordered = sorted((one for one in staged if not one.attempt.startswith(CANARY)), key=lambda one: one.modified)
    return {(one.board, one.season): one.attempt for one in ordered}
