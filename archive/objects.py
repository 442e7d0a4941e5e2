"""What every store does, whatever it is made of: write once, read, list, delete; and the errors it does it with."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from leaderboard.errors import (
    ArchiveMismatchError,
    FinaleError,
    InputError,
    OutcomeUnknownError,
    UnavailableError,
)

_SEGMENT = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]{0,254}")
_PAUSES = (
    0.5,
    3.0,
    None,
)  # seconds after a try that has to be repeated; a store that says SlowDown is not asked at once


class ObjectExistsError(ArchiveMismatchError):
    """Something is stored under this path already; it was left as it is."""


class ObjectMissingError(ArchiveMismatchError):
    """Nothing is stored under this path."""


class ObjectShortError(ArchiveMismatchError):
    """The object ends before the bytes that were asked for."""


class ObjectDiffersError(ArchiveMismatchError):
    """Other bytes than these are stored under this path; they were left as they are."""


@dataclass(frozen=True, slots=True, order=True)
class StoredObject:
    """An object in a listing: its path from the store's root, ``size`` in bytes, ``modified`` in UTC."""

    path: str
    size: int
    modified: datetime


class Store(Protocol):
    """Objects under paths; each appears whole or not at all, and is never overwritten.

    Every method raises UnavailableError (no answer, nothing known to have changed) or AccessError (refused).
    """

    @property
    def url(self) -> str:
        """Where the store is, without secrets."""
        ...

    def put_new(self, path: str, data: bytes) -> None:
        """Store ``data`` under a path that holds nothing, atomically and durably.

        Raises ObjectExistsError if it holds something, and OutcomeUnknownError when the answer was lost.
        """
        ...

    def get(self, path: str) -> bytes:
        """Return the object's bytes; raise ObjectMissingError if there is none."""
        ...

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """Return the ``length`` bytes (at least one) from offset ``start`` on, and read no others.

        Raises ObjectMissingError if there is no object, ObjectShortError if it ends before.
        """
        ...

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield every object below the folder ``prefix`` (the empty string: all), sorted by path."""
        ...

    def delete(self, path: str) -> None:
        """Remove the object; that there is none is no error."""
        ...


def check_path(path: str) -> str:
    """Return ``path`` if it is safe in every store: relative, of plain segments; raise InputError otherwise."""
    if not all(_SEGMENT.fullmatch(segment) for segment in path.split("/")):
        raise InputError(f"{path!r} is no path of a store", hint="use segments of A-Z, a-z, 0-9 and ._=-, joined by /")
    return path


def check_range(store: Store, path: str, start: int, length: int, data: bytes) -> bytes:
    """Return ``data`` if it is the whole range that was asked for; raise ObjectShortError otherwise."""
    if len(data) != length:
        raise ObjectShortError(
            f"{store.url}: {path} ends before byte {start + length:,}", hint="restore it from a backup"
        )
    return data


def settle(store: Store, path: str, data: bytes, pause: Callable[[float], None] = time.sleep) -> bool:
    """Make ``path`` hold exactly ``data``; return whether this call is known to have written it.

    Safe to repeat: a put that found something there, or whose answer was lost, looks again, and is repeated after
    ``pause`` (given seconds, growing) if nothing is there. Raises ObjectDiffersError if other bytes are there, and
    OutcomeUnknownError if the answers stay lost.
    """
    for seconds in _PAUSES:
        try:
            store.put_new(path, data)
        except (ObjectExistsError, OutcomeUnknownError) as error:
            found = _look(store, path, error)
            if found == data:
                return False
            if found is not None:
                raise ObjectDiffersError(
                    f"{store.url}: {path} holds other bytes than were to be written",
                    detail=f"SHA-256 there {_sha256(found)}, here {_sha256(data)}",
                    hint="nothing was changed; find out who wrote it",
                ) from None
            if seconds is None:
                raise
            pause(seconds)
        else:
            return True
    raise AssertionError("the last try returns or raises")


def _look(store: Store, path: str, error: FinaleError) -> bytes | None:
    try:
        return store.get(path)
    except ObjectMissingError:
        return None
    except UnavailableError:
        # The put may have been done; "nothing is known to have changed" would be wrong.
        raise error from None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
