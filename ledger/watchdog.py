"""Cuts connections whose server has fallen silent.

PostgreSQL's own statement timeout is kept by the server, so one that hangs does not keep it, and neither do TCP
keepalives notice a server, or a proxy before it, whose machine still answers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LOOKS_EVERY = 0.5
_lock = threading.Lock()
_watched: dict[int, tuple[float, Callable[[], None]]] = {}
_thread: threading.Thread | None = None


def silence(statement_timeout: float) -> float:
    """Return after how many seconds without an answer a server is given up: after it should have given up itself."""
    return statement_timeout * 1.25 + 2


@contextmanager
def watched(cut: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call ``cut`` from another thread if the block takes longer than ``seconds``; one second more or less."""
    entry = object()
    with _lock:
        _watched[id(entry)] = (time.monotonic() + seconds, cut)
        _ensure_running()
    try:
        yield
    finally:
        with _lock:
            _watched.pop(id(entry), None)


def _ensure_running() -> None:
    global _thread  # noqa: PLW0603 - one for the whole process, made when it is needed and again after a fork
    if _thread is None or not _thread.is_alive():
        _thread = threading.Thread(target=_run, name="finale-watchdog", daemon=True)
        _thread.start()


def _run() -> None:
    while True:
        time.sleep(_LOOKS_EVERY)
        now = time.monotonic()
        with _lock:
            silent = [key for key, (until, _) in _watched.items() if until <= now]
            cuts = [_watched.pop(key)[1] for key in silent]
        for cut in cuts:
            cut()
