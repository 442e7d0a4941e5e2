"""What both embedded servers share: start once, wait until it answers, stop, and mend what a crash left behind.

Each server inherits an exclusive lock on ``server.lock`` in its folder and keeps it, with all its children, until
the last of them is gone. So the lock says whether a server lives, whatever a pid file or a socket claims, also
while it is still starting and nobody knows its pid yet.
"""

from __future__ import annotations

import enum
import os
import signal
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from jobs.embedded import locks
from jobs.embedded.account import Account
from leaderboard.errors import EmbeddedError

PAUSE = 0.02
LOG_LINES = 12


class Answer(enum.Enum):
    """What a server says when it is asked."""

    READY = "ready"
    BUSY = "busy"  # alive, and loading or recovering its data
    SILENT = "silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server(ABC):
    """One server with its data in ``directory`` and its socket in ``socket_directory``.

    ``durable=False`` leaves out every fsync and is for tests. Times are in seconds: how long a silent server may take
    to start, one that recovers its data to be ready, one that lives without answering to be given up, a stop to last,
    and one answer to come.
    """

    title: ClassVar[str]
    stop_signal: ClassVar[signal.Signals]

    directory: Path
    socket_directory: Path
    account: Account
    durable: bool = True
    start_seconds: float = 60.0
    recovery_seconds: float = 900.0
    patience_seconds: float = 10.0
    stop_seconds: float = 60.0
    answer_seconds: int = 5

    @property
    @abstractmethod
    def socket(self) -> Path:
        """The unix socket on which the server listens."""

    @abstractmethod
    def answer(self) -> Answer:
        """Return what the server says when it is asked."""

    @abstractmethod
    def recorded_pid(self) -> int | None:
        """Return the process id in the server's own pid file, or None; it may be stale."""

    @abstractmethod
    def _prepare(self, lock: int) -> None:
        """Remove what a dead server left, and make the data where there are none yet; ``lock`` is to be inherited."""

    @abstractmethod
    def _launch(self, lock: int) -> None:
        """Start the server in the background, inheriting ``lock``."""

    @abstractmethod
    def _shut_down(self) -> None:
        """Ask the server, which answers, to end."""

    @property
    def lock_path(self) -> Path:
        """The file that the living server holds."""
        return self.directory / "server.lock"

    @property
    def log_path(self) -> Path:
        """Where the server writes what it does."""
        return self.directory / "server.log"

    def pid(self) -> int | None:
        """Return the id of the living server, or None; a pid that now belongs to another program is not it."""
        pid = self.recorded_pid()
        return pid if pid is not None and self.alive() and works_in(pid, self._work_directory()) else None

    def alive(self) -> bool:
        """Return whether a process of this server lives."""
        return locks.is_held(self.lock_path)

    def start(self) -> bool:
        """Start the server unless it runs; return whether that was needed. It answers when this returns.

        Raises EmbeddedError, with the last lines of the server's log, if it does not.
        """
        make_private(self.directory, self.account)
        if self.answer() is Answer.READY:
            return False
        lock = self._take_lock()
        if lock is None:
            return False
        try:
            self._prepare(lock)
            self._keep_last_log()
            self._launch(lock)
        finally:
            os.close(lock)
        self._await_ready()
        return True

    def stop(self) -> bool:
        """Stop the server and wait until its last process is gone; return whether it ran."""
        if not self.alive():
            return False
        if self.answer() is Answer.READY:
            self._shut_down()
        else:
            self._signal(self.stop_signal)
        if not wait_until(lambda: not self.alive(), self.stop_seconds):
            raise EmbeddedError(
                f"The embedded {self.title} does not stop",
                detail=f"process {self.pid() or 'unknown'}, after {self.stop_seconds:g} seconds. {self.log_tail()}",
                hint=f"see {self.log_path}",
            )
        return True

    def kill(self) -> None:
        """End the server at once, as a crash would, and wait until its last process is gone."""
        self._signal(signal.SIGKILL)
        if not wait_until(lambda: not self.alive(), self.stop_seconds):
            raise EmbeddedError(f"The embedded {self.title} outlived being killed", hint=f"see {self.log_path}")

    def log_tail(self) -> str:
        """Return the last lines of the server's log."""
        with suppress(OSError):
            return last_lines(self.log_path.read_text(errors="replace"))
        return ""

    def _work_directory(self) -> Path:
        return self.directory

    def _take_lock(self) -> int | None:
        """Return the lock of a server that is gone, or None if it turned out to be starting and now answers."""
        now = time.monotonic()
        silent_until, recovered_by = now + self.patience_seconds, now + self.recovery_seconds
        while (lock := locks.try_exclusive(self.lock_path)) is None:
            said = self.answer()
            if said is Answer.READY:
                return None
            if time.monotonic() > (recovered_by if said is Answer.BUSY else silent_until):
                return self._replace_unreachable()
            time.sleep(PAUSE)
        return lock

    def _replace_unreachable(self) -> int:
        """End a server that lives but whose socket was removed, and return its lock."""
        pid = self.pid()
        if not self._listens():
            self._signal(self.stop_signal)
            if wait_until(lambda: not self.alive(), self.stop_seconds):
                lock = locks.try_exclusive(self.lock_path)
                if lock is not None:
                    return lock
        last = self.log_tail().rpartition("\n")[2]
        raise EmbeddedError(
            f"The embedded {self.title} runs but does not answer (process {pid or 'unknown'})",
            detail=f"asked for {self.patience_seconds:g} seconds; the last line of its log: {last or 'none'}",
            hint=f"let it go on, or end it and run the command again; its log is {self.log_path}",
        )

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.socket))
            except OSError:
                return False
        return True

    def _await_ready(self) -> None:
        now = time.monotonic()
        silent_until, recovered_by = now + self.start_seconds, now + self.recovery_seconds
        while (said := self.answer()) is not Answer.READY:
            now = time.monotonic()
            if not self.alive():
                raise self._failure("ended while it was starting")
            if now > (recovered_by if said is Answer.BUSY else silent_until):
                self._signal(self.stop_signal)
                raise self._failure(f"did not become ready within {now - silent_until + self.start_seconds:.0f} s")
            time.sleep(PAUSE)

    def _failure(self, what: str) -> EmbeddedError:
        return EmbeddedError(
            f"The embedded {self.title} {what}", detail=self.log_tail(), hint=f"see the whole log at {self.log_path}"
        )

    def _signal(self, number: signal.Signals) -> None:
        pid = self.pid()
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _keep_last_log(self) -> None:
        if self.log_path.exists():
            self.log_path.replace(self.log_path.with_suffix(".log.1"))


def last_lines(text: str) -> str:
    """Return as much of a log's end as belongs into an error."""
    return "\n".join(text.strip().splitlines()[-LOG_LINES:])


def make_private(folder: Path, account: Account) -> None:
    """Make the folder, if it is missing, and let only the servers' user in."""
    folder.mkdir(exist_ok=True)
    account.give(folder)
    folder.chmod(0o700)


def works_in(pid: int, folder: Path) -> bool:
    """Return whether the process lives and has ``folder`` as its working directory."""
    try:
        return os.path.samestat(Path(f"/proc/{pid}/cwd").stat(), folder.stat())
    except OSError:
        return False


def read_pid(path: Path) -> int | None:
    """Return the number in the first line of a pid file, or None if there is none."""
    try:
        return int(path.read_text().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return None


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Ask again and again until the condition holds; return whether it came to hold in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(PAUSE)
    return True


def server_environment() -> dict[str, str]:
    """Return the environment of a server: none of the caller's settings reach it."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
