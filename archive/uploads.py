"""Parts on their way to staging: encoded and put while the rows behind them are being gathered."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeVar

from archive.layout import parse_part
from archive.objects import Store, settle
from archive.parts import Part, PartEncoder, RowGroup
from leaderboard.errors import FinaleError

_ENCODING = 3  # row groups held in memory while they are encoded
_PUTTING = 2  # parts held in memory while they are put
_NICENESS = 10
_SLICE = 0.02  # seconds of waiting, after which it is asked what else there is to do

T = TypeVar("T")


def _give_way() -> None:
    """Let this thread run after the others: Redis may be on this machine, and whoever reads it should not wait.

    Measured with both on two cores: a tenth more rows a second, and players waited a fifth to a third less at the 99th
    percentile. Only Linux has a niceness for threads.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


class Uploads:
    """Puts of the parts of one attempt into a ``folder`` of its own; thrown away if the block fails.

    A few row groups wait to be encoded and a few parts to be put, no more, so that memory stays flat. ``pause`` is that
    between the tries of a put.
    """

    def __init__(self, store: Store, folder: str, pause: Callable[[float], None] = time.sleep) -> None:
        self._store = store
        self._pause = pause
        self._folder = folder
        self._encoder = PartEncoder()
        self._encoding_pool = ThreadPoolExecutor(1, thread_name_prefix="finale-encode", initializer=_give_way)
        self._putting_pool = ThreadPoolExecutor(_PUTTING, thread_name_prefix="finale-put")
        self._encoding: deque[Future[list[tuple[Part, bytes]]]] = deque()
        self._putting: deque[Future[bool]] = deque()
        self._parts: list[Part] = []
        self._meanwhile: Callable[[], None] = lambda: None

    def __enter__(self) -> Uploads:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._encoding_pool.shutdown(cancel_futures=True)
        self._putting_pool.shutdown(cancel_futures=True)
        if isinstance(error, Exception):
            self._throw_away()

    def put(self, groups: Iterable[RowGroup], meanwhile: Callable[[], None] = lambda: None) -> None:
        """Start to encode ``groups`` and to put the parts they complete; wait while too many are under way.

        While it waits it calls ``meanwhile`` again and again, for what must not wait for a slow store. Raises what that
        raises, and what encoding or putting an earlier one raised.
        """
        self._meanwhile = meanwhile
        for group in groups:
            self._await_encoded(_ENCODING - 1)
            self._encoding.append(self._encoding_pool.submit(self._encoder.add, group))

    def finish(self) -> tuple[Part, ...]:
        """Wait until all parts are stored; return them."""
        self._await_encoded(0)
        self._await_put(0)
        return tuple(self._parts)

    def _await_encoded(self, most: int) -> None:
        """Give the parts that are encoded to the store, until at most ``most`` row groups are under way."""
        while self._encoding and (len(self._encoding) > most or self._encoding[0].done()):
            for part, data in self._result(self._encoding.popleft()):
                self._await_put(_PUTTING - 1)
                path = f"{self._folder}/{part.name}"
                self._putting.append(self._putting_pool.submit(settle, self._store, path, data, self._pause))
                self._parts.append(part)

    def _await_put(self, most: int) -> None:
        while len(self._putting) > most:
            self._result(self._putting.popleft())

    def _result(self, future: Future[T]) -> T:
        while not wait([future], _SLICE).done:
            self._meanwhile()
        return future.result()

    def _throw_away(self) -> None:
        # What cannot be removed now lies where no reader globs, and is swept by age.
        with suppress(FinaleError):
            for found in self._store.list(self._folder):
                if parse_part(found.path):
                    self._store.delete(found.path)
