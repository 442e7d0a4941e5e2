"""Proof that a store refuses to put an object where one is: what the commit point of every seal rests on."""

from __future__ import annotations

import secrets
from contextlib import suppress

from archive.layout import part_name, staging_dir
from archive.objects import ObjectExistsError, ObjectMissingError, Store, settle
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
    path = f"{staging_dir(board, _SEASON, PREFIX + secrets.token_hex(8))}/{part_name(0)}"
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
