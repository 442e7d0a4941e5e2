"""Levers in the ledger: totals after a season was extended or reopened are those of its results, as if at first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from leaderboard.board import Board
from leaderboard.levers import Extension
from leaderboard.season import Season
from ledger import levers, voids
from ledger.database import Database
from ledger.freeze import freeze
from ledger.leases import Lease
from tests.ledger.support import HOUR, NOON, YEAR, board, by_hand, closing, count, result, season_of, take, totals

MINUTE = timedelta(minutes=1)
KINDS = [
    board(aggregate="sum"),
    board(aggregate="last"),
    board(aggregate="best"),
    board(aggregate="best", order="low"),
]


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with Database(ledger_url) as opened:
        yield opened


def _longer(season: Season, *_: object) -> Extension:
    bounds = replace(season.bounds, ends_at=season.bounds.ends_at + HOUR)
    return Extension(bounds, bounds.ends_at + HOUR, None)


def _reopened(database: Database, season: Season, lease: Lease) -> int:
    """Reopen a season until an hour after its end; return how many late results count now."""
    until = season.bounds.ends_at + HOUR
    return levers.reopen(database, lease, season, until, _longer, who="op", because="test")[1]


@pytest.mark.parametrize("kind", KINDS, ids=["sum", "last", "best", "least"])
def test_i6_whoever_played_is_counted_once_after_an_extension(database: Database, kind: Board) -> None:
    """I6: points, reached_at and matches are those of the results, with those played in the time that was added."""
    played = [result("m1", points=5), result("m2", points=5, at=NOON + MINUTE), result("m3", "bob", 1)]
    added = [result("m4", "bob", 7, YEAR.ends_at + MINUTE), result("m5", "eve", 2, YEAR.ends_at + MINUTE)]
    take(database, *played, *added, boards=[kind])
    database.run(b"delete from finale.season where season <> 's2021'")
    season = season_of(database)
    for _ in range(2):
        levers.extend(database, season, YEAR.ends_at + HOUR, _longer, who="op", because="test")
        assert totals(database, season) == by_hand([*played, *added], kind.aggregate, descending=kind.descending)


@pytest.mark.parametrize("kind", KINDS, ids=["sum", "last", "best", "least"])
def test_i6_a_reopened_season_counts_its_late_results_once(database: Database, kind: Board) -> None:
    """I6: what came late is counted, and nothing that was counted already is counted a second time."""
    season, lease = closing(database, kind)
    played = [result("m1", points=5), result("m2", points=5, at=NOON + MINUTE)]
    take(database, *played, boards=[kind])
    freeze(database, lease, season)
    late = [result("m3", points=9, at=NOON + 2 * MINUTE), result("m4", "bob", 1)]
    take(database, *late, boards=[kind])
    assert _reopened(database, season_of(database), lease) == 2
    assert totals(database, season) == by_hand([*played, *late], kind.aggregate, descending=kind.descending)


def test_i4_a_reopened_season_counts_nothing_that_was_voided_after_its_freeze(database: Database) -> None:
    """I4: open again, its totals no longer stand: no cheater is sealed, and corrections have nothing to undo."""
    season, lease = closing(database)
    take(database, result("m1", points=5), result("m2", points=90, at=NOON + MINUTE), result("m2", "eve", 90))
    freeze(database, lease, season)
    take(database, late := result("m3", points=1, at=NOON + 2 * MINUTE))
    voids.void(database, "goals", "m2", who="op", because="cheats")
    assert totals(database, season)[b"eve"] == (90, NOON, 1)
    _reopened(database, season_of(database), lease)
    assert totals(database, season) == by_hand([result("m1", points=5), late])
    assert count(database, "late_void") == 0
    assert voids.after_freeze(database, season.key) == []
