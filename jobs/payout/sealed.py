"""A season's seal as the store has it, believed only if it is the ledger's to the byte."""

from __future__ import annotations

from archive.layout import Kind, seal_path
from archive.objects import ObjectMissingError
from archive.seal import Seal, sha256
from jobs.wiring import Outside
from leaderboard.errors import ArchiveMismatchError
from leaderboard.season import Season
from ledger import seals


def check_there(outside: Outside, season: Season) -> None:
    """Raise ArchiveMismatchError unless the seal of the standings, on which all later steps rest, is in the store."""
    committed(outside, season, "standings")


def committed(outside: Outside, season: Season, kind: Kind) -> Seal:
    """Return a season's seal in the store; raise ArchiveMismatchError unless it is the ledger's to the byte."""
    row = seals.find(outside.database, season.key, kind)
    path = seal_path(season.board.name, season.id, kind)
    try:
        data = outside.store.get(path)
    except ObjectMissingError as error:
        raise ArchiveMismatchError(
            f"the ledger has the {kind} of {season.name} sealed, but the store has no such seal",
            detail=f"{outside.store.url} has no {path}",
            hint="see that FINALE_STORE names the right store, or restore the file from a backup",
        ) from error
    if row is None or data != row.body:
        raise ArchiveMismatchError(
            f"the seal of the {kind} of {season.name} in the store is not the one that this ledger committed",
            detail=f"{path}: {sha256(data)[:12]}…, the ledger has {row.sha256[:12] if row else 'none'}…",
            hint="restore the seal from a backup, or find out who replaced it",
        )
    return Seal.parse(data)
