"""Publishing: sealed parts from the staging of the attempt that won to the place that readers glob."""

from __future__ import annotations

from contextlib import suppress

from archive.fetch import fetch_part, place_faults
from archive.layout import PartPlace, parse_part, season_staging_dir, staging_dir
from archive.objects import Store, settle
from archive.parts import Part
from archive.seal import Seal
from leaderboard.errors import ArchiveMismatchError


def publish(store: Store, seal: Seal) -> None:
    """Make the published place hold exactly the seal's parts, copied from the attempt that the seal names.

    Safe to repeat, also after the staging was swept. Raises ArchiveMismatchError, naming the paths, if a part staged or
    published is not the one sealed, or if the place holds anything else; nothing there is ever overwritten.
    """
    there = {stored.path for stored in store.list(seal.place)}
    sealed = {f"{seal.place}/{part.name}" for part in seal.facts.parts}
    if foreign := sorted(there - sealed):
        raise _refusal(store, seal, [f"{path} was not sealed" for path in foreign])
    for part in seal.facts.parts:
        path = f"{seal.place}/{part.name}"
        if path in there:
            fetch_part(store, seal.place, part)
        else:
            settle(store, path, _sealed_part(store, seal, part))
    if faults := place_faults(store, seal.place, seal.facts.parts):
        raise _refusal(store, seal, [str(fault) for fault in faults])


def _sealed_part(store: Store, seal: Seal, part: Part) -> bytes:
    """Return a part from the staging or, if a slower runner has published and swept it meanwhile, from its place."""
    try:
        return fetch_part(store, seal.staging, part)
    except ArchiveMismatchError as error:
        with suppress(ArchiveMismatchError):
            return fetch_part(store, seal.place, part)
        raise error


def sweep(store: Store, board: str, season: str, attempt: str) -> int:
    """Remove one attempt's staged parts, and nothing that is not named as one; return how many were removed."""
    wanted = [
        stored.path
        for stored in store.list(staging_dir(board, season, attempt))
        if (place := parse_part(stored.path)) and _is_of(place, board, season) and place.attempt == attempt
    ]
    for path in wanted:
        store.delete(path)
    return len(wanted)


def staged_attempts(store: Store, board: str, season: str) -> list[str]:
    """Return the attempts that have staged parts of a season, by name."""
    places = [parse_part(stored.path) for stored in store.list(season_staging_dir(board, season))]
    return sorted({place.attempt for place in places if place and _is_of(place, board, season) and place.attempt})


def _is_of(place: PartPlace, board: str, season: str) -> bool:
    return (place.board, place.season, place.kind) == (board, season, None)


def _refusal(store: Store, seal: Seal, faults: list[str]) -> ArchiveMismatchError:
    return ArchiveMismatchError(
        f"{store.url}: the place of the {seal.name} does not hold exactly what was sealed",
        detail="; ".join(faults),
        hint="move away what was not sealed, then run the step again",
    )
