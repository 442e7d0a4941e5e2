"""Live boards written beside the recording of results: by one thread, over a ledger connection of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from jobs.endpoints import ledger_database
from jobs.wiring import Outside


@dataclass
class Beside:
    """Calls ``write`` with seasons whose totals wait, one call at a time, while the caller goes on recording.

    Recording never waits for it: what it is told of while it is busy it writes in one go afterwards, and that is less
    work, since a total that has changed twice is written once. At the end of the block all is written; after an error
    what is left waits in the ledger, as ever.
    """

    outside: Outside
    write: Callable[[Outside, set[int]], None]
    _waiting: set[int] = field(default_factory=set)
    _running: Future[None] | None = None
    _stack: ExitStack = field(default_factory=ExitStack)
    _own: tuple[ThreadPoolExecutor, Outside] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._stack:
            if kind is None:
                self.finish()

    def tell(self, keys: set[int]) -> None:
        """Let the totals of these seasons be written soon. Raises what an earlier ``write`` raised."""
        self._waiting |= keys
        if self._running is not None:
            if not self._running.done():
                return
            self._running.result()
        pool, own = self._opened()
        self._running = pool.submit(self.write, own, self._waiting)
        self._waiting = set()

    def finish(self) -> None:
        """Return once everything told is written. Raises what ``write`` raised."""
        if self._running is not None:
            self._running.result()
        if self._waiting:
            self.write(self.outside, self._waiting)
            self._waiting = set()

    def _opened(self) -> tuple[ThreadPoolExecutor, Outside]:
        if self._own is None:
            database = ledger_database(self.outside.settings, self.outside.database.url)
            self._stack.callback(database.close)
            pool = self._stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="finale-beside"))
            self._own = pool, replace(self.outside, database=database)
        return self._own
