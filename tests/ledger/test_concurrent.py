"""Imports and appliers at once, on the same players: no deadlock, and totals that equal a count by hand."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from random import Random
from threading import Event

import pytest

from leaderboard.marks import Mark
from ledger import pending
from ledger.database import Database
from ledger.result_files import Chunk, Result, Unreadable
from ledger.results import Recorded, record
from tests.ledger.support import HOUR, NOON, board, by_hand, chunk, count, result, season_of, take, totals

WORKERS = 6


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with Database(ledger_url) as opened:
        yield opened


def _results(many: int) -> list[Result]:
    return [
        result(f"m{n}", f"p{n % 40}", n % 11 - 3, NOON + timedelta(minutes=n * 7 % 300), line=n + 2)
        for n in range(many)
    ]


def test_i6_overlapping_imports_count_every_result_once(database: Database, ledger_url: str) -> None:
    """I6: importers of overlapping batches in any order, with conflicts and unreadable rows, and an applier meanwhile.

    None fails, each result is new once, and the totals are those of all results counted by hand.
    """
    results = _results(1_200)
    wrong = [one._replace(points=99, line=5_000 + n) for n, one in enumerate(results[:60])]
    bad = [Unreadable(9_000 + n, "points 'x' is no whole number", {"match_id": f"x{n}"}) for n in range(40)]
    boards = [board("yearly", source="goals"), board("daily", source="goals", calendar={"every": "day"})]
    take(database, *results[:60], boards=boards)
    stop = Event()

    def work(seed: int) -> Recorded:
        chance, done = Random(seed), Recorded()
        with Database(ledger_url) as own:
            mine = chance.sample(results, 800) + wrong
            chance.shuffle(mine)
            for start in range(0, len(mine), 90):
                part = Chunk(mine[start : start + 90], chance.sample(bad, 20))
                done.add(record(own, "goals", boards, part, origin="test"))
        return done

    def apply() -> int:
        applied = 0
        with Database(ledger_url) as own:
            while not stop.is_set():
                for key in pending.seasons(own):
                    for lease in pending.claim(own, key, "applier", HOUR):
                        found = pending.read(own, [lease], 50)
                        pending.record(own, [lease], {(lease.bucket, 0): Mark(1)}, found.entries, HOUR)
                        applied += len(found.totals)
        return applied

    with ThreadPoolExecutor(WORKERS + 1) as pool:
        applying = pool.submit(apply)
        working = [pool.submit(work, seed) for seed in range(WORKERS)]
        wait(working, timeout=120)
        stop.set()
        done = [one.result(1) for one in working]
        assert applying.result(30) > 0
    taken = {one.match_id for one in results[:60]} | {
        row["match_id"] for row in database.run(b"select match_id from finale.match_result")
    }
    assert sum(one.new for one in done) == len(taken) - 60
    assert sum(one.conflicting for one in done) == 60 * WORKERS
    assert count(database, "set_aside") == 60 + 40
    expected = by_hand(one for one in results if one.match_id in taken)
    assert totals(database, season_of(database, "yearly")) == expected
    assert totals(database, season_of(database, "daily", "s20210601")) == expected


def test_i6_the_same_new_player_in_two_transactions(database: Database, ledger_url: str) -> None:
    """I6: two first results of one player, recorded at once, again and again: both count every time."""
    take(database, result("m", "nobody"))

    def work(number: int) -> int:
        with Database(ledger_url) as own:
            return sum(take(own, result(f"w{number}", f"p{n}", 1 + number)).new for n in range(60))

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, range(2))) == [60, 60]
    found = totals(database, season_of(database))
    assert {total for player, total in found.items() if player != b"nobody"} == {(3, NOON, 2)}


def test_appliers_at_once_take_each_change_off_once_written(database: Database, ledger_url: str) -> None:
    """Appliers that take buckets from each other by force never take off what the other has not read."""
    take(database, *(result(f"m{n}", f"p{n}", n) for n in range(300)))
    key = season_of(database).key
    written: dict[bytes, int] = {}

    def work(number: int) -> None:
        with Database(ledger_url) as own:
            while pending.count(own, key):
                for lease in pending.claim(own, key, f"applier {number}", HOUR, force=number == 0):
                    found = pending.read(own, [lease], 3)
                    written.update({total.player_id: total.points or 0 for total in found.totals})
                    if pending.record(own, [lease], {(lease.bucket, 0): Mark(1)}, found.entries, HOUR):
                        pending.release(own, [lease])

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    assert written == {f"p{n}".encode(): n for n in range(300)}


def test_chunk_numbers_its_lines() -> None:
    assert [one.line for one in chunk([result("a"), result("b", line=9)]).results] == [2, 9]
