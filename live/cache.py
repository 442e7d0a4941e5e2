"""What a thousand readers want at once, read once: the top of a board, kept for a moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Generic, TypeVar

from leaderboard.errors import InputError
from leaderboard.standing import Standing
from live.board import PAGE, LiveBoard

T = TypeVar("T")
_SIZES = (100, 1_000, PAGE)  # rows that are kept together, whatever fewer are asked for


@dataclass
class _Flight(Generic[T]):
    """A reading under way."""

    done: threading.Event = field(default_factory=threading.Event)
    value: list[T] = field(default_factory=list)  # one, once it is there
    error: Exception | None = None


class Shared(Generic[T]):
    """A value that is read at most once in ``ttl``, by one thread, for all that ask; safe for any number of threads.

    An old value is never given after twice ``ttl``, counted from when its reading began. Until then those who come
    while it is read anew are given it and do not wait; without one, all wait for the one reading and share its error.
    ``clock`` gives seconds that never go back.
    """

    def __init__(self, read: Callable[[], T], ttl: timedelta, clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._ttl = ttl.total_seconds()
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[float, T] | None = None
        self._flight: _Flight[T] | None = None

    def get(self) -> T:
        """Return the value; raises what reading it raised."""
        while True:
            with self._lock:
                now = self._clock()
                age = now - self._kept[0] if self._kept else self._ttl * 2
                flight = self._flight
                if self._kept and (age < self._ttl or (flight and age < self._ttl * 2)):
                    return self._kept[1]
                if flight is None:
                    mine = self._flight = _Flight()
                    break
            flight.done.wait()
            if flight.error:
                raise flight.error
            if flight.value:
                return flight.value[0]
            # Whoever read was interrupted: somebody else has to.
        return self._fly(mine, now)

    def _fly(self, flight: _Flight[T], begun: float) -> T:
        try:
            value = self._read()
        except Exception as error:
            flight.error = error
            raise
        else:
            flight.value.append(value)
            return value
        finally:
            with self._lock:
                self._flight = None
                if flight.value:
                    self._kept = begun, flight.value[0]
            flight.done.set()


class SharedTop:
    """The top of one board for many readers: each size is read once in ``ttl`` (a second, unless given)."""

    def __init__(
        self,
        board: LiveBoard,
        ttl: timedelta = timedelta(seconds=1),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sizes = {size: Shared(lambda size=size: board.top(size), ttl, clock) for size in _SIZES}  # type: ignore[misc]  # the default binds the size of this round

    def top(self, k: int) -> list[Standing]:
        """Return the first ``k`` rows, up to ``PAGE``, as they were at most twice ``ttl`` ago."""
        if not 0 <= k <= PAGE:
            raise InputError(f"{k:,} rows are not kept", hint=f"ask for up to {PAGE:,}")
        return self._sizes[next(size for size in _SIZES if size >= k)].get()[:k]
