"""``finale run``: wakes up at every stored bound and on a short interval, and calls tick; nothing else decides.

APScheduler only wakes it: its jobs hold no state (C58), never count as misfired (C53) and are made anew from the ledger
in every round (C54, C61). Each board is ticked by one thread at a time, so that one that hangs keeps no other (C57).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from apscheduler.executors.pool import ThreadPoolExecutor as WakingThreads
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from jobs.clock import check_clock
from jobs.endpoints import ledger_database
from jobs.scheduler.pool import BRIEF, Pool
from jobs.scheduler.tick import Ticked, tick_board, tick_returned
from jobs.scheduler.wanting import boards_wanting
from jobs.seasons.runner import Observer
from jobs.unforeseen import told
from jobs.wiring import Outside
from leaderboard.errors import ClockError, FinaleError
from ledger import agenda, leases, pausing

#: Bounds further away than this are looked up again in time: a round comes every interval.
LOOKED_AHEAD = timedelta(days=1)
#: A board that takes longer than this many intervals is told of; it may well be a large one.
LONG = 30


class DaemonObserver(Observer, Protocol):
    """Told too of the rounds and of what came of each board."""

    def ticked(self, found: list[Ticked]) -> None: ...
    def round_done(self, outside: Outside, in_flight: int) -> None: ...
    def round_failed(self, error: FinaleError) -> None: ...
    def paused(self, told: str) -> None: ...
    def still_running(self, board: str, seconds: float) -> None: ...
    def stopping(self, in_flight: Iterable[str]) -> None: ...
    def handed_over(self, seasons: int) -> None: ...


@dataclass(frozen=True, slots=True)
class _Flight:
    future: Future[None]
    since: float


class Waking:
    """APScheduler with one job for the interval and one for each bound, all of which only set ``wake``."""

    def __init__(self, wake: Callable[[], None], interval: timedelta) -> None:
        self._wake = wake
        self._scheduler = BackgroundScheduler(
            jobstores={"default": MemoryJobStore()},
            executors={"default": WakingThreads(1)},
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
            timezone="UTC",
        )
        trigger = IntervalTrigger(seconds=interval.total_seconds(), timezone="UTC")
        self._scheduler.add_job(self._wake, trigger, id="interval")
        self._bounds: set[datetime] = set()

    def start(self) -> None:
        self._scheduler.start()

    def stop(self) -> None:
        # First, so that no job is about to remove itself from a store that shuts down, which would raise in its thread.
        self._scheduler.remove_all_jobs()
        self._scheduler.shutdown(wait=False)

    def at(self, instants: Iterable[datetime]) -> None:
        """Wake at exactly these instants of this machine's clock, besides the interval."""
        wanted = set(instants)
        for gone in self._bounds - wanted:
            with suppress(LookupError):  # it has been run, and so removed itself
                self._scheduler.remove_job(gone.isoformat())
        for new in wanted - self._bounds:
            self._scheduler.add_job(
                self._wake, DateTrigger(new, timezone="UTC"), id=new.isoformat(), replace_existing=True
            )
        self._bounds = wanted


class Daemon:
    """Runs until told to stop; any number of them may run on any number of machines."""

    def __init__(self, outside: Outside, *, who: str, observer: DaemonObserver) -> None:
        self._outside = outside
        self._who = who
        self._observer = observer
        self._pool, self._looking = Pool(outside), Pool(outside, BRIEF)
        self._threads = ThreadPoolExecutor(outside.runner.workers, "finale-board")
        self._wake = threading.Event()
        self._waking = Waking(self._wake.set, outside.runner.interval)
        self._flights: dict[str, _Flight] = {}
        self._told: set[str] = set()
        self._again: set[str] = set()
        self._counting = threading.Lock()
        self._under_way, self._more = 0, False
        self._returned_at = float("-inf")
        self._told_to_stop: float | None = None
        self.finished = True  #: whether every step begun was finished, as against handed over: known once it has ended

    def wake(self) -> None:
        """Look now whether anything is due. Any thread may call it."""
        self._wake.set()

    def stop(self) -> None:
        """Begin no further step, and let ``run`` end. A signal handler may call it."""
        self._told_to_stop = self._told_to_stop or time.monotonic()
        self._outside.working.stop.set()
        self._wake.set()

    def run(self) -> None:
        """Work until ``stop``; raise ClockError if this machine's clock is too far from PostgreSQL's.

        However it ends, see ``finished``: where a step was handed over, a thread still works on it, without a lease,
        and the process must end.
        """
        stop = self._outside.working.stop
        self.finished = False
        self._waking.start()
        try:
            while not stop.is_set():
                self._wake.clear()
                self._round()
                self._wake.wait()
        finally:
            stop.set()
            self._waking.stop()
            self.finished = self._finish()

    def _round(self) -> None:
        try:
            with self._looking.taken() as outside:
                ahead = check_clock(outside)
                if (paused := pausing.find(outside.database)) is not None:
                    self._observer.paused(paused.told)
                    self._observer.round_done(outside, self.in_flight)
                    return
                now = outside.database.now()
                self._dispatch(boards_wanting(outside, now), now)
                self._look_for_returned(outside, now)
                upcoming = agenda.wake_ups(outside.database, outside.boards, LOOKED_AHEAD)
                # Bounds are PostgreSQL's time; a wake-up that comes too early finds nothing due and is set again.
                self._waking.at(at + ahead for at in upcoming)
                self._observer.round_done(outside, self.in_flight)
        except ClockError:
            raise
        except FinaleError as error:
            # What is idle may be as silent as what has just been given up: no board shall find that out for itself.
            self._pool.close()
            self._observer.round_failed(error)

    @property
    def in_flight(self) -> int:
        """How many boards are being worked on."""
        return sum(not flight.future.done() for flight in self._flights.values())

    def _dispatch(self, boards: Iterable[str], now: datetime) -> None:
        for name in boards:
            flight = self._flights.get(name)
            if flight is None or flight.future.done():
                self._told.discard(name)
                with self._counting:
                    self._under_way += 1
                self._flights[name] = _Flight(self._threads.submit(self._board, name, now), time.monotonic())
                continue
            self._again.add(name)
            seconds = time.monotonic() - flight.since
            if seconds > LONG * self._outside.runner.interval.total_seconds() and name not in self._told:
                self._told.add(name)
                self._observer.still_running(name, seconds)

    def _board(self, name: str, now: datetime) -> None:
        found: list[Ticked] = []
        self._again.discard(name)
        try:
            with self._pool.taken() as outside:
                found = tick_board(outside, name, max(now, outside.database.now()), self._who, self._observer)
        except Exception as error:  # one board never stops another, whatever is wrong with it
            found = [Ticked(name, error=told(name, error))]
        try:
            self._observer.ticked(found)
        finally:
            self._landed(name in self._again or any(one.steps or one.created for one in found))

    def _landed(self, more: bool) -> None:
        """Look again once nothing is under way, if something was done, which may have made more due or set new bounds.

        While a board is under way for long, the interval's rounds look.
        """
        with self._counting:
            self._more |= more
            self._under_way -= 1
            if self._under_way == 0 and self._more:
                self._more = False
                self._wake.set()

    def _look_for_returned(self, outside: Outside, now: datetime) -> None:
        if time.monotonic() - self._returned_at >= 60:
            self._returned_at = time.monotonic()
            if found := tick_returned(outside, now):
                self._observer.ticked(found)

    def _finish(self) -> bool:
        """Wait for the steps that are under way, as long as is allowed; then give their leases to whoever comes."""
        under_way = {name: flight.future for name, flight in self._flights.items() if not flight.future.done()}
        self._observer.stopping(under_way)
        self._threads.shutdown(wait=False, cancel_futures=True)
        # The time runs from SIGTERM, which may have come while a round was waiting for PostgreSQL.
        since = self._told_to_stop or time.monotonic()
        ends = since + self._outside.runner.stop_within.total_seconds()
        _, left = wait(under_way.values(), max(0.0, ends - time.monotonic()))
        if left:
            self._hand_over()
        self._pool.close()
        self._looking.close()
        return not left

    def _hand_over(self) -> None:
        held = self._outside.working.held()
        settings, url = self._outside.settings, self._outside.database.url
        with suppress(FinaleError), ledger_database(settings, url, within=BRIEF) as database:
            for lease in held:
                leases.give_back(database, lease)
        self._observer.handed_over(len(held))
