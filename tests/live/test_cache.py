"""The shared top: one reading for all, however many ask; never older than it says; errors are not kept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from redis import Redis

from leaderboard.errors import InputError, UnavailableError
from live.cache import Shared, SharedTop
from tests.live.boards import live, write

SECOND = timedelta(seconds=1)


class Clock:
    """A clock that goes on when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Reading:
    """Counts how often it is read; where ``gate`` is closed a reading waits."""

    def __init__(self) -> None:
        self.count = 0
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.error: Exception | None = None
        self.gate.set()

    def __call__(self) -> int:
        self.count += 1
        self.begun.set()
        assert self.gate.wait(30)
        if self.error:
            raise self.error
        return self.count


def together(threads: int, ask: Callable[[], object]) -> tuple[list[threading.Thread], list[object]]:
    """Start threads that ask; return them, and the list that their answers come to."""
    answers: list[object] = []

    def run() -> None:
        try:
            answers.append(ask())
        except Exception as error:
            answers.append(error)

    started = [threading.Thread(target=run) for _ in range(threads)]
    for thread in started:
        thread.start()
    return started, answers


def test_it_is_read_once_in_its_time() -> None:
    """Within the time the same value, afterwards a new one; its age counts from when its reading began."""
    clock, reading = Clock(), Reading()
    shared = Shared(reading, SECOND, clock)
    assert [shared.get(), shared.get()] == [1, 1]
    clock.now = 0.999
    assert shared.get() == 1
    clock.now = 1.0
    assert [shared.get(), shared.get()] == [2, 2]


def test_a_thousand_readers_at_once_are_one_reading() -> None:
    """No herd: while the first reads, all others wait for it, and all get what it got."""
    reading = Reading()
    reading.gate.clear()
    shared = Shared(reading, SECOND, Clock())
    threads, answers = together(1_000, shared.get)
    assert reading.begun.wait(30)
    reading.gate.set()
    for thread in threads:
        thread.join()
    assert answers == [1] * 1_000
    assert reading.count == 1


def test_nobody_waits_for_a_value_that_is_being_renewed() -> None:
    """Those who come while it is read anew are given the old value, up to twice its time; then they wait too."""
    clock, reading = Clock(), Reading()
    shared = Shared(reading, SECOND, clock)
    assert shared.get() == 1
    reading.gate.clear()
    reading.begun.clear()
    clock.now = 1.5
    (renewing,), renewed = together(1, shared.get)
    assert reading.begun.wait(30)
    assert [shared.get() for _ in range(100)] == [1] * 100
    clock.now = 2.0
    (late,), waited = together(1, shared.get)
    reading.gate.set()
    renewing.join()
    late.join()
    assert (renewed, waited, reading.count) == ([2], [2], 2)


def test_an_error_is_told_to_those_who_waited_and_not_kept() -> None:
    """One failed reading is one error for all that waited for it; the next one asks again."""
    reading = Reading()
    reading.gate.clear()
    reading.error = UnavailableError("gone")
    shared = Shared(reading, SECOND, Clock())
    first, told = together(1, shared.get)
    assert reading.begun.wait(30)
    others, also_told = together(20, shared.get)
    reading.gate.set()
    for thread in (*first, *others):
        thread.join()
    assert all(isinstance(one, UnavailableError) for one in told + also_told)
    failed = reading.count
    reading.error = None
    assert shared.get() == failed + 1


def test_whoever_is_interrupted_leaves_the_reading_to_the_next() -> None:
    """A thread that is stopped while it reads does not stop the others."""
    stopped = iter([KeyboardInterrupt()])

    def read() -> int:
        for interruption in stopped:
            raise interruption
        return 7

    shared = Shared(read, SECOND, Clock())
    with pytest.raises(KeyboardInterrupt):
        shared.get()
    assert shared.get() == 7


def test_the_top_is_shared_and_cut_to_size(client: Redis) -> None:
    """Any k is answered from one reading of its size, until that is too old."""
    write(client, {b"p%03d" % number: number for number in range(150)})
    clock = Clock()
    board = live(client, ties="shared")
    shared = SharedTop(board, SECOND, clock)
    assert [shared.top(k) for k in (3, 100, 120)] == [board.top(3), board.top(100), board.top(120)]
    before = client.info("commandstats")["cmdstat_zrange"]["calls"]
    for _ in range(50):
        shared.top(10)
        shared.top(130)
    assert client.info("commandstats")["cmdstat_zrange"]["calls"] == before
    write(client, {b"new": 1_000})
    assert shared.top(1)[0].player_id == b"p149"
    clock.now = 1.0
    assert shared.top(1)[0].player_id == b"new"
    for wrong in (-1, 10_001):
        with pytest.raises(InputError):
            shared.top(wrong)
