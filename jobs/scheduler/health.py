"""A daemon's port: /metrics for Prometheus, /healthz and /readyz for whoever restarts it or sends it traffic."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, make_wsgi_app

from jobs.scheduler.metrics import LedgerCollector
from leaderboard.errors import InputError
from ledger.monitoring import Seen


@dataclass
class Health:
    """Told by the daemon after each round. ``patience`` is in seconds: a round that is later than that is no life."""

    patience: float
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    _last: float = field(default_factory=time.monotonic)
    _servers: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rounds = Counter("finale_rounds", "Rounds of this daemon", ("outcome",), registry=self.registry)
        self._in_flight = Gauge("finale_boards_in_flight", "Boards being worked on", registry=self.registry)
        self._up = Gauge(
            "finale_server_up", "Whether a server answers this daemon", ("server",), registry=self.registry
        )

    def round(self, *, ready: bool, in_flight: int) -> None:
        """Note a round that has ended: ``ready`` if the ledger could be asked."""
        self._last = time.monotonic()
        self.server("postgres", up=ready)
        self._rounds.labels("done" if ready else "failed").inc()
        self._in_flight.set(in_flight)

    def server(self, name: str, *, up: bool) -> None:
        """Note whether a server has answered. Any thread may tell it."""
        self._servers = {**self._servers, name: up}
        self._up.labels(name).set(up)

    @property
    def away(self) -> list[str]:
        """The servers that did not answer when they were asked last; PostgreSQL also before the first round."""
        return [name for name, up in {"postgres": False, **self._servers}.items() if not up]

    @property
    def alive(self) -> bool:
        return time.monotonic() - self._last < self.patience

    @property
    def ready(self) -> bool:
        return self.alive and not self.away


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing: stderr has the daemon's own events."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


def _refused(host: str, port: int, error: OSError | UnicodeError) -> InputError:
    if isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES):
        return InputError(
            f"--metrics {host}:{port} cannot be listened on: {error.strerror}", hint="choose another port"
        )
    return InputError(
        f"--metrics-host {host!r} cannot be listened on: {getattr(error, 'strerror', None) or error}",
        hint="give an IPv4 address of this machine: 127.0.0.1 for itself alone, 0.0.0.0 for every one",
    )


@contextmanager
def served(health: Health, look: Callable[[], Seen], host: str, port: int) -> Iterator[int]:
    """Answer on the port while the block lasts, and yield it: a free one for 0. Raises InputError if it cannot."""
    health.registry.register(LedgerCollector(look))
    metrics = make_wsgi_app(health.registry)

    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            answer: Iterable[bytes] = metrics(environ, start)
            return answer
        good = {"/healthz": health.alive, "/readyz": health.ready}.get(path)
        status = "404 Not Found" if good is None else "200 OK" if good else "503 Service Unavailable"
        start(status, [("Content-Type", "text/plain; charset=utf-8")])
        missed = f": no answer from {', '.join(health.away)}" if path == "/readyz" and health.away else ""
        return [f"{status[4:]}{missed}\n".encode()]

    try:
        server = make_server(host, port, app, server_class=_Server, handler_class=_Quiet)
    except (OSError, UnicodeError) as error:  # the latter of a host that no name can have
        raise _refused(host, port, error) from None
    thread = threading.Thread(target=server.serve_forever, name="finale-metrics", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
