"""Daemons within the test's process that are told when to look, and told apart when they have nothing more to do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from jobs.output import Watching
from jobs.scheduler.daemon import Daemon
from jobs.scheduler.tick import Ticked
from jobs.wiring import Outside
from leaderboard.errors import FinaleError

LONGEST = 120  #: seconds after which a daemon counts as hung


class Heard(Watching):
    """Counts a daemon's rounds, and whether anything came of the last ones."""

    def __init__(self) -> None:
        super().__init__(quiet=True, logs=False)
        self.changed = threading.Condition()
        self.rounds = self.boards = 0
        self.moved = False

    def ticked(self, found: list[Ticked]) -> None:
        with self.changed:
            self.boards += 1
            self.moved |= any(one.steps or one.created for one in found)
            self.changed.notify_all()

    def round_done(self, outside: Outside, in_flight: int) -> None:
        with self.changed:
            self.rounds += 1
            self.changed.notify_all()

    def round_failed(self, error: FinaleError) -> None:
        with self.changed:
            self.rounds += 1
            self.changed.notify_all()

    def paused(self, told: str) -> None: ...
    def still_running(self, board: str, seconds: float) -> None: ...
    def stopping(self, in_flight: Iterable[str]) -> None: ...
    def handed_over(self, seasons: int) -> None: ...


@dataclass
class Scheduler:
    """One daemon in a thread of its own."""

    daemon: Daemon
    heard: Heard
    thread: threading.Thread = field(init=False)

    def look(self, enough: Callable[[], bool] = lambda: False) -> None:
        """Wake the daemon until it has ended a round, or that is ``enough``."""
        until, ends = self.heard.rounds + 1, time.monotonic() + LONGEST
        with self.heard.changed:
            while self.heard.rounds < until and not enough():
                self.daemon.wake()
                self.heard.changed.wait(0.2)
                assert self.thread.is_alive() and time.monotonic() < ends, "the daemon hangs"

    def work(self) -> bool:
        """Let it look and do what is due; return whether it came any further."""
        self.heard.moved = False
        self.look()
        self.land()
        return self.heard.moved

    def suffer(self) -> None:
        """Let it look, and work on a board, if there is one; others may be under way still."""
        before = self.heard.boards
        self.look()
        ends = time.monotonic() + LONGEST
        with self.heard.changed:
            while self.daemon.in_flight and self.heard.boards == before:
                self.heard.changed.wait(0.02)
                assert time.monotonic() < ends, "a board hangs"

    def land(self) -> None:
        """Wait until no board is worked on."""
        ends = time.monotonic() + LONGEST
        while self.daemon.in_flight:
            with self.heard.changed:
                self.heard.changed.wait(0.02)
            assert time.monotonic() < ends, "a board hangs"


@contextmanager
def scheduler(outside: Outside) -> Iterator[Scheduler]:
    """Run a daemon while the block lasts."""
    heard = Heard()
    found = Scheduler(Daemon(outside, who="scheduler", observer=heard), heard)
    found.thread = threading.Thread(target=found.daemon.run, name="finale-daemon")
    found.thread.start()
    try:
        yield found
    finally:
        found.daemon.stop()
        found.thread.join(LONGEST)
        assert not found.thread.is_alive()


def settle(schedulers: Iterable[Scheduler]) -> None:
    """Let them work side by side until none comes any further."""
    all_of_them = list(schedulers)
    going = True
    while going:
        for one in all_of_them:
            one.daemon.wake()
        came = [one.work() for one in all_of_them]
        going = any(came)
