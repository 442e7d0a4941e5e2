"""Whether Redis and the store answer: asked beside the rounds, so that a server that hangs holds none of them up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

from archive.objects import ObjectMissingError
from archive.store import open_store
from jobs.wiring import Outside
from leaderboard.errors import FinaleError, UnavailableError
from live.translate import translated

#: How long an answer may take, at most; a store that is asked for a part may take longer.
PATIENCE = timedelta(seconds=10)
#: An object that is never there; a store that says so answers, and so does one that refuses to tell.
_NOTHING = "seals/nothing"

Told = Callable[[str, FinaleError | None], None]


@contextmanager
def watched(outside: Outside, told: Told) -> Iterator[None]:
    """Ask each server every interval while the block lasts; tell its name, and the error if it did not answer.

    ``told`` is called by a thread for each server. Only no answer counts: one that refuses is there.
    """
    asks = {"redis": _redis(outside), "store": _store(outside)}
    with asked(asks, outside.runner.interval.total_seconds(), told):
        yield


@contextmanager
def asked(asks: Mapping[str, Callable[[], None]], every: float, told: Told) -> Iterator[None]:
    """Do what ``watched`` does with other ways to ask; ``every`` is in seconds."""
    stop = threading.Event()
    for name, ask in asks.items():
        threading.Thread(
            target=_watch, args=(name, ask, every, told, stop), name=f"finale-watch-{name}", daemon=True
        ).start()
    try:
        yield
    finally:
        stop.set()


def _watch(name: str, ask: Callable[[], None], every: float, told: Told, stop: threading.Event) -> None:
    while not stop.is_set():
        missed: FinaleError | None = None
        try:
            ask()
        except UnavailableError as error:
            missed = error
        except FinaleError:
            pass
        if not stop.is_set():
            told(name, missed)
        stop.wait(every)


def _redis(outside: Outside) -> Callable[[], None]:
    def ask() -> None:
        with translated(outside.redis, {}):
            outside.redis.ping()

    return ask


def _store(outside: Outside) -> Callable[[], None]:
    store = open_store(outside.store.url, outside.environ, min(PATIENCE, outside.runner.store_timeout))

    def ask() -> None:
        try:
            store.get(_NOTHING)
        except ObjectMissingError:
            return

    return ask
