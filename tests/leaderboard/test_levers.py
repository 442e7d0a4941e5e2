"""The verdicts on levers, without any server."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leaderboard.board import Board
from leaderboard.errors import WrongStateError
from leaderboard.levers import Past, check_cancellable, check_retryable, expected_seconds, extend, reopen
from leaderboard.season import Bounds, Hold, Season, unstored
from leaderboard.states import State

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def a_season(state: State = State.OPEN, **changed: object) -> Season:
    board = Board.model_validate({"name": "cup", "calendar": {"every": "week"}, "ties": "shared"})
    season = replace(unstored(board, Bounds(NOW - DAY, NOW + DAY, "s1"), state), key=1)
    return replace(season, **changed)  # type: ignore[arg-type]  # passed on as they came


AFTER = a_season(State.SCHEDULED, key=2, bounds=Bounds(NOW + DAY, NOW + 3 * DAY, "s2"))


@pytest.mark.parametrize("state", State)
def test_only_a_season_before_its_cutoff_is_extended(state: State) -> None:
    """Open or scheduled, not adopted, and the cutoff still to come; at the cutoff itself it is too late."""
    if state in (State.SCHEDULED, State.OPEN):
        done = extend(a_season(state), NOW + 2 * DAY, NOW, [(AFTER, False)])
        assert (done.bounds.ends_at, done.closes_at - done.bounds.ends_at) == (NOW + 2 * DAY, timedelta(minutes=15))
        assert done.following == Bounds(NOW + 2 * DAY, NOW + 3 * DAY, "s2")
        for season, now in ((a_season(state), NOW + DAY), (a_season(state, adopted=True), NOW)):
            with pytest.raises(WrongStateError):
                extend(season, NOW + 2 * DAY, now)
    else:
        with pytest.raises(WrongStateError):
            extend(a_season(state), NOW + 2 * DAY, NOW)


def test_the_next_season_moves_only_while_nothing_has_happened_in_it() -> None:
    """With results, opened, or with nothing left of it, it stands, and the extension is refused."""
    for following in (
        [(AFTER, True)],
        [(replace(AFTER, state=State.OPEN), False)],
        [(replace(AFTER, bounds=Bounds(NOW + DAY, NOW + 2 * DAY, "s2")), False)],
        [(AFTER, False), (replace(AFTER, key=3, bounds=Bounds(NOW + 3 * DAY, NOW + 4 * DAY, "s3")), False)],
    ):
        with pytest.raises(WrongStateError):
            extend(a_season(), NOW + 2 * DAY, NOW, following)


@pytest.mark.parametrize("state", State)
def test_i2_only_between_the_cutoff_and_the_seal_a_season_is_reopened(state: State) -> None:
    """I2: closing to reconciled, with no seal committed, no adopted and no renamed key, and not to close at once."""
    season, until = a_season(state, bounds=Bounds(NOW - 3 * DAY, NOW - DAY, "s1")), NOW + DAY
    if state not in (State.CLOSING, State.FROZEN, State.SNAPSHOTTED, State.RECONCILED):
        with pytest.raises(WrongStateError):
            reopen(season, NOW, until=None, closes_at=until, sealing=False)
        return
    done = reopen(season, NOW, until=None, closes_at=until, sealing=False)
    assert (done.bounds, done.closes_at) == (season.bounds, until)
    renamed = replace(season, board=season.board.model_copy(update={"freeze": "rename"}), frozen_at=NOW)
    for refused, closes_at, sealing in (
        (season, until, True),
        (season, NOW, False),
        (replace(season, adopted=True), until, False),
        (renamed, until, False),
    ):
        with pytest.raises(WrongStateError):
            reopen(refused, NOW, until=None, closes_at=closes_at, sealing=sealing)


@pytest.mark.parametrize("state", State)
def test_only_what_never_opened_and_has_no_results_is_cancelled(state: State) -> None:
    if state is State.SCHEDULED:
        check_cancellable(a_season(state), False)
        with pytest.raises(WrongStateError, match="has results"):
            check_cancellable(a_season(state), True)
    else:
        with pytest.raises(WrongStateError, match=f"is {state}"):
            check_cancellable(a_season(state), False)


def test_only_what_has_failed_is_retried() -> None:
    """A hold is for release, and where nothing failed there is nothing to retry."""
    check_retryable(a_season(attempts=1))
    with pytest.raises(WrongStateError, match="has failed"):
        check_retryable(a_season())
    with pytest.raises(WrongStateError, match="on hold"):
        check_retryable(a_season(attempts=1, hold=Hold("why", "", "", NOW)))


def test_the_expected_duration_is_the_median_grown_with_the_rows() -> None:
    """Twice the rows take twice as long; half as many not half; unknown steps add nothing; nothing known is None."""
    past = [Past("snapshot", seconds, 1_000) for seconds in (1.0, 2.0, 9.0)] + [Past("seal", 0.5, None)]
    assert expected_seconds(past, ["snapshot", "seal", "reward"], 2_000) == 4.5
    assert expected_seconds(past, ["snapshot"], 500) == 2.0
    assert expected_seconds(past, ["snapshot"], None) == 2.0
    assert expected_seconds(past, ["reward"], 2_000) is None
    assert expected_seconds([], ["snapshot"], 2_000) is None
