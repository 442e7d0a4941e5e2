"""The embedded Redis-compatible server: a unix socket, an append-only file, no network."""

from __future__ import annotations

import signal
import subprocess
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from jobs.embedded.binaries import Programs
from jobs.embedded.server import Answer, Server, read_pid, server_environment

SOCKET_NAME = "redis.sock"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisServer(Server):
    """A Redis or Valkey server. ``options`` are further command line words, such as ``("--maxmemory", "50mb")``."""

    title: ClassVar[str] = "Redis"
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM

    programs: Programs
    options: tuple[str, ...] = ()

    @property
    def socket(self) -> Path:
        """The unix socket on which it listens."""
        return self.socket_directory / SOCKET_NAME

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"unix://{quote(str(self.socket))}"

    def answer(self) -> Answer:
        """Return what the server says to PING."""
        try:
            with closing(self._client()) as client:
                client.ping()
        except redis.BusyLoadingError:
            return Answer.BUSY
        except (redis.ConnectionError, redis.TimeoutError):
            return Answer.SILENT
        except redis.ResponseError:
            # It refuses, so it is there: a script that runs long, for instance.
            return Answer.READY
        return Answer.READY

    def recorded_pid(self) -> int | None:
        """Return the process id that the server tells, or that it wrote when it started."""
        try:
            with closing(self._client()) as client:
                return int(client.info("server")["process_id"])
        except redis.RedisError:
            return read_pid(self._pid_path)

    @property
    def _pid_path(self) -> Path:
        return self.directory / "redis.pid"

    def _client(self) -> redis.Redis:
        return redis.Redis(
            unix_socket_path=str(self.socket),
            socket_timeout=self.answer_seconds,
            socket_connect_timeout=self.answer_seconds,
            retry=Retry(NoBackoff(), 0),
        )

    def _prepare(self, lock: int) -> None:
        self._pid_path.unlink(missing_ok=True)
        self.socket.unlink(missing_ok=True)

    def _launch(self, lock: int) -> None:
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.directory),
            "pidfile": str(self._pid_path),
            "logfile": str(self.log_path),
            "daemonize": "yes",
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec" if self.durable else "no",
            "maxmemory-policy": "noeviction",
        }
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        done = subprocess.run(
            [str(self.programs.redis()), *words, *self.options],
            cwd=self.directory,
            env=server_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            pass_fds=(lock,),
            start_new_session=True,
            **self.account.arguments(),
        )
        if done.returncode:
            raise self._failure(f"did not start: {(done.stderr or done.stdout).strip()}")

    def _shut_down(self) -> None:
        try:
            with closing(self._client()) as client:
                # All of it stands in the append-only file; there is no dump to save.
                client.shutdown(nosave=True)
        except redis.RedisError:
            self._signal(self.stop_signal)
