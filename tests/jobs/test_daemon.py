"""The scheduler within a process: what wakes it, what it decides nothing about, and what it survives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from jobs import clock
from jobs.scheduler import daemon
from jobs.scheduler.daemon import Daemon, Waking
from jobs.scheduler.logged import Logged
from jobs.scheduler.tick import Ticked
from leaderboard.errors import ClockError, FinaleError
from tests.ledger.support import await_that
from tests.support.cli import World, finale

SECOND = timedelta(seconds=1)
BOARD = '[board.{name}]\nties = "shared"\ncalendar = {{ every = "year" }}\n'
TWO = '[runner]\ninterval = "1s"\nworkers = 2\n' + BOARD.format(name="a") + BOARD.format(name="b")


@contextmanager
def waking(interval: timedelta) -> Iterator[tuple[Waking, threading.Event]]:
    woken = threading.Event()
    found = Waking(woken.set, interval)
    found.start()
    try:
        yield found, woken
    finally:
        found.stop()


@pytest.mark.parametrize("late", [timedelta(0), 2 * SECOND, timedelta(days=400)])
def test_c53_a_bound_that_has_passed_wakes_all_the_same(late: timedelta) -> None:
    """C53: no run counts as misfired: not two seconds late, when a container has started slowly, not a year."""
    with waking(timedelta(hours=1)) as (found, woken):
        found.at([datetime.now(UTC) - late])
        assert woken.wait(10)


def test_c54_c58_wake_ups_are_made_anew_and_no_more_are_left(capsys: pytest.CaptureFixture[str]) -> None:
    """C54, C58: what is no bound any more wakes nobody; jobs live in memory alone, so none is read back or deleted."""
    hour = timedelta(hours=1)
    now = datetime.now(UTC)
    with waking(hour) as (found, woken):
        found.at([now + hour, now + 2 * hour])
        found.at([now + 2 * hour, now + 3 * hour])
        jobs = {job.id: job for job in found._scheduler.get_jobs()}
        assert jobs.keys() == {"interval", *(at.isoformat() for at in (now + 2 * hour, now + 3 * hour))}
        for job in jobs.values():
            assert (job.misfire_grace_time, job.coalesce, job.max_instances) == (None, True, 1)
        assert [type(store).__name__ for store in found._scheduler._jobstores.values()] == ["MemoryJobStore"]
        assert not woken.is_set()
        found.at([now])
        assert woken.wait(10)
        found.at([])


@contextmanager
def running(world: World, observer: Logged | None = None) -> Iterator[Daemon]:
    """Run a daemon in a thread while the block lasts."""
    with world.outside() as outside:
        found = Daemon(outside, who="test", observer=observer or Logged())
        thread = threading.Thread(target=found.run)
        thread.start()
        try:
            yield found
        finally:
            found.stop()
            thread.join(60)
            assert not thread.is_alive()


def ticking(monkeypatch: pytest.MonkeyPatch, act: Callable[[str], None]) -> None:
    """Let ``act`` be what a tick of a board does."""

    def tick_board(outside: object, name: str, *_: object) -> list[Ticked]:
        act(name)
        return []

    monkeypatch.setattr(daemon, "tick_board", tick_board)


def test_c57_a_board_that_hangs_keeps_no_other_and_is_told_of(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """C57: while board a hangs, b is ticked again and again; a is never ticked twice at once; the hang is an event."""
    world.configure(TWO)
    monkeypatch.setattr(daemon, "LONG", 1)
    ticks, hangs, told = {"a": 0, "b": 0}, threading.Event(), threading.Event()

    def act(name: str) -> None:
        ticks[name] += 1
        if name == "a":
            hangs.wait(60)

    class Observer(Logged):
        def still_running(self, board: str, seconds: float) -> None:
            assert (board, seconds > 1) == ("a", True)
            told.set()

    ticking(monkeypatch, act)
    with running(world, Observer()):
        assert told.wait(30)
        await_that(lambda: ticks["b"] >= 3)
        assert ticks["a"] == 1
        hangs.set()
        await_that(lambda: ticks["a"] > 1)


def test_a_board_whose_tick_breaks_keeps_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a tick raises is told, but not its words, which may hold a secret; both boards go on."""
    world.configure(TWO)
    ticks, told = {"a": 0, "b": 0}, list[FinaleError]()

    def act(name: str) -> None:
        ticks[name] += 1
        if name == "a":
            raise ZeroDivisionError("by nothing")

    class Observer(Logged):
        def ticked(self, found: list[Ticked]) -> None:
            told.extend(one.error for one in found if one.error)

    ticking(monkeypatch, act)
    with running(world, Observer()):
        await_that(lambda: min(ticks.values()) >= 2)
    assert "ZeroDivisionError in test_daemon.py" in told[0].message
    assert "by nothing" not in told[0].message


def test_a_pause_is_seen_by_a_daemon_that_runs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """While everything is paused no board is ticked; on again, all are."""
    world.configure(TWO)
    ticks, paused = list[str](), threading.Event()

    class Observer(Logged):
        def paused(self, told: str) -> None:
            assert "by ana: a reason" in told
            paused.set()

    ticking(monkeypatch, ticks.append)
    finale("pause", "--because", "a reason", "--as", "ana").ok()
    with running(world, Observer()):
        assert paused.wait(30)
        assert ticks == []
        finale("resume", "--as", "ana").ok()
        await_that(lambda: {"a", "b"} <= set(ticks))


class Later(datetime):
    """A host whose clock is ten seconds ahead."""

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]  # the part of it that is asked for
        return datetime.now(UTC) + 10 * SECOND


class Earlier(datetime):
    """A host whose clock is ten seconds behind."""

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]  # the part of it that is asked for
        return datetime.now(UTC) - 10 * SECOND


@pytest.mark.parametrize(("host", "words"), [(Later, "ahead of"), (Earlier, "behind")])
def test_i7_a_host_whose_clock_is_wrong_does_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, host: type[datetime], words: str
) -> None:
    """I7: ten seconds either way is past the stated bound: tick and run end with code 16, and a daemon stops."""
    world.configure(TWO)
    with world.outside() as outside:
        assert clock.check_clock(outside) == timedelta(0)
        monkeypatch.setattr(clock, "datetime", host)
        with pytest.raises(ClockError):
            Daemon(outside, who="test", observer=Logged()).run()
    for command in ("tick", "run"):
        finale(command).refused(16, words, "runner.max_skew allows 5 seconds", "NTP")
    assert world.sql("select count(*) from finale.season") == [(0,)]
    world.configure(TWO.replace("[runner]", '[runner]\nmax_skew = "1m"'))
    finale("tick").ok()


def test_a_bad_configuration_is_refused_whole_at_the_start(world: World) -> None:
    """Every fault of every board is named, and nothing has been done for the boards that are right."""
    world.configure(TWO + BOARD.format(name="c").replace('"year"', '"fortnight"') + '[board.d]\ncolour = "red"\n')
    finale("run").refused(3, "fortnight", "colour")
    assert world.sql("select count(*) from finale.season") == [(0,)]
