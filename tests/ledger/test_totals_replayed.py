"""Totals against a brute force that replays every match in the order it was played, whatever came in which order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import count as numbers
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import voids
from ledger.database import Database
from ledger.result_files import Result
from tests.ledger.support import NOON, board, by_hand, result, season_of, take, totals

MINUTE = timedelta(minutes=1)
KINDS = [(aggregate, order) for aggregate in ("sum", "best", "last") for order in ("high", "low")]
_names = numbers()

#: Who, how many points, when: few of each, so that ties, zeros, equal instants and returns to old points are common.
played = st.lists(st.tuples(st.sampled_from("ab"), st.integers(-2, 3), st.integers(0, 7)), min_size=1, max_size=16)


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with Database(ledger_url) as opened:
        yield opened


#: One source, counted in every way; the players and matches of each replay are its own.
BOARDS = {
    (aggregate, order): board(f"{aggregate}-{order}", source="s", aggregate=aggregate, order=order)
    for aggregate, order in KINDS
}


def _check(database: Database, players: list[bytes], counted: list[Result]) -> None:
    rows = database.run(
        b"select s.board, t.player_id, t.points, t.reached_at, t.matches from finale.player_total t"
        b" join finale.season s using (season_id) where t.player_id = any(%(players)s)",
        {"players": players},
    )
    for (aggregate, order), one in BOARDS.items():
        found = {
            row["player_id"]: (row["points"], row["reached_at"], row["matches"])
            for row in rows
            if row["board"] == one.name
        }
        assert found == by_hand(counted, aggregate, descending=order == "high"), (aggregate, order)


def _replay(database: Database, played: list[tuple[str, int, int]], seed: int, *, in_order: bool, void: bool) -> None:
    """Take the matches in batches of any size, some twice, some voided on the way; check all kinds after each."""
    own, chance = next(_names), Random(seed)
    results = [
        result(f"{own}-{n}", f"{who}{own}", points, NOON + at * MINUTE) for n, (who, points, at) in enumerate(played)
    ]
    coming = (
        sorted(results, key=lambda one: one.played_at) if in_order else chance.sample(results, len(results))
    ) + chance.sample(results, len(results) // 3)
    came: dict[str, Result] = {}
    gone: set[str] = set()
    while coming:
        size = chance.randint(1, len(coming))
        take(database, *coming[:size], boards=list(BOARDS.values()), source="s")
        came |= {one.match_id: one for one in coming[:size]}
        coming = coming[size:]
        if void and chance.random() < 0.7:
            match = chance.choice(sorted(came))
            voids.void(database, "s", match, who="op", because="test")
            gone.add(match)
        players = sorted({one.player_id for one in results})
        _check(database, players, [one for match, one in came.items() if match not in gone])


@given(played=played, seed=st.integers(0, 2**32), in_order=st.booleans(), void=st.booleans())
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_i6_totals_equal_a_replay_after_every_batch(
    database: Database, played: list[tuple[str, int, int]], seed: int, in_order: bool, void: bool
) -> None:
    """I6: all aggregates and orders; zero and negative points, equal instants, repeats, late arrivals, voids."""
    _replay(database, played, seed, in_order=in_order, void=void)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@given(played=played, seed=st.integers(0, 2**32), in_order=st.booleans(), void=st.booleans())
@settings(max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_i6_thousands_of_replays(
    database: Database, played: list[tuple[str, int, int]], seed: int, in_order: bool, void: bool
) -> None:
    """I6: the same, thousands of times."""
    _replay(database, played, seed, in_order=in_order, void=void)


@pytest.mark.parametrize(("aggregate", "order"), KINDS)
def test_later_matches_are_added_without_counting_the_earlier_ones_again(
    database: Database, aggregate: str, order: str
) -> None:
    """Speed: of matches that come in order, the earlier ones are not read again: here they could not be."""
    one = board(aggregate=aggregate, order=order)
    first = [result(f"m{n}", points=n, at=NOON + n * MINUTE) for n in range(1, 4)]
    take(database, *first, boards=[one])
    database.run(b"delete from finale.match_result")
    take(database, result("m9", points=9, at=NOON + 9 * MINUTE), boards=[one])
    expected = by_hand([*first, result("m9", points=9, at=NOON + 9 * MINUTE)], aggregate, descending=order == "high")
    assert totals(database, season_of(database)) == expected


def test_totals_from_before_a_migration_are_counted_anew(database: Database) -> None:
    """A total that does not know its span and extremes is recounted with the next match, and knows them then."""
    take(database, result("m1", points=5), result("m2", points=-5, at=NOON + MINUTE))
    database.run(b"update finale.player_total set first_at = null, last_at = null, highest = null, lowest = null")
    take(database, result("m3", points=5, at=NOON + 2 * MINUTE))
    assert totals(database, season_of(database)) == {b"ann": (5, NOON, 3)}
    [row] = database.run(b"select first_at, last_at, highest, lowest from finale.player_total")
    assert row == {"first_at": NOON, "last_at": NOON + 2 * MINUTE, "highest": 5, "lowest": 0}


def test_sums_past_int8_are_refused_and_not_wrapped(database: Database) -> None:
    """C72: 2,000 results near 2^53 come to more than an int8 holds: the first fits, all others are refused."""
    big = 2**53 - 1
    found = take(database, *(result(f"m{n}", points=big, at=NOON + n * MINUTE) for n in range(2_000)))
    assert (found.new, found.refused) == (1, 1_999)
    assert f"{2 * big:,} points" in found.remarks[0].reason
    take(database, result("a", "bob", big), result("b", "bob", -big, at=NOON + MINUTE))
    assert totals(database, season_of(database)) == {b"ann": (big, NOON, 1), b"bob": (0, NOON + MINUTE, 2)}
