"""Canaries, which tell of a store and of a Redis whether what a seal relies on is so there, and leave nothing.

That a store refuses to put an object where one is, on which the commit point of every seal rests, and shows at once
what was put; that a Redis notices a write to a watched key.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from archive.layout import part_name, staging_dir
from archive.objects import ObjectExistsError, ObjectMissingError, Store, settle
from archive.proof import DisturbedError, ProofConnection
from leaderboard.errors import AccessError, FinaleError, OutcomeUnknownError

PREFIX = "canary-"  #: how the attempts are named that were none
_SEASON = "canary"
_TRIES = 3
_FIRST, _SECOND = b"first", b"second"


def check_conditional_put(store: Store, board: str) -> None:
    """Put an object twice in the private part of ``store`` and require that the second put is refused.

    Takes four requests and leaves nothing. Named as a staged part, what a killed check leaves is swept by age.

    Raises AccessError if the second put was not refused or has changed anything, and what the store raises, such as
    OutcomeUnknownError where answers stay lost.
    """
    path = _path(board)
    try:
        settle(store, path, _FIRST)
        refused = _is_refused(store, path)
        try:
            found = store.get(path)
        except ObjectMissingError:
            found = b""
    finally:
        # What cannot be removed now is swept by age; whatever was found matters more.
        with suppress(FinaleError):
            store.delete(path)
    if not refused or found != _FIRST:
        overwrites = not refused or found == _SECOND
        fault = "overwrites an object that it was told to put only if there is none"
        raise AccessError(
            f"the store {store.url} {fault if overwrites else 'does not give back what was put'}",
            detail=f"of two puts to {path} the second was {'refused' if refused else 'done'}; {len(found)} bytes there",
            hint="a seal would not be safe there: use a store with conditional put (If-None-Match: *), or a folder",
        )


def _is_refused(store: Store, path: str) -> bool:
    for remaining in reversed(range(_TRIES)):
        try:
            store.put_new(path, _SECOND)
        except ObjectExistsError:
            return True
        except OutcomeUnknownError:
            if not remaining:
                raise
        else:
            return False
    raise AssertionError("the last try returns or raises")


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
    path = _path(board)
    place = path.rpartition("/")[0]
    try:
        store.put_new(path, _FIRST)
        read = _get(store, path) == _FIRST and store.get_range(path, 1, 4) == _FIRST[1:5]
        listed = [(found.path, found.size) for found in store.list(place)] == [(path, len(_FIRST))]
        store.delete(path)
        return Shown(read, listed, _get(store, path) is None and not list(store.list(place)))
    finally:
        with suppress(FinaleError):
            store.delete(path)


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


def _path(board: str) -> str:
    """Return a new path in the private part of a store."""
    return f"{staging_dir(board, _SEASON, PREFIX + secrets.token_hex(8))}/{part_name(0)}"


def _get(store: Store, path: str) -> bytes | None:
    try:
        return store.get(path)
    except ObjectMissingError:
        return None
