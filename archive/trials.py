"""What a seal relies on, tried: that a WATCH is noticed at this endpoint, and that a store shows what was put."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from archive.canary import PREFIX
from archive.folder import FolderStore
from archive.layout import part_name, staging_dir
from archive.objects import ObjectMissingError, Store
from archive.proof import DisturbedError, ProofConnection
from leaderboard.errors import AccessError, FinaleError

_DATA = b"canary of finale doctor"


def check_watch(connect: Callable[[], ProofConnection], key: str, touch: Callable[[], None]) -> None:
    """Require that a transaction is refused after ``touch`` wrote to the watched canary ``key``, and only then.

    Raises AccessError otherwise: a proxy may spread WATCH and EXEC over several connections.
    """
    touch()
    with connect() as proof:
        proof.watch(key)
        proof.exec()
    with connect() as proof:
        proof.watch(key)
        touch()
        try:
            proof.exec()
        except DisturbedError:
            return
    raise AccessError(
        "a transaction was executed although its watched key had been written to",
        detail=f"WATCH {key}, a write from another connection, EXEC",
        hint="name the server itself in [servers] redis, not a proxy: no standing would be proved there",
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """What a store did after a put: read, list and delete, each seen at once or not."""

    read: bool
    listed: bool
    deleted: bool


def shown(store: Store, board: str) -> Shown:
    """Put an object in the private part of ``store``, read, list and remove it; leaves nothing.

    What a killed check leaves is swept by age, as a dead attempt. Raises what the store raises.
    """
    place = staging_dir(board, "canary", PREFIX + secrets.token_hex(8))
    path = f"{place}/{part_name(0)}"
    try:
        store.put_new(path, _DATA)
        read = _get(store, path) == _DATA and store.get_range(path, 3, 4) == _DATA[3:7]
        listed = [(found.path, found.size) for found in store.list(place)] == [(path, len(_DATA))]
        store.delete(path)
        return Shown(read, listed, _get(store, path) is None and not list(store.list(place)))
    finally:
        with suppress(FinaleError):
            store.delete(path)


def free_bytes(store: Store) -> int | None:
    """Return how much room a folder's disk has; None for a bucket, which has no such bound."""
    if not isinstance(store, FolderStore):
        return None
    return free_at(store.root)


def free_at(path: Path) -> int | None:
    """Return the free bytes of the disk that has ``path``, or will have it; None where that cannot be told."""
    for place in (path, *path.parents):
        with suppress(OSError):
            return shutil.disk_usage(place).free
    return None


def _get(store: Store, path: str) -> bytes | None:
    try:
        return store.get(path)
    except ObjectMissingError:
        return None
