"""What is sealed: every seal in the store, and which of them have their parts in place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from archive.each_seal import read_each
from archive.faults import Fault, told
from archive.fetch import size_faults
from archive.layout import PLACES, kind_order, parse_part, parse_seal, published_dir, seal_path, seals_dir
from archive.objects import Store
from archive.seal import Seal, sha256
from leaderboard.errors import ArchiveMismatchError, UnknownNameError
from leaderboard.names import check_name


@dataclass(frozen=True, slots=True)
class Sealed:
    """A seal, and the SHA-256 of its bytes, by which the next in the chain names it."""

    seal: Seal
    sha256: str

    @property
    def size(self) -> int:
        """The bytes of all parts."""
        return sum(part.size for part in self.seal.facts.parts)

    def to_json(self) -> dict[str, Any]:
        """Return what a list shows of the seal, as plain JSON values and times."""
        seal = self.seal
        return {
            "board": seal.board_name,
            "season": seal.bounds.id,
            "kind": seal.kind,
            "rows": seal.facts.rows,
            "parts": len(seal.facts.parts),
            "bytes": self.size,
            "sealed_at": seal.sealed_at,
            "number": seal.chain.number,
            "sha256": self.sha256,
            "path": seal.path,
        }


@dataclass(frozen=True, slots=True)
class Catalog:
    """All seals by board, number in the chain and kind; ``faults`` tells which files in a seal's place hold none."""

    seals: tuple[Sealed, ...]
    faults: tuple[Fault, ...]

    def check(self, damaged: Sequence[Fault] = ()) -> None:
        """Raise ArchiveMismatchError if a seal could not be read, or parts are ``damaged``."""
        if faults := (*self.faults, *damaged):
            what = "not all of the archive is as it was sealed" if damaged else "not every seal can be read"
            raise ArchiveMismatchError(what, detail=told(faults), hint="restore these files from a backup")


def read_catalog(store: Store, board: str | None = None) -> Catalog:
    """Return every seal of the store, or of one board; files with names that are no seal's are passed over.

    Raises UnknownNameError for a ``board`` that has none.
    """
    paths = [stored.path for stored in store.list("seals" if board is None else seals_dir(board))]
    if board is not None and not any(map(parse_seal, paths)):
        raise UnknownNameError(
            f"nothing of board {board!r} is sealed", detail=store.url, hint="finale archive list shows what is"
        )
    return _catalog(store, paths)


def season_catalog(store: Store, board: str, season: str) -> Catalog:
    """Return the seals of one season; raise UnknownNameError if its standings have none."""
    paths = [stored.path for stored in store.list(seals_dir(board))]
    places = {path: parse_seal(path) for path in paths}
    if not any(place and place.season == season for place in places.values()):
        raise UnknownNameError(
            f"{board}/{season} is not sealed", detail=store.url, hint="finale archive list shows what is"
        )
    found = _catalog(store, [path for path, place in places.items() if place and place.season == season])
    if (standings := seal_path(board, season, "standings")) in places:
        return found
    # What else is sealed of the season was made from it.
    return Catalog(found.seals, (Fault(standings, "is missing"), *found.faults))


def _catalog(store: Store, paths: list[str]) -> Catalog:
    wanted = [path for path in paths if parse_seal(path)]
    found = read_each(store, wanted, Seal.parse, "a seal")
    seals = [Sealed(one[0], sha256(one[1])) for one in found if not isinstance(one, Fault)]
    return Catalog(
        seals=tuple(sorted(seals, key=_order)),
        faults=tuple(one for one in found if isinstance(one, Fault)),
    )


def unsealed(store: Store, board: str | None = None) -> tuple[Fault, ...]:
    """Return what stands where readers glob and no seal has it, of all boards or one: they would count it.

    That is parts of seasons without a seal, and files that are no parts, but for those in a sealed season's own place,
    which ``verify`` names. Seals come before what they publish, so the place is listed first: a season sealed meanwhile
    is no fault.
    """
    places = [place if board is None else f"{place}/board={check_name(board, 'board')}" for place in PLACES]
    found: dict[tuple[str, str, str], list[str]] = {}
    strange = []
    for path in (stored.path for place in places for stored in store.list(place)):
        if (part := parse_part(path)) and part.kind:
            found.setdefault((part.board, part.season, part.kind), []).append(path)
        else:
            strange.append(path)
    sealed = {
        (seal.board, seal.season, seal.kind)
        for stored in store.list("seals" if board is None else seals_dir(board))
        if (seal := parse_seal(stored.path))
    }
    verified = tuple(f"{published_dir(*place)}/" for place in sealed)
    return (
        *(
            Fault(
                paths[0],
                f"{f'and {len(paths) - 1:,} more: ' if len(paths) > 1 else ''}{seal_path(*place)} does not exist",
            )
            for place, paths in sorted(found.items())
            if place not in sealed
        ),
        *(Fault(path, "is no part of a season") for path in sorted(strange) if not path.startswith(verified)),
    )


@dataclass(frozen=True, slots=True)
class Places:
    """What of the sealed parts is not in place: ``missing`` tells by the path of its seal what a season has not;
    ``damaged`` has the parts of another size, which no copying leaves: each is put once, whole.
    """

    missing: dict[str, str]
    damaged: tuple[Fault, ...]


def unpublished(store: Store, seals: Iterable[Sealed]) -> dict[str, str]:
    """Return, by the path of its seal, what is missing of a season that is not in place whole; empty if all are."""
    return places(store, seals).missing


def places(store: Store, seals: Iterable[Sealed]) -> Places:
    """Return what of ``seals`` is not in place.

    A part is in place if it has the sealed size: nothing is read. A season that has just been sealed is still being
    copied: parts of it are not there.
    """
    wanted = [one.seal for one in seals]
    roots = dict.fromkeys(seal.place.partition("/")[0] for seal in wanted)
    sizes = {stored.path: stored.size for root in roots for stored in store.list(root)}
    missing, damaged = {}, []
    for seal in wanted:
        damaged += size_faults(sizes, seal.place, seal.facts.parts)
        absent = [part.name for part in seal.facts.parts if sizes.get(f"{seal.place}/{part.name}") != part.size]
        if absent:
            missing[seal.path] = f"{seal.place} has not {', '.join(absent)} as sealed"
    return Places(missing, tuple(damaged))


def _order(one: Sealed) -> tuple[str, int, str, int]:
    return one.seal.board_name, one.seal.chain.number, one.seal.bounds.id, kind_order(one.seal.kind)
