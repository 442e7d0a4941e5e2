"""The kill harness: runs finale commands as processes of their own, on real servers, and does to them what plans say.

A run without a plan lists its outside calls; a plan names one of them, what happens there (kill, fail, timeout, pause)
and whether the call still has its effect. What a command is to be called, and with which servers, is the caller's::

    with Harness.start() as harness:
        whole = harness.run(["close", "cup", "s1"], env=env, cwd=folder)
        plan = Plan(whole.calls[40], "kill", done=False)
        killed = harness.run(["close", "cup", "s1"], env=env, cwd=folder, plan=plan)
        assert killed.hit and killed.code == -signal.SIGKILL

``hooks.py`` says what counts as a call; ``season.py`` has a season to be closed, copied afresh for each case;
``endstate.py`` reads what the servers hold in the end, without what may differ between two good runs.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Self

from tests.harness.plan import Call, Plan

REPOSITORY = Path(__file__).parents[2]
LONGEST = 120  #: seconds after which a command counts as hung


class HungError(Exception):
    """A command did not end, or did not come to where it was to pause."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended: exit code (-9: killed), what it wrote, its calls in order, whether the plan's came."""

    code: int
    out: str
    err: str
    calls: tuple[Call, ...]
    hit: bool

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.out[-1_000:]}\n{self.err[-3_000:]}"


@dataclass
class Running:
    """A command under way."""

    pid: int
    _report: int
    _arrived: int
    _go_on: int
    _out: IO[bytes]
    _err: IO[bytes]
    _log: IO[bytes]
    _text: bytes = b""
    _outcome: Outcome | None = None

    def wait_until_paused(self) -> Self:
        """Return once the command stands at the plan's call. Raises HungError if it ends without, or never does."""
        if not self._readable(self._arrived) or not os.read(self._arrived, 16):
            raise HungError(f"the command did not come to its pause\n{self.finish()}")
        return self

    def go_on(self) -> Self:
        """Let a paused command go on."""
        with suppress(BrokenPipeError):
            os.write(self._go_on, b".")
        return self

    def finish(self) -> Outcome:
        """Wait for the command's end and return its outcome. Raises HungError if it does not come."""
        if self._outcome is None:
            while chunk := self._chunk():
                self._text += chunk
            code = os.waitstatus_to_exitcode(int(self._text))
            lines = [json.loads(line) for line in self._all(self._log).splitlines()]
            self._outcome = Outcome(
                code,
                self._all(self._out),
                self._all(self._err),
                tuple(Call(**line["call"]) for line in lines if "call" in line),
                any("hit" in line for line in lines),
            )
        return self._outcome

    def _chunk(self) -> bytes:
        if not self._readable(self._report):
            self.kill()
            raise HungError(f"the command hangs\n{self._all(self._err)[-4_000:]}")
        return os.read(self._report, 64)

    def kill(self) -> None:
        """End the command, if it still runs."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the command if it still runs, and let go of its files."""
        if self._outcome is None:
            self.kill()
        for descriptor in (self._report, self._arrived, self._go_on):
            os.close(descriptor)
        for file in (self._out, self._err, self._log):
            file.close()

    @staticmethod
    def _readable(descriptor: int) -> bool:
        return bool(select.select([descriptor], [], [], LONGEST)[0])

    @staticmethod
    def _all(file: IO[bytes]) -> str:
        file.seek(0)
        return file.read().decode(errors="replace")


@dataclass
class Harness:
    """Starts commands, each a fork of one process that has imported everything."""

    process: subprocess.Popen[bytes]
    control: socket.socket

    @classmethod
    @contextmanager
    def start(cls) -> Iterator[Harness]:
        """Run the process that commands are forked from while the block lasts."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.harness.child", str(theirs.fileno())],
                cwd=REPOSITORY,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # no thread may run where a process forks
                pass_fds=[theirs.fileno()],
            )
            theirs.close()
            try:
                yield cls(process, ours)
            finally:
                ours.close()
                process.wait(LONGEST)

    def run(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, plan: Plan | None = None) -> Outcome:
        """Run a command to its end and return its outcome."""
        with self.running(argv, env=env, cwd=cwd, plan=plan) as command:
            return command.finish()

    @contextmanager
    def running(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, plan: Plan | None = None
    ) -> Iterator[Running]:
        """Start a command; what still runs at the end of the block is killed."""
        request = {
            "argv": list(argv),
            "env": dict(env),
            "cwd": str(cwd),
            "plan": plan.to_json() if plan else None,
        }
        report, report_w = os.pipe()
        arrived, arrived_w = os.pipe()
        go_on_r, go_on = os.pipe()
        out, err, log = (TemporaryFile() for _ in range(3))  # noqa: SIM115 - Running.close closes them
        given = [out.fileno(), err.fileno(), log.fileno(), report_w, arrived_w, go_on_r]
        socket.send_fds(self.control, [json.dumps(request).encode()], given)
        for descriptor in (report_w, arrived_w, go_on_r):
            os.close(descriptor)
        text = os.read(report, 64)
        pid, _, rest = text.partition(b"\n")
        command = Running(int(pid), report, arrived, go_on, out, err, log, rest)
        try:
            yield command
        finally:
            command.close()
