"""A single result takes one statement where nothing is special, and the way of batches otherwise: the same end."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from random import Random

import pytest

from ledger import pending, single, voids
from ledger import results as recording
from ledger.database import Database
from ledger.freeze import freeze
from ledger.result_files import Result
from tests.ledger.support import NOON, board, by_hand, closing, result, season_of, take, totals

MINUTE = timedelta(minutes=1)
KINDS = [(aggregate, order) for aggregate in ("sum", "best", "last") for order in ("high", "low")]
BOARDS = [board(f"{aggregate}-{order}", source="goals", aggregate=aggregate, order=order) for aggregate, order in KINDS]


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with Database(ledger_url) as opened:
        yield opened


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each single result was taken by one statement."""
    found: list[bool] = []
    real = single.record

    def watched(*arguments: object) -> set[int] | None:
        counted = real(*arguments)  # type: ignore[arg-type]  # passed on as they came
        found.append(counted is not None)
        return counted

    monkeypatch.setattr(recording.single, "record", watched)
    return found


def test_results_that_come_in_order_take_one_statement_each(database: Database, quick: list[bool]) -> None:
    """The first makes the season; every other is counted by all boards at once, and is pending."""
    for number in range(1, 6):
        found = take(database, result(f"m{number}", points=number, at=NOON + number * MINUTE), boards=BOARDS)
        assert (found.new, found.refused, found.late) == (1, 0, 0) and len(found.seasons) == len(BOARDS)
    assert quick == [False, True, True, True, True]
    assert all(pending.count(database, season_of(database, kind.name).key) == 1 for kind in BOARDS)


def test_i6_one_by_one_in_any_order_equals_a_replay(database: Database, quick: list[bool]) -> None:
    """I6: shuffled, repeated, equal instants, zero and negative points: all kinds as counted by hand, after each."""
    chance = Random(11)
    results = [
        result(f"m{n}", chance.choice(["ann", "bob"]), chance.randint(-2, 3), NOON + chance.randint(0, 9) * MINUTE)
        for n in range(24)
    ]
    came: list[Result] = []
    for one in [*chance.sample(results, len(results)), *results[:4]]:
        found = take(database, one, boards=BOARDS)
        assert found.new == (one not in came) and found.repeated == (one in came)
        came += [one] if one not in came else []
        for kind in BOARDS:
            expected = by_hand(came, kind.aggregate, descending=kind.descending)
            assert totals(database, season_of(database, kind.name)) == expected, kind.name
    assert True in quick and False in quick


def test_what_is_special_takes_the_way_of_batches(database: Database, quick: list[bool]) -> None:
    """Known, in conflict, void, past the ceiling, of no season, late, of a filter that it fails: told as ever."""
    tight = board(ties={"by": "first_to_reach", "unit": "minute"})
    take(database, result("m1", points=5), boards=[tight])
    quick.clear()
    assert take(database, result("m1", points=5), boards=[tight]).repeated == 1
    assert take(database, result("m1", points=6), boards=[tight]).conflicting == 1
    assert "can hold 0 to" in take(database, result("m2", points=-9), boards=[tight]).remarks[0].reason
    assert take(database, result("m3", at=database.now() + timedelta(hours=1)), boards=[tight]).refused == 1
    voids.void(database, "goals", "m1", who="op", because="test")
    assert "voided" in take(database, result("m1", "bob"), boards=[tight]).remarks[0].reason
    europe = board("europe", source="goals", where={"region": "eu"})
    assert take(database, result("m4", at=NOON, region="us"), boards=[europe]).new == 1
    assert not any(quick)
    assert take(database, result("m5", at=NOON + MINUTE, region="eu"), boards=[tight, europe]).new == 1
    assert quick[-1]


def test_i6_after_the_freeze_a_single_result_is_late(database: Database, quick: list[bool]) -> None:
    season, lease = closing(database)
    take(database, result("m1"))
    freeze(database, lease, season)
    assert take(database, result("m2", at=NOON + MINUTE)).late == 1
    assert totals(database, season) == {b"ann": (1, NOON, 1)}
    assert quick[-1] is False


def test_i6_single_results_of_one_player_at_once(database: Database, ledger_url: str) -> None:
    """I6: writers of the same player's totals at the same time, one of them in batches: each result counts once."""
    boards = BOARDS[::-1]  # so that their seasons' numbers are in another order than a batch has the aggregates
    take(database, result("m", "ann", 0, NOON - MINUTE), boards=boards)
    results = [result(f"m{n}", "ann", n % 5 - 1, NOON + (n * 7 % 40) * MINUTE) for n in range(120)]

    def work(number: int) -> int:
        mine, size = results[number::3], 1 if number else 2
        with Database(ledger_url) as own:
            return sum(take(own, *mine[at : at + size], boards=boards).new for at in range(0, len(mine), size))

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(work, range(3))) == len(results)
    every = [result("m", "ann", 0, NOON - MINUTE), *results]
    for kind in boards:
        expected = by_hand(every, kind.aggregate, descending=kind.descending)
        assert totals(database, season_of(database, kind.name)) == expected
