"""The pair of embedded servers: started by the first command that needs them, stopped by the last one out.

Every command holds ``users.lock`` shared while it uses them, so a killed one counts no longer. Every decision to
start or stop is taken while holding ``start.lock``, so two commands never decide at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from jobs.embedded import locks
from jobs.embedded.home import EmbeddedHome
from jobs.embedded.server import Answer, Server
from leaderboard.errors import EmbeddedError


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the embedded servers are reached. None of the URLs holds a secret."""

    redis_url: str
    postgres_url: str
    store_url: str


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server: its state is running, starting, silent (it lives and does not answer) or stopped."""

    state: str
    pid: int | None


@dataclass(frozen=True, slots=True)
class Status:
    """The embedded servers of a home; ``kept`` says that ``finale up`` asked for them to stay."""

    home: Path
    redis: ServerStatus
    postgres: ServerStatus
    kept: bool
    in_use: bool


STOPPED = ServerStatus("stopped", None)


def up(home: EmbeddedHome) -> Endpoints:
    """Start what is not running, keep it running until ``down``, and return where it is reached.

    Raises EmbeddedError if a server cannot be started.
    """
    home.prepare()
    with home.deciding():
        endpoints = _start(home)
        home.keep_marker.touch()
    return endpoints


def down(home: EmbeddedHome) -> bool:
    """Stop the servers and return whether one ran.

    Raises EmbeddedError, naming the processes where that is possible, if another command uses them; nothing changes.
    """
    if not home.path.is_dir():
        return False
    with home.deciding():
        if locks.is_held(home.users_lock):
            users = ", ".join(_named(pid) for pid in locks.holders(home.users_lock))
            raise EmbeddedError(
                "Another command is using the embedded servers",
                detail=f"{users or 'which process cannot be told'}; home {home.path}",
                hint="end it, or wait for it, and run finale down again",
            )
        home.keep_marker.unlink(missing_ok=True)
        return _stop(home)


def status(home: EmbeddedHome) -> Status:
    """Return what runs in the home; a home that does not exist has nothing running."""
    if not home.path.is_dir():
        return Status(home.path, STOPPED, STOPPED, kept=False, in_use=False)
    with home.deciding():
        redis_server, postgres_server = home.servers()
        return Status(
            home.path,
            _server_status(redis_server),
            _server_status(postgres_server),
            kept=home.keep_marker.exists(),
            in_use=locks.is_held(home.users_lock),
        )


def _named(pid: int) -> str:
    """Return a process as an operator finds it again, with the beginning of its command line."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="backslashreplace").replace("\0", " ").strip()
        return f"process {pid} ({words[:100]})" if words else f"process {pid}"
    return f"process {pid}"


@contextmanager
def session(home: EmbeddedHome, *, redis: bool = True) -> Iterator[Endpoints]:
    """Use the servers: start what is not running; afterwards stop them if nobody else uses them or keeps them.

    Without ``redis`` only PostgreSQL is started and asked, so that a Redis that hangs hinders nobody who needs none.
    Raises EmbeddedError if a server cannot be started or stopped.
    """
    home.prepare()
    with home.deciding():
        user = locks.take_shared(home.users_lock)
        try:
            endpoints = _start(home, redis=redis)
        except BaseException:
            with suppress(EmbeddedError):
                _leave(home, user)
            raise
    try:
        yield endpoints
    finally:
        with home.deciding():
            _leave(home, user)


def _start(home: EmbeddedHome, *, redis: bool = True) -> Endpoints:
    home.open_sockets()
    redis_server, postgres_server = home.servers()
    if redis:
        redis_server.start()
    postgres_server.start()
    return Endpoints(redis_server.url, postgres_server.url, home.archive.as_uri())


def _leave(home: EmbeddedHome, user: int) -> None:
    os.close(user)
    if not home.keep_marker.exists() and not locks.is_held(home.users_lock):
        _stop(home)


def _stop(home: EmbeddedHome) -> bool:
    redis_server, postgres_server = home.servers()
    try:
        redis_ran = redis_server.stop()
    finally:
        postgres_ran = postgres_server.stop()
    home.close_sockets()
    return redis_ran or postgres_ran


def _server_status(server: Server) -> ServerStatus:
    if not server.alive():
        return STOPPED
    states = {Answer.READY: "running", Answer.BUSY: "starting", Answer.SILENT: "silent"}
    return ServerStatus(states[server.answer()], server.pid())
