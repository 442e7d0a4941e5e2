"""Totals counted anew: exactly those are found that the results do not make, on every kind of board, and are mended."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from random import Random
from typing import Any

import pytest

from leaderboard.errors import InputError, LeaseLostError, WrongStateError
from leaderboard.season import Season
from ledger import journal, voids
from ledger.database import Database
from ledger.recount import MENDED, mend, recount
from tests.ledger.support import NOON, board, leased, result, season_of, take, taken_over, totals

MINUTE = timedelta(minutes=1)
KINDS = list(product(("sum", "best", "last"), ("high", "low")))
NAMES = tuple(f"player {number:03d}" for number in range(60))


def _played(database: Database, aggregate: str, order: str) -> Season:
    """Play a season in several batches: up to six results a player, some at one instant, some of equal points."""
    chance = Random(f"{aggregate} {order}")
    made = board(aggregate=aggregate, order=order)
    results = [
        result(f"m{turn}", player=name, points=chance.randint(0, 6), at=NOON + chance.randrange(9) * MINUTE)
        for turn in range(6)
        for name in NAMES
        if chance.random() < 0.8
    ]
    chance.shuffle(results)
    for start in range(0, len(results), 50):
        take(database, *results[start : start + 50], boards=[made])
    for one in results[:5]:
        voids.void(database, made.source, one.match_id, player=one.player_id, who="ana", because="x")
    return season_of(database)


@pytest.mark.parametrize(("aggregate", "order"), KINDS)
def test_what_the_ledger_keeps_is_what_it_counts_anew(ledger_url: str, aggregate: str, order: str) -> None:
    """Sum, best and last, high and low, voids and matches of one instant: two ways of counting, nothing broken."""
    with Database(ledger_url) as database:
        season = _played(database, aggregate, order)
        assert len(totals(database, season)) == len(NAMES)
        assert recount(database, season).broken == 0


@pytest.mark.parametrize(("aggregate", "order"), KINDS)
def test_broken_totals_are_found_and_mended(ledger_url: str, aggregate: str, order: str) -> None:
    """Points, time, a total that is gone, one of nobody: exactly these are named, counted anew, pending and noted."""
    with Database(ledger_url) as database:
        season = _played(database, aggregate, order)
        right = totals(database, season)
        database.run(b"delete from finale.pending")
        _break(database)
        found = recount(database, season)
        expected = {b"player 003", b"player 007", b"player 011", b"nobody"}
        assert {one.player_id for one in found.examples} == expected and found.broken == 4
        lease = leased(database, season)
        assert mend(database, lease, season, who="ana", because="a bad update") == found
        assert totals(database, season) == right
        listed = database.run(b"select unnest(players) as player_id from finale.pending")
        assert {row["player_id"] for row in listed} == expected
        (entry,) = [one for one in journal.entries(database, season.key) if one.event == MENDED]
        assert (entry.who, entry.fence, entry.detail["totals"]) == ("ana", lease.fence, 4)
        assert mend(database, lease, season, who="ana", because="again").broken == 0
        assert len([one for one in journal.entries(database, season.key) if one.event == MENDED]) == 1
        # What is added afterwards is added to what was counted anew.
        take(database, result("later", player="player 003", points=2, at=NOON + 30 * MINUTE), boards=[season.board])
        assert recount(database, season).broken == 0


def _break(database: Database) -> None:
    for statement in (
        "insert into finale.player_total (season_id, player_id, points, reached_at, matches, version)"
        " select season_id, 'nobody', 5, reached_at, 1, 1 from finale.player_total where player_id = 'player 003'",
        "update finale.player_total set points = points + 1 where player_id = 'player 003'",
        "update finale.player_total set reached_at = reached_at - interval '1 hour' where player_id = 'player 007'",
        "delete from finale.player_total where player_id = 'player 011'",
    ):
        database.run(statement.encode())


def test_i9_who_lost_the_lease_mends_nothing(ledger_url: str) -> None:
    """I9: checked in the very transaction that changes the totals."""
    with Database(ledger_url) as database:
        season = _played(database, "sum", "high")
        lease = leased(database, season)
        _break(database)
        broken = totals(database, season)
        taken_over(database, lease)
        with pytest.raises(LeaseLostError):
            mend(database, lease, season, who="ana", because="x")
        assert totals(database, season) == broken
        assert not [one for one in journal.entries(database, season.key) if one.event == MENDED]


def test_results_that_no_score_can_hold_are_named_and_nothing_is_mended(ledger_url: str) -> None:
    """What a bad import put beyond the codec's range: the player, the points and the remedy; the rest stays too."""
    with Database(ledger_url) as database:
        season = _played(database, "sum", "high")
        _break(database)
        broken = totals(database, season)
        huge = "update finale.match_result set points = 9007199254740993 where player_id = 'player 020'"
        database.run(huge.encode())
        with pytest.raises(InputError, match="player 020"):
            mend(database, leased(database, season), season, who="ana", because="x")
        assert totals(database, season) == broken


def test_a_pruned_season_is_not_counted_anew(ledger_url: str) -> None:
    """Its results are in the archive: an error that says so, instead of every total being called broken."""
    with Database(ledger_url) as database:
        season = _played(database, "sum", "high")
        database.run(b"update finale.season set pruned_at = clock_timestamp()")
        refused: list[Any] = [
            lambda: recount(database, season),
            lambda: mend(database, leased(database, season), season, who="ana", because="x"),
        ]
        for ask in refused:
            with pytest.raises(WrongStateError, match="were pruned from the ledger"):
                ask()
        assert len(totals(database, season)) == len(NAMES)
