"""Large chunks: their totals are written by a thread beside the recording, to the same end as one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from jobs.boards import projection
from jobs.boards.projection import apply_pending
from jobs.results import taking
from jobs.results.beside import Beside
from jobs.results.taking import Taken, take_chunks
from jobs.wiring import Outside
from leaderboard.errors import UnavailableError
from ledger import pending
from ledger.result_files import Chunk, Result
from ledger.results import record
from tests.jobs.test_projection import CONFIG, LAYOUTS, NOW, check, season
from tests.ledger.support import chunk, result
from tests.support.cli import World


@pytest.fixture
def outside(world: World) -> Iterator[Outside]:
    world.configure(CONFIG.replace("LAYOUT", LAYOUTS["one set"]))
    with world.outside() as wired:
        yield wired


@pytest.fixture(autouse=True)
def every_chunk_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "_LARGE", 5)


def _chunks(*sizes: int) -> list[Chunk]:
    found, done = [], 0
    for size in sizes:
        found.append(chunk(_result(at) for at in range(done, done + size)))
        done += size
    return found


def _result(at: int) -> Result:
    return result(f"m{at}", f"p{at % 17}", at % 7, NOW - timedelta(hours=99) + timedelta(minutes=at))


def _take(outside: Outside, chunks: list[Chunk]) -> Taken:
    taken = Taken()
    take_chunks(outside, chunks, "b", [outside.boards["b"]], taken, "test", lambda rows: None)
    return taken


def test_i6_chunks_large_and_small_end_on_the_board(outside: Outside) -> None:
    """I6: each counts once, and nothing waits at the end, whichever way the last chunk went."""
    for sizes in ((40, 30, 20), (40, 3, 30), (40, 30, 3)):
        taken = _take(outside, _chunks(*sizes))
        assert taken.unapplied is None and taken.recorded.new + taken.recorded.repeated == sum(sizes)
        assert pending.count(outside.database, season(outside).key) == 0
        check(outside)


def test_a_redis_that_refuses_is_told_and_loses_nothing(outside: Outside) -> None:
    """The ledger has every row; the error is told once; the totals wait for the next import."""
    outside.redis.set("leaderboard:b:one", "no board")
    taken = _take(outside, _chunks(40, 30))
    assert taken.recorded.new == 70 and taken.unapplied is not None and taken.applied == 0
    assert pending.count(outside.database, season(outside).key) == 17
    outside.redis.delete("leaderboard:b:one")
    assert _take(outside, _chunks(40, 31)).unapplied is None
    check(outside)


def test_recording_does_not_wait_and_what_came_meanwhile_is_written_in_one_go(outside: Outside) -> None:
    """While a write is under way further seasons are noted, and follow in one call."""
    calls: list[set[int]] = []
    begun, go_on = Event(), Event()

    def write(own: Outside, keys: set[int]) -> None:
        calls.append(keys)
        if len(calls) == 1:
            assert own.database is not outside.database
            begun.set()
            assert go_on.wait(60)

    with Beside(outside, write) as beside:
        beside.tell({1})
        assert begun.wait(60)
        beside.tell({2})
        beside.tell({3})
        go_on.set()
    assert calls == [{1}, {2, 3}]


def test_an_error_of_the_writer_reaches_the_caller_and_its_connection_is_closed(outside: Outside) -> None:
    """Nobody goes on in the belief that all was written."""
    owns: list[Outside] = []

    def write(own: Outside, keys: set[int]) -> None:
        owns.append(replace(own))
        raise UnavailableError("gone")

    with pytest.raises(UnavailableError, match="gone"), Beside(outside, write) as beside:
        beside.tell({1})
        beside.finish()
    assert not owns[0].database.usable


def test_one_player_who_waits_many_times_does_not_end_the_round(
    outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round that is full of one player's entries is followed by the next: all is written under one claim."""
    monkeypatch.setattr(projection, "BATCH", 4)
    for at in range(30):
        record(outside.database, "b", [outside.boards["b"]], chunk([_result(at * 17)]), origin="test")
    claims: list[int] = []
    real = pending.claim

    def counted(*arguments: Any, **named: Any) -> Any:
        found = real(*arguments, **named)
        claims.append(len(found))
        return found

    monkeypatch.setattr(pending, "claim", counted)
    apply_pending(outside, season(outside), "one")
    assert claims == [1] and pending.count(outside.database, season(outside).key) == 0
    check(outside)
