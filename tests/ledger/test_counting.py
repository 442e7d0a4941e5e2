"""Totals: points, when they were first held, and how many matches, against a count in plain Python."""

from __future__ import annotations

from datetime import timedelta
from itertools import count as numbers
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.database import Database
from ledger.result_files import Result
from tests.ledger.support import NOON, board, by_hand, result, season_of, take, totals

MINUTE = timedelta(minutes=1)
_names = numbers()


def _held(ledger_url: str, *results: Result, **fields: Any) -> tuple[int, int, int]:
    """Return points, minutes after noon and matches of the one player, after one batch."""
    with Database(ledger_url) as database:
        take(database, *results, boards=[board(**fields)])
        [(points, reached_at, matches)] = totals(database, season_of(database)).values()
        return points, (reached_at - NOON) // MINUTE, matches


def _played(*points: int) -> list[Result]:
    return [result(f"m{n}", points=each, at=NOON + n * MINUTE) for n, each in enumerate(points)]


@pytest.mark.parametrize(
    ("aggregate", "order", "points", "expected"),
    [
        ("sum", "high", (2, 3, 4), (9, 2, 3)),
        ("sum", "high", (5, -3, 3, -3, 3), (5, 0, 5)),
        ("sum", "high", (5, 0, 0), (5, 0, 3)),
        ("sum", "low", (0,), (0, 0, 1)),
        ("sum", "high", (-2, -3), (-5, 1, 2)),
        ("best", "high", (3, 7, 7, 5), (7, 1, 4)),
        ("best", "high", (-3, -7), (-3, 0, 2)),
        ("best", "low", (3, 7, 2, 2), (2, 2, 4)),
        ("last", "high", (3, 7, 3), (3, 0, 3)),
        ("last", "low", (3, 7, 5), (5, 2, 3)),
    ],
)
def test_points_are_reached_when_first_held(
    ledger_url: str, aggregate: str, order: str, points: tuple[int, ...], expected: tuple[int, int, int]
) -> None:
    """C75: sum, best and last, high and low, with zero and negative points; reached_at goes by played_at."""
    assert _held(ledger_url, *_played(*points), aggregate=aggregate, order=order) == expected


def test_matches_of_one_instant_take_effect_together(ledger_url: str) -> None:
    """No total between them is ever held; the last of them is the one with the highest match id in byte order."""
    at_once = [result("b", points=-5), result("a", points=5), result("c", points=1)]
    assert _held(ledger_url, *at_once, aggregate="last") == (1, 0, 3)


def test_sums_between_matches_of_one_instant_were_never_held(ledger_url: str) -> None:
    """Five points and minus five at noon are none; the five a minute later are held from then on."""
    played = [result("a", points=5), result("b", points=-5), result("c", points=5, at=NOON + MINUTE)]
    assert _held(ledger_url, *played) == (5, 1, 3)


def test_an_earlier_match_that_comes_later_moves_reached_at(ledger_url: str) -> None:
    """What counts is when it was played: a match of ten minutes ago puts the points that far back."""
    with Database(ledger_url) as database:
        take(database, result("m1", points=3, at=NOON + 10 * MINUTE), result("m2", points=0, at=NOON + 20 * MINUTE))
        assert totals(database, season_of(database)) == {b"ann": (3, NOON + 10 * MINUTE, 2)}
        take(database, result("m3", points=2, at=NOON + 15 * MINUTE))
        assert totals(database, season_of(database)) == {b"ann": (5, NOON + 15 * MINUTE, 3)}
        take(database, result("m4", points=5, at=NOON), result("m5", points=-5, at=NOON + 5 * MINUTE))
        assert totals(database, season_of(database)) == {b"ann": (5, NOON, 5)}


def test_players_are_bytes_and_apart(ledger_url: str) -> None:
    """Ids that a collation would take for one another, or that are no text at all, are players of their own."""
    players = [b"\xff\x00", b"Ann", b"ann", "ä".encode(), "a\u0308".encode(), b"ann "]
    with Database(ledger_url) as database:
        take(database, *(result("m1", player, n) for n, player in enumerate(players)))
        assert {player: total[0] for player, total in totals(database, season_of(database)).items()} == {
            player: n for n, player in enumerate(players)
        }


def test_one_match_with_many_players(ledger_url: str) -> None:
    """C72: sums of whole numbers are exact, also near the ceiling, where doubles would round."""
    big = 2**52
    with Database(ledger_url) as database:
        found = take(database, *(result("m1", f"p{n}", n) for n in range(5_000)))
        assert found.new == 5_000
        take(database, result("m2", "p1", big), result("m3", "p1", big - 2))
        assert totals(database, season_of(database))[b"p1"][0] == 2**53 - 1


results_of_few = st.lists(
    st.tuples(st.sampled_from(["ann", "bob", "cat"]), st.integers(-3, 3), st.integers(0, 5)), min_size=1, max_size=14
)


@given(
    played=results_of_few,
    aggregate=st.sampled_from(["sum", "best", "last"]),
    order=st.sampled_from(["high", "low"]),
    seed=st.integers(0, 2**32),
)
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_i6_totals_equal_a_count_by_hand(
    ledger_url: str, played: list[tuple[str, int, int]], aggregate: str, order: str, seed: int
) -> None:
    """I6: however results are shuffled, split into batches and repeated, totals are those of the whole counted once."""
    name, chance = f"board{next(_names)}", Random(seed)
    results = [result(f"m{n}", who, points, NOON + at * MINUTE) for n, (who, points, at) in enumerate(played)]
    shuffled = chance.sample(results, len(results)) + chance.sample(results, len(results) // 3)
    one = board(name, aggregate=aggregate, order=order)
    with Database(ledger_url) as database:
        while shuffled:
            size = chance.randint(1, len(shuffled))
            take(database, *shuffled[:size], boards=[one], source=name)
            shuffled = shuffled[size:]
        expected = by_hand(results, aggregate, descending=order == "high")
        assert totals(database, season_of(database, name)) == expected
