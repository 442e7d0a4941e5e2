"""Whether the store is the one of the earlier seals: an unmounted, an empty or another one looks like a new store."""

from __future__ import annotations

from archive.layout import seal_path
from archive.objects import ObjectMissingError, Store
from archive.seal import sha256
from leaderboard.errors import AccessError
from ledger import seals
from ledger.database import Database
from ledger.seals import PutSeal


def check(store: Store, database: Database, board: str, *, read: int | None = None) -> None:
    """Raise AccessError unless ``store`` has the newest seal that this ledger knows to be put; one get.

    It is the board's own newest, or of a board without any, the ledger's. A seal that is committed only does not count:
    its runner may be about to put it. Seals that the ledger does not know do no harm: it may have been restored.
    ``read`` is the key of a season whose seals the caller reads anyway.
    """
    newest = seals.newest_put(database, board)
    if newest is not None and newest.key != read:
        compare(store, newest)


def compare(store: Store, newest: PutSeal) -> None:
    """Raise AccessError unless ``store`` has that seal, to the byte."""
    path = seal_path(newest.board, newest.season, newest.kind)
    try:
        found = sha256(store.get(path))
    except ObjectMissingError:
        found = ""
    if found == newest.sha256:
        return
    there = f"there is {found[:12]}…" if found else "there is none"
    raise AccessError(
        f"{store.url} is not the store of the earlier seals: seal {newest.number} of {newest.board} is not in it",
        detail=f"{path} with SHA-256 {newest.sha256[:12]}…; {there}",
        hint="mount it, or restore it; see that FINALE_STORE names the right one (docs/backup.md)",
    )
