"""Private servers and databases for the tests, and the search for processes that outlived them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import psycopg
from psycopg import sql

from jobs.embedded.account import Account, server_account
from jobs.embedded.binaries import Programs
from jobs.embedded.postgres_server import PostgresServer
from jobs.embedded.redis_server import RedisServer
from jobs.embedded.server import make_private

ServerT = TypeVar("ServerT", RedisServer, PostgresServer)


@dataclass(frozen=True)
class ServerFactory:
    """Makes servers, not yet started, whose folders lie under ``root`` and are open to the servers' user only."""

    root: Path
    account: Account
    programs: Programs

    @classmethod
    def under(cls, root: Path) -> ServerFactory:
        account = server_account(os.environ.get("FINALE_EMBEDDED_USER", ""))
        return cls(root, account, Programs(account, root / "bin"))

    def redis(self, *options: str) -> RedisServer:
        """A Redis whose data outlive a kill, but not a reset of the machine."""
        folder = self._folder()
        return RedisServer(
            programs=self.programs,
            directory=folder,
            socket_directory=folder,
            account=self.account,
            durable=False,
            options=options,
        )

    def postgres(self) -> PostgresServer:
        """A PostgreSQL without fsync."""
        folder = self._folder()
        return PostgresServer(
            programs=self.programs,
            directory=folder,
            socket_directory=folder,
            account=self.account,
            durable=False,
        )

    def _folder(self) -> Path:
        folder = self.root / uuid4().hex[:8]
        make_private(folder, self.account)
        return folder


@contextmanager
def running(server: ServerT) -> Iterator[ServerT]:
    """Run the server for the length of the block."""
    try:
        server.start()
        yield server
    finally:
        if server.alive():
            server.stop()


@dataclass(frozen=True)
class Databases:
    """Makes and drops databases of one cluster."""

    server: PostgresServer

    @contextmanager
    def fresh(self, template: str = "template0") -> Iterator[str]:
        """Give the URL of a new database, a copy of ``template``, dropped at the end."""
        name = f"t_{uuid4().hex[:12]}"
        self._execute("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY", name, template)
        try:
            yield self.server.database_url(name)
        finally:
            self._execute("DROP DATABASE {} WITH (FORCE)", name)

    def _execute(self, statement: str, *names: str) -> None:
        with psycopg.connect(self.server.database_url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def survivors(root: Path) -> dict[int, str]:
    """Return the processes that work somewhere under ``root``: id and command line."""
    found = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        with suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(root):
                found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return found


def end_survivors(root: Path) -> dict[int, str]:
    """Kill the processes that work under ``root``, by id, and return what they were."""
    found = survivors(root)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return found
