"""Bounds: aware, half-open, never empty."""

from datetime import UTC, datetime, timedelta

import pytest

from leaderboard.board import Board
from leaderboard.errors import ConfigError
from leaderboard.season import Bounds, unstored
from leaderboard.states import State

START = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(2027, 1, 1, tzinfo=UTC)


def test_c73_bounds_are_half_open():
    """C73: the start is in, the end is not."""
    bounds = Bounds(START, END, "s2026")
    assert START in bounds
    assert END not in bounds
    assert END - timedelta(microseconds=1) in bounds
    assert START - timedelta(microseconds=1) not in bounds


@pytest.mark.parametrize(
    ("starts_at", "ends_at"), [(START, START), (END, START), (START.replace(tzinfo=None), END.replace(tzinfo=None))]
)
def test_bounds_that_are_empty_reversed_or_naive_are_refused(starts_at, ends_at):
    with pytest.raises(ValueError, match="season s2026"):
        Bounds(starts_at, ends_at, "s2026")


def test_c30_a_bound_with_a_bad_id_is_refused():
    """C30: checked before it becomes a key or a path."""
    with pytest.raises(ConfigError, match="'a/b'"):
        Bounds(START, END, "a/b")


def test_bounds_sort_by_time():
    later = Bounds(END, END + timedelta(days=1), "a")
    assert sorted([later, Bounds(START, END, "z")])[-1] == later


def test_a_season_is_called_board_and_id():
    board = Board.model_validate({"name": "goals", "calendar": {"every": "year"}})
    season = unstored(board, Bounds(START, END, "s2026"), State.OPEN)
    assert (season.id, season.name) == ("s2026", "goals/s2026")
