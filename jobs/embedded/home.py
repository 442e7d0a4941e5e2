"""FINALE_HOME: the folder that holds the embedded servers' data, their sockets, the locks and the archive."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from config.home import default_home
from jobs.embedded import locks
from jobs.embedded.account import Account, server_account
from jobs.embedded.binaries import Programs
from jobs.embedded.postgres_server import SOCKET_NAME, PostgresServer
from jobs.embedded.redis_server import RedisServer
from jobs.embedded.server import make_private
from leaderboard.errors import EmbeddedError

# sun_path holds 108 bytes with the closing zero; PostgreSQL's is the longer of the two names.
SOCKET_PATH_BYTES = 107
HINT = "set FINALE_HOME to a folder that you may write and, if you are root, that every user may enter"


@dataclass(frozen=True, slots=True)
class EmbeddedHome:
    """One home. ``server_user`` is FINALE_EMBEDDED_USER or empty; ``durable=False`` is for tests: no fsync."""

    path: Path
    server_user: str = ""
    durable: bool = True

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> EmbeddedHome:
        """Return the home that the environment names."""
        return cls(default_home(environ), environ.get("FINALE_EMBEDDED_USER", ""))

    @property
    def archive(self) -> Path:
        """The folder that serves as the object store."""
        return self.path / "archive"

    @property
    def users_lock(self) -> Path:
        """The file that every command holds together with others while it uses the servers."""
        return self.path / "users.lock"

    @property
    def keep_marker(self) -> Path:
        """The file that is there while ``finale up`` asks for the servers to stay."""
        return self.path / "keep"

    def account(self) -> Account:
        """Return the user that runs the servers of this home."""
        data = self.path / "postgres"
        return server_account(self.server_user, data.stat().st_uid if data.exists() else None)

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Hold the right to start and stop servers here; file errors inside become EmbeddedError naming the path."""
        try:
            with locks.exclusive(self.path / "start.lock"):
                yield
        except OSError as error:
            raise file_error(error, self.path) from error

    def prepare(self) -> None:
        """Make the home. Raises EmbeddedError if it cannot be written, or if the servers' user cannot reach it."""
        try:
            _make_folders(self.path, 0o755 if os.geteuid() == 0 else 0o700)
            self.archive.mkdir(exist_ok=True)
            account = self.account()
            closed = account.unreachable(self.path)
        except OSError as error:
            raise file_error(error, self.path) from error
        if closed is not None:
            raise EmbeddedError(
                f"The user {account.name!r}, who runs the embedded servers, cannot enter {closed}",
                detail=f"{self.path} lies there, and PostgreSQL refuses to run as root",
                hint="set FINALE_HOME to a folder that every user may enter",
            )

    def servers(self) -> tuple[RedisServer, PostgresServer]:
        """Return the two servers of this home, running or not."""
        account = self.account()
        programs = Programs(account, self.path / "bin")
        sockets = self._recorded_sockets(account) or self._own_sockets
        return (
            RedisServer(
                programs=programs,
                directory=self.path / "redis",
                socket_directory=sockets,
                account=account,
                durable=self.durable,
            ),
            PostgresServer(
                programs=programs,
                directory=self.path / "postgres",
                socket_directory=sockets,
                account=account,
                durable=self.durable,
            ),
        )

    def open_sockets(self) -> None:
        """Make the private folder for the sockets: in the home, or a short one where the home's path is too long."""
        account = self.account()
        if self._has_short_path():
            make_private(self._own_sockets, account)
        elif self._recorded_sockets(account) is None:
            # Not under TMPDIR, which may be as long.
            short = Path(tempfile.mkdtemp(prefix="finale-", dir="/tmp"))
            make_private(short, account)
            unfinished = self._sockets_record.with_suffix(".new")
            unfinished.write_text(f"{short}\n")
            unfinished.replace(self._sockets_record)

    def close_sockets(self) -> None:
        """Remove a short folder that was made for the sockets, once no server uses it."""
        folder = self._recorded_sockets(self.account())
        if folder is not None:
            shutil.rmtree(folder)
        self._sockets_record.unlink(missing_ok=True)

    @property
    def _own_sockets(self) -> Path:
        return self.path / "run"

    @property
    def _sockets_record(self) -> Path:
        return self.path / "sockets"

    def _has_short_path(self) -> bool:
        """Whether sockets can lie in the home: its path is short, and no list of paths to PostgreSQL."""
        path = os.fsencode(self._own_sockets / SOCKET_NAME)
        return len(path) <= SOCKET_PATH_BYTES and not set(path) & set(b",\"'\\")

    def _recorded_sockets(self, account: Account) -> Path | None:
        """Return the short folder that was made earlier, unless it is gone or is no longer ours alone."""
        if self._has_short_path() or not self._sockets_record.exists():
            return None
        folder = Path(self._sockets_record.read_text().strip())
        return folder if _is_private(folder, account) else None


def file_error(error: OSError, home: Path) -> EmbeddedError:
    """Return the error that tells an operator which path could not be used, and why."""
    path = error.filename if error.filename is not None else home
    return EmbeddedError(f"The embedded servers cannot use {path}", detail=error.strerror or str(error), hint=HINT)


def _make_folders(path: Path, mode: int) -> None:
    """Make the folder and its missing parents with this mode, whatever the umask; leave those that exist."""
    for folder in [*reversed(path.parents), path]:
        if not folder.exists():
            folder.mkdir(exist_ok=True)
            folder.chmod(mode)


def _is_private(folder: Path, account: Account) -> bool:
    """Return whether it is a folder, no link, that belongs to the servers' user and that nobody else may enter."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == account.uid and not status.st_mode & 0o077
