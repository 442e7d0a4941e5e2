"""Boards beside each other: keys that could coincide, and seasons that do not fit their scores."""

from datetime import UTC, datetime

import pytest

from config.checks import check_boards, sample
from leaderboard.board import Board

NOW = datetime(2026, 12, 4, 18, tzinfo=UTC)
YEAR = {"every": "year"}


def board(name, **given):
    return Board.model_validate({"name": name, "calendar": YEAR, "ties": "shared", **given})


def faults(*boards):
    return check_boards(boards, NOW)


def test_boards_that_keep_apart_pass():
    """Different names in one template, and different templates, are no fault."""
    assert faults(board("a"), board("b"), board("c", key="lb:<season>"), board("d", current_key="now:<board>")) == []


@pytest.mark.parametrize("keys", [("lb:<season>", "lb:<season>"), ("lb:<board>:<season>", "lb:a:<season>")])
def test_same_live_keys_are_refused(keys):
    """Two boards whose seasons would share a sorted set are refused, also where only one template names the board."""
    (fault,) = faults(board("a", key=keys[0]), board("b", key=keys[1]))
    assert "board.b.key" in fault
    assert "board a would have the same live keys" in fault


def test_templates_that_meet_in_one_season_are_refused():
    """Different templates that give one season's key twice are found by trying the seasons to come."""
    (fault,) = faults(board("a", key="lb:<season>"), board("b", key="lb:s<starts_at:%Y>"))
    assert "a/s2026 and b/s2026 would have the same live key 'lb:s2026'" in fault


def test_a_template_too_coarse_for_its_seasons_is_refused():
    """Weeks whose key names only the year would all share it, and cleaning one would delete the next."""
    (fault,) = faults(board("a", key="lb:<starts_at:%Y>", calendar={"every": "week"}))
    assert "would have the same live key" in fault


def test_same_current_keys_are_refused():
    """Two boards cannot both say which season is open in one string key, nor in a live key."""
    (fault,) = faults(board("a", current_key="open"), board("b", current_key="open"))
    assert "board.b.current_key = 'open': board a has the same" in fault
    (fault,) = faults(board("a", current_key="leaderboard:b:s2027"), board("b"))
    assert "'leaderboard:b:s2027' is the current_key of board a" in fault


def test_c02_a_season_too_long_for_its_unit_is_refused_with_the_arithmetic():
    """C02: a year in seconds does not fit below 2^24; the fault says how many there are, and which unit fits."""
    (fault,) = faults(board("a", ties={"by": "first_to_reach", "unit": "second"}))
    assert "31,536,000 seconds" in fault
    assert "16,777,216" in fault
    assert 'unit = "minute"' in fault


def test_a_leap_year_to_come_is_tried():
    """A multiplier that holds 365 days of minutes, not 366, is refused today, not in 2028."""
    (fault,) = faults(board("a", ties={"by": "first_to_reach", "unit": "minute", "multiplier": 525_600}))
    assert "s2028" in fault


def test_listed_seasons_are_tried_wholly():
    """In a list every season is tried, past ones too."""
    listed = [
        {"id": "old", "starts_at": "1999-01-01T00:00:00", "ends_at": "2000-01-01T00:00:00"},
        {"id": "new", "starts_at": "2099-01-01T00:00:00", "ends_at": "2099-02-01T00:00:00"},
    ]
    ties = {"by": "first_to_reach", "unit": "second"}
    (fault,) = faults(board("a", ties=ties, calendar={"seasons": listed}))
    assert "season old" in fault
    assert faults(board("a", ties=ties, calendar={"seasons": listed[1:]})) == []


@pytest.mark.parametrize(
    ("calendar", "least", "most"),
    [
        (YEAR, 5, 7),
        ({"every": "day"}, 400, 400),
        ({"every": "9 years", "anchor": "2020-01-01"}, 3, 3),
    ],
)
def test_a_bounded_number_of_seasons_is_tried(calendar, least, most):
    """Years to come are tried, but not more seasons than a start of the program can bear."""
    tried = list(sample(board("a", calendar=calendar), NOW))
    assert least <= len(tried) <= most
    assert NOW in tried[0]


def test_seasons_of_a_board_frozen_by_renaming_may_share_a_key_and_no_other_board_may():
    """One key for ever is one board's: another board that would meet it in any season is refused."""
    ever = board("a", key="lb", freeze="rename", ledger="none")
    assert faults(ever) == []
    (fault,) = faults(ever, board("b", key="lb", freeze="rename", ledger="none"))
    assert "board a would have the same live keys" in fault
    (fault,) = faults(board("c", key="lb:s2027", freeze="rename", ledger="none"), board("d", key="lb:<season>"))
    assert "would have the same live key 'lb:s2027'" in fault
    (fault,) = faults(board("e", key="lb:<starts_at:%Y>", freeze="rename", calendar={"every": "week"}))
    assert "would have the same live key" in fault
