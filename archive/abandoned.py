"""What dead attempts left behind in staging and among the facts, removed once it is old."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from archive.canary import PREFIX as CANARY
from archive.catalog import Sealed, read_catalog, unpublished
from archive.layout import facts_dir, parse_facts, parse_part, staging_dir
from archive.objects import Store, StoredObject
from archive.seal import StandingFacts

KEEP = timedelta(days=7)
_UNSEALED = "the newest of a season that is not sealed: a hold may wait for it"
_NEWER = "the season has an attempt since its last seal: a seal may be committed that needs it"

Season = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Left:
    """What an attempt left: its staged parts, or one file of ``facts``, which has no attempt's name.

    ``modified`` is when the newest of its objects was written.
    """

    board: str
    season: str
    attempt: str | None
    facts: str | None
    objects: tuple[StoredObject, ...]

    @property
    def modified(self) -> datetime:
        return max(one.modified for one in self.objects)

    @property
    def size(self) -> int:
        """The bytes of all objects."""
        return sum(one.size for one in self.objects)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of what an attempt left, and why; the same in dry run and real run."""

    left: Left
    removed: bool
    reason: str


def verdicts(store: Store, older_than: timedelta, now: datetime, *, unsealed: bool = False) -> list[Verdict]:
    """Return a verdict on every attempt that has staged parts, and on every file of facts that no seal names.

    Removed is what is at least ``older_than`` old, an attempt by its newest part. Kept, however old, is the attempt
    that a seal names until its parts are all in their place (they may be the only copy), and, unless ``unsealed`` gives
    that up too, the newest attempt of a season since its last seal: a hold may wait for it, or a seal may be committed
    that was not put yet, which would need it, and the facts of that season with it. What is not named as a staged part
    or as facts is never looked at. Raises ArchiveMismatchError if a seal cannot be read, for it might name any of this.
    """
    staged = _staged(store)
    facts = [_fact(one) for one in store.list("facts") if parse_facts(one.path)]
    if not staged and not facts:
        return []
    catalog = read_catalog(store)
    catalog.check()
    missing = unpublished(store, catalog.seals)
    needed = {one.seal.staging for one in catalog.seals if one.seal.path in missing}
    last = _last_seals(catalog.seals)
    open_attempts = {} if unsealed else _since(staged, last)
    named = _named(catalog.seals)

    def verdict(left: Left) -> Verdict:
        season = (left.board, left.season)
        if now - left.modified < older_than:
            return Verdict(left, False, "too young")
        if left.attempt and staging_dir(left.board, left.season, left.attempt) in needed:
            return Verdict(left, False, "sealed, but not yet all in its place")
        if left.attempt and open_attempts.get(season) == left.attempt:
            return Verdict(left, False, _NEWER if season in last else _UNSEALED)
        if left.facts and season in open_attempts:
            return Verdict(left, False, _NEWER)
        return Verdict(left, True, "the season is sealed" if season in last else "abandoned")

    unnamed = [one for one in facts if one.objects[0].path not in named]
    return [verdict(left) for left in (*staged, *unnamed)]


def sweep_abandoned(store: Store, older_than: timedelta, now: datetime, *, unsealed: bool = False) -> list[Verdict]:
    """Remove what ``verdicts`` says may go and return them all; safe to repeat.

    Nothing but staged parts and files of facts is ever removed; folders that this leaves empty go with them.
    """
    found = verdicts(store, older_than, now, unsealed=unsealed)
    for verdict in found:
        if verdict.removed:
            for one in verdict.left.objects:
                store.delete(one.path)
    return found


def _staged(store: Store) -> list[Left]:
    attempts: dict[tuple[str, str, str], list[StoredObject]] = defaultdict(list)
    for stored in store.list("staging"):
        if (place := parse_part(stored.path)) and place.attempt:
            attempts[place.board, place.season, place.attempt].append(stored)
    return [Left(*names, None, tuple(parts)) for names, parts in sorted(attempts.items())]


def _fact(stored: StoredObject) -> Left:
    place = parse_facts(stored.path)
    assert place is not None
    return Left(place.board, place.season, None, place.name, (stored,))


def _named(seals: Iterable[Sealed]) -> set[str]:
    """Return the paths of the facts that a seal names."""
    return {
        f"{facts_dir(one.seal.board_name, one.seal.bounds.id)}/{file.name}"
        for one in seals
        if not isinstance(one.seal.facts, StandingFacts)
        for file in one.seal.facts.facts
    }


def _last_seals(seals: Iterable[Sealed]) -> Mapping[Season, datetime]:
    """Return when the last seal of each season was made."""
    found: dict[Season, datetime] = {}
    for one in seals:
        season = (one.seal.board_name, one.seal.bounds.id)
        found[season] = max(one.seal.sealed_at, found.get(season, one.seal.sealed_at))
    return found


def _since(staged: Iterable[Left], last: Mapping[Season, datetime]) -> Mapping[Season, str | None]:
    """Return the newest attempt of each season that has one since its last seal; a canary is none."""
    ordered = sorted(staged, key=lambda one: one.modified)
    return {
        (one.board, one.season): one.attempt
        for one in ordered
        if not str(one.attempt).startswith(CANARY)
        and ((one.board, one.season) not in last or one.modified > last[one.board, one.season])
    }
