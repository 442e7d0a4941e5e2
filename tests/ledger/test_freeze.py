"""The freeze barrier (I6): earlier writers are waited for, later ones are late, newcomers hardly wait."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count as numbers
from threading import Event

import pytest

from ledger import barrier, counting
from ledger.database import Database
from ledger.freeze import freeze
from ledger.results import Recorded
from tests.ledger.support import (
    NOON,
    await_that,
    board,
    by_hand,
    closing,
    count,
    only_batches,
    paused,
    result,
    season_of,
    take,
    totals,
    waits_for_lock,
)


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with Database(ledger_url) as opened:
        yield opened


def _is_marked(database: Database) -> bool:
    return season_of(database).frozen_at is not None


def test_i6_freeze_waits_for_a_writer_that_read_open(
    database: Database, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I6: a result whose season was open when it looked is counted, and the freeze returns only then."""
    season, lease = closing(database)
    only_batches(monkeypatch)
    with (
        ThreadPoolExecutor(2) as pool,
        Database(ledger_url) as writer,
        Database(ledger_url) as freezer,
        paused(monkeypatch, counting, "count") as point,
    ):
        writing = pool.submit(take, writer, result("m1", points=5))
        assert point.reached.wait(30)
        freezing = pool.submit(freeze, freezer, lease, season)
        await_that(lambda: _is_marked(database) and waits_for_lock(database))
        assert not freezing.done()
        assert totals(database, season) == {}
        point.go.set()
        freezing.result(30)
        assert totals(database, season) == {b"ann": (5, NOON, 1)}
        assert writing.result(30).late == 0


def test_i6_newcomers_do_not_queue_behind_a_waiting_freeze(
    database: Database, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I6: while the freeze waits for a slow writer, others get through: late here, counted elsewhere."""
    season, lease = closing(database)
    other = board("daily", source="goals", calendar={"every": "day"})
    only_batches(monkeypatch)
    with (
        ThreadPoolExecutor(2) as pool,
        Database(ledger_url) as writer,
        Database(ledger_url) as freezer,
        paused(monkeypatch, counting, "count") as point,
    ):
        writing = pool.submit(take, writer, result("m1", points=5))
        assert point.reached.wait(30)
        freezing = pool.submit(freeze, freezer, lease, season)
        await_that(lambda: _is_marked(database) and waits_for_lock(database))
        for number in range(3):
            found = take(database, result(f"n{number}", "bob"), boards=[board()])
            assert found.late == 1
        assert not freezing.done() and not writing.done()
        point.go.set()
        assert freezing.result(30) == season_of(database).frozen_at
        writing.result(30)
    assert take(database, result("n9", "bob"), boards=[board(), other]).late == 1
    assert set(totals(database, season)) == {b"ann"}


def test_i6_the_state_is_read_after_the_lock_was_had(database: Database, ledger_url: str) -> None:
    """I6: a writer that waited for the lock sees the mark made meanwhile, which its own lock statement could not."""
    season, _ = closing(database)
    with ThreadPoolExecutor(1) as pool, Database(ledger_url) as writer, Database(ledger_url) as freezer:
        with freezer.transaction():
            barrier.close(freezer, barrier.SEASONS, season.key, season.name)
            writing = pool.submit(take, writer, result("m1"))
            await_that(lambda: waits_for_lock(database))
            database.run(b"update finale.season set frozen_at = clock_timestamp()")
        assert writing.result(30).late == 1
    assert totals(database, season) == {}


def test_i6_freeze_under_sixteen_busy_writers(database: Database, ledger_url: str) -> None:
    """I6: with writers that never pause the freeze gets its turn; whoever begins after it is late, all others count."""
    season, lease = closing(database)
    stop, busy, names = Event(), Event(), numbers()
    results = [result(f"m{next(names)}", f"p{n % 10}", 1 + n % 3) for n in range(20_000)]
    frozen = Event()

    def write(number: int) -> list[tuple[bool, str, Recorded]]:
        done = []
        with Database(ledger_url) as own:
            for one in results[number::16]:
                if stop.is_set():
                    break
                after = frozen.is_set()
                done.append((after, one.match_id, take(own, one)))
                busy.set()
        return done

    with ThreadPoolExecutor(17) as pool:
        writers: list[Future[list[tuple[bool, str, Recorded]]]] = [pool.submit(write, n) for n in range(16)]
        try:
            assert busy.wait(60)
            with Database(ledger_url) as freezer:
                frozen_at = pool.submit(freeze, freezer, lease, season).result(60)
            frozen.set()
            counted = totals(database, season)
            already = count(database, "match_result")
            await_that(lambda: count(database, "match_result") > already + 50, 60)
        finally:
            stop.set()
        done = [entry for writer in writers for entry in writer.result(60)]
    assert all(found.new == 1 for _, _, found in done)
    assert all(found.late == 1 for after, _, found in done if after)
    in_time = {match for _, match, found in done if not found.late}
    assert counted == totals(database, season) == by_hand(one for one in results if one.match_id in in_time)
    assert count(database, "late_result") == len(done) - len(in_time) > 0
    assert frozen_at == season_of(database).frozen_at


def test_i8_freezing_again_gives_the_first_mark(database: Database) -> None:
    """I8: the step is repeated after a kill; the season stays frozen since the first time."""
    season, lease = closing(database)
    first = freeze(database, lease, season)
    assert freeze(database, lease, season) == first


def test_i8_a_freeze_killed_between_mark_and_barrier_is_finished_by_the_next(
    database: Database, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I8: the mark alone does not pass for a freeze: the next attempt still waits for whoever was counting."""
    season, lease = closing(database)
    only_batches(monkeypatch)
    with (
        ThreadPoolExecutor(2) as pool,
        Database(ledger_url) as writer,
        Database(ledger_url) as freezer,
        paused(monkeypatch, counting, "count") as point,
    ):
        writing = pool.submit(take, writer, result("m1", points=5))
        assert point.reached.wait(30)
        assert database.row("seasons.mark_frozen", lease.params) is not None
        freezing = pool.submit(freeze, freezer, lease, season)
        await_that(lambda: waits_for_lock(database))
        assert not freezing.done()
        point.go.set()
        freezing.result(30)
        assert writing.result(30).late == 0
    assert totals(database, season) == {b"ann": (5, NOON, 1)}
