"""The embedded PostgreSQL: a unix socket in a private folder, no network."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import psycopg
from psycopg import sql

from jobs.embedded.binaries import Programs
from jobs.embedded.server import Answer, Server, last_lines, make_private, read_pid, server_environment, works_in
from leaderboard.errors import EmbeddedError

ROLE = "finale"
DATABASE = "finale"
# Names the socket; nothing listens on a network port.
PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
UNFINISHED = "init-"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresServer(Server):
    """A PostgreSQL cluster with one superuser, ``finale``, who may enter through the private socket only."""

    title: ClassVar[str] = "PostgreSQL"
    # Fast shutdown: sessions are ended, their transactions rolled back.
    stop_signal: ClassVar[signal.Signals] = signal.SIGINT

    programs: Programs

    @property
    def data(self) -> Path:
        """The cluster's data directory."""
        return self.directory / "data"

    @property
    def socket(self) -> Path:
        """The unix socket on which it listens."""
        return self.socket_directory / SOCKET_NAME

    @property
    def url(self) -> str:
        """The URL of the database for clients; libpq, psycopg and ADBC understand it."""
        return self.database_url(DATABASE)

    def database_url(self, database: str) -> str:
        """Return the URL of another database of the cluster."""
        host = quote(str(self.socket_directory), safe="")
        return f"postgresql://{ROLE}@/{quote(database, safe='')}?host={host}&port={PORT}"

    def answer(self) -> Answer:
        """Return what the server says to a new connection."""
        try:
            with psycopg.connect(self.database_url("postgres"), connect_timeout=self.answer_seconds):
                return Answer.READY
        except psycopg.OperationalError as error:
            if "the database system is" in str(error):
                return Answer.BUSY
            # It refuses, so it is there: too many clients, for instance.
            return Answer.READY if "FATAL:" in str(error) else Answer.SILENT

    def recorded_pid(self) -> int | None:
        """Return the process id in postmaster.pid."""
        return read_pid(self.data / "postmaster.pid")

    def start(self) -> bool:
        """Start the server unless it runs, and see that its database exists; return whether a start was needed."""
        started = Server.start(self)
        try:
            self._ensure_database()
        except psycopg.Error as error:
            raise EmbeddedError(
                f"The embedded PostgreSQL did not give the database {DATABASE}",
                detail=str(error).strip(),
                hint=f"see {self.log_path}",
            ) from error
        return started

    def _work_directory(self) -> Path:
        return self.data

    def _prepare(self, lock: int) -> None:
        for unfinished in self.directory.glob(f"{UNFINISHED}*"):
            shutil.rmtree(unfinished)
        if not self.data.exists():
            self._initialise(lock)
        self._remove_stale_files()

    def _initialise(self, lock: int) -> None:
        """Make the cluster under another name and rename it whole, so that a killed initdb is never taken for one."""
        unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=self.directory))
        make_private(unfinished, self.account)
        done = self._run(
            lock,
            "initdb",
            f"--pgdata={unfinished}",
            f"--username={ROLE}",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-instructions",
            *([] if self.durable else ["--no-sync"]),
        )
        if done.returncode:
            raise EmbeddedError(
                f"The embedded PostgreSQL could not make its data in {self.data}",
                detail=last_lines(done.stderr),
                hint="see that there is room on the disk, or set FINALE_HOME to another folder",
            )
        unfinished.rename(self.data)
        _sync_folder(self.directory)

    def _remove_stale_files(self) -> None:
        """Remove the lock files of a dead server: PostgreSQL would believe them if the pid now is another program's."""
        pid = self.recorded_pid()
        if pid is not None and works_in(pid, self.data):
            raise EmbeddedError(
                f"A PostgreSQL that Finale did not start works in {self.data} (process {pid})",
                hint="stop it, or set FINALE_HOME to another folder",
            )
        for stale in (
            self.data / "postmaster.pid",
            self.socket,
            self.socket.with_name(f"{SOCKET_NAME}.lock"),
        ):
            stale.unlink(missing_ok=True)

    def _launch(self, lock: int) -> None:
        settings = {
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": '"{}"'.format(str(self.socket_directory).replace('"', '""')),
            "unix_socket_permissions": "0700",
            "max_connections": "100",
            "shared_buffers": "64MB",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "lc_messages": "C",
        }
        if not self.durable:
            # Commits stay synchronous: they reach the kernel, so they outlive a kill, though not a power cut.
            settings |= {"fsync": "off", "full_page_writes": "off"}
        options = " ".join(f"-c {shlex.quote(f'{name}={value}')}" for name, value in settings.items())
        self.log_path.touch(mode=0o600)
        self.account.give(self.log_path)
        done = self._run(lock, "pg_ctl", "start", "-W", "-D", str(self.data), "-l", str(self.log_path), "-o", options)
        if done.returncode:
            raise self._failure(f"did not start: {done.stderr.strip()}")

    def _shut_down(self) -> None:
        self._signal(self.stop_signal)

    def _run(self, lock: int, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        # Output goes to a file, not a pipe: a server that is left behind would keep a pipe open.
        with tempfile.TemporaryFile(mode="w+", errors="replace") as output:
            done = subprocess.run(
                [str(self.programs.postgres() / program), *words],
                cwd=self.directory,
                env=server_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                text=True,
                check=False,
                pass_fds=(lock,),
                start_new_session=True,
                **self.account.arguments(),
            )
            output.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, "", output.read())

    def _ensure_database(self) -> None:
        with psycopg.connect(
            self.database_url("postgres"), connect_timeout=self.answer_seconds, autocommit=True
        ) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
            if found is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
