"""Calls into a driver that cannot be broken off from outside: a thread makes them, and is left if it falls silent."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class FellSilentError(OSError):
    """A call was not answered in time."""


class Caller:
    """Makes calls one after another in a thread of its own, each of which must be answered within ``seconds``.

    After one that was not, every further call fails at once: the thread is still in it, and whatever it holds stays
    open until the server answers or the process ends.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self._seconds = seconds
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self.silent = False
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def __call__(self, call: Callable[[], T]) -> T:
        """Return what ``call`` returns, or raise what it raises; FellSilentError if it takes too long."""
        return self.answer(self.begin(call))

    def begin(self, call: Callable[[], T]) -> Future[T]:
        """Have ``call`` made, after those before it, and return what ``answer`` takes, without waiting for it."""
        if self.silent:
            raise FellSilentError("an earlier call was not answered")
        answer: Future[T] = Future()
        self._work.put((answer, call))
        return answer

    def answer(self, answer: Future[T]) -> T:
        """Wait for a call that was begun; otherwise as calling."""
        try:
            return answer.result(self._seconds)
        except TimeoutError:
            if answer.done():
                raise  # it is the call's own
            self.silent = True
            raise FellSilentError(f"no answer for {self._seconds:.0f} seconds") from None

    def later(self, call: Callable[[], object]) -> None:
        """Make the call once the thread is there again, whatever comes of it; nobody waits."""
        self._work.put((Future(), call))

    def end(self) -> None:
        """Let the thread end, once it is done with its present call."""
        self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            answer, call = work
            try:
                answer.set_result(call())
            except BaseException as error:  # whoever waits raises it
                answer.set_exception(error)
            del answer, call, work  # nothing of the driver is kept alive while it waits
