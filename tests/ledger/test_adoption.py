"""Adopted seasons: frozen from the first, counted from what the ledger has, begun anew only before their seal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from leaderboard.errors import LeaseLostError, WrongStateError
from leaderboard.season import Bounds
from leaderboard.states import State
from ledger import adoption, pending, seals, seasons
from ledger.database import Database
from tests.ledger.support import NOON, YEAR, board, by_hand, leased, result, season_of, take, taken_over, totals

KEY = "old board/2021"
PLAYED = [result(f"m{n}", f"p{n % 3}", n, NOON + timedelta(minutes=n), n=n % 2) for n in range(9)]


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    """A ledger that has results which another board has counted."""
    with Database(ledger_url) as opened:
        take(opened, *PLAYED, boards=[board("old", source="goals")])
        yield opened


def _body(number: int, previous: str | None, now: datetime) -> bytes:
    return f"{number} {previous} {now}".encode()


def test_an_adopted_season_begins_frozen_with_the_results_that_the_ledger_has(database: Database) -> None:
    """I6: they are counted as for any board; nothing of them waits to be written to the key, and never will."""
    adoption.adopt(database, board(), YEAR, KEY, who="ana")
    season = season_of(database)
    assert (season.state, season.adopted, season.backfill, season.live_key) == (State.FROZEN, True, True, KEY)
    assert season.frozen_at is not None
    assert totals(database, season) == by_hand(PLAYED)
    assert pending.count(database, season.key) == 0
    boards = [board("old", source="goals"), board()]
    assert take(database, result("late", "p0", 100), boards=boards).late == 1
    assert totals(database, season) == by_hand(PLAYED)


def test_a_season_or_key_is_adopted_once(database: Database) -> None:
    """The same season, or a key that a season has, is refused; a season of another board with its own key is not."""
    adoption.adopt(database, board(), YEAR, KEY, who="ana")
    with pytest.raises(WrongStateError, match="exists already"):
        adoption.adopt(database, board(), YEAR, "another", who="ana")
    with pytest.raises(WrongStateError, match="live key of goals/s2021"):
        adoption.adopt(database, board("laps"), YEAR, KEY, who="ana")
    with pytest.raises(WrongStateError, match="live key of old/s2021"):
        adoption.adopt(database, board("laps"), YEAR, season_of(database, "old").live_key, who="ana")
    adoption.adopt(database, board("laps", ledger="none"), YEAR, "another", who="ana")
    assert totals(database, season_of(database, "laps")) == {}


def test_it_is_begun_anew_with_another_board_and_bounds(database: Database) -> None:
    """Totals are those of the new filter and bounds, the hold is over, the state is frozen again."""
    adoption.adopt(database, board(), YEAR, KEY, who="ana")
    season = season_of(database)
    lease = leased(database, season)
    seasons.advance(database, lease, State.FROZEN, State.SNAPSHOTTED)
    seasons.hold(database, lease, "drift", "", "")
    bounds = Bounds(YEAR.starts_at, NOON + timedelta(minutes=6), "s2021")
    adoption.adopt_again(database, lease, season_of(database), board(where={"n": 1}), bounds, who="bob")
    season = season_of(database)
    assert (season.state, season.hold, season.bounds, season.live_key) == (State.FROZEN, None, bounds, KEY)
    odd = [one for one in PLAYED if one.attributes == {"n": 1} and one.played_at < bounds.ends_at]
    assert totals(database, season) == by_hand(odd)
    assert pending.count(database, season.key) == 0


def test_i2_it_is_not_begun_anew_once_a_seal_is_committed(database: Database) -> None:
    """I2: what is committed to be sealed is sealed as it was, though its step was not recorded."""
    adoption.adopt(database, board(), YEAR, KEY, who="ana")
    season = season_of(database)
    lease = leased(database, season)
    seals.commit(database, lease, "goals", "standings", _body)
    with pytest.raises(WrongStateError, match="committed"):
        adoption.adopt_again(database, lease, season, board(ledger="none"), YEAR, who="bob")
    assert season_of(database) == season


def test_i9_only_who_has_the_lease_begins_it_anew(database: Database) -> None:
    """I9: after a take-over nothing is changed, nor of a season that was not adopted."""
    adoption.adopt(database, board(), YEAR, KEY, who="ana")
    season = season_of(database)
    lease = leased(database, season)
    taken_over(database, lease)
    with pytest.raises(LeaseLostError):
        adoption.adopt_again(database, lease, season, board(ledger="none"), YEAR, who="bob")
    assert season_of(database) == season
    old = season_of(database, "old")
    with pytest.raises(WrongStateError):
        adoption.adopt_again(database, leased(database, old), old, old.board, YEAR, who="bob")
    assert season_of(database, "old") == old
