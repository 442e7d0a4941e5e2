"""The verdict on a live key: every state has one, with its reason, and only what is due is cleaned."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leaderboard.board import Board
from leaderboard.retention import Facts, decide
from leaderboard.season import Bounds, Hold, Season
from leaderboard.states import ORDER, State, reached

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DELIVERED = Season(
    key=1,
    board=Board.model_validate({"name": "goals", "calendar": {"every": "month"}}),
    bounds=Bounds(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC), "s2026m01"),
    state=State.DELIVERED,
    live_key="leaderboard:goals:s2026m01",
    closes_at=datetime(2026, 2, 1, tzinfo=UTC),
    backfill=False,
    frozen_at=None,
    sealed_at=NOW - 8 * HOUR,
    keep_until=NOW - HOUR,
    hold=None,
    attempts=0,
    last_error=None,
)


def test_a_delivered_season_whose_retention_has_passed_is_cleaned():
    """Due to the very instant, whether or not anybody has looked for the key."""
    for season, live in ((DELIVERED, None), (DELIVERED, True), (replace(DELIVERED, keep_until=NOW), True)):
        verdict = decide(Facts(season, NOW, live=live))
        assert (verdict.action, verdict.acts, verdict.at) == ("clean", True, season.keep_until)
    assert decide(Facts(DELIVERED, NOW)).reason == "due since 2026-02-28 23:00:00 UTC"


def test_a_due_season_without_a_live_key_is_recorded_as_absent():
    verdict = decide(Facts(DELIVERED, NOW, live=False))
    assert (verdict.action, verdict.acts) == ("absent", True)
    assert "no live key" in verdict.reason


@pytest.mark.parametrize("live", [True, False, None])
@pytest.mark.parametrize(
    ("season", "configured", "reason"),
    [
        (replace(DELIVERED, keep_until=NOW + HOUR), True, "the live key is kept until 2026-03-01 01:00:00 UTC"),
        (replace(DELIVERED, keep_until=NOW + timedelta(microseconds=1)), True, "kept until"),
        (replace(DELIVERED, hold=Hold("cheaters?", "", "", NOW)), True, "on hold: cheaters?"),
        (replace(DELIVERED, adopted=True, keep_until=None), True, "finale clean goals s2026m01 --now"),
        (DELIVERED, False, "not configured"),
    ],
)
def test_what_is_kept_and_why(season, configured, reason, live):
    verdict = decide(Facts(season, NOW, live=live, configured=configured))
    assert (verdict.action, verdict.acts) == ("keep", False)
    assert reason in verdict.reason


@pytest.mark.parametrize("state", [state for state in ORDER if not reached(state, State.DELIVERED)])
def test_nothing_is_cleaned_before_it_was_sealed_rewarded_and_delivered(state):
    """I1: whatever the retention says, and whether or not it is adopted."""
    for season in (DELIVERED, replace(DELIVERED, adopted=True)):
        verdict = decide(Facts(replace(season, state=state), NOW, live=True))
        assert (verdict.action, verdict.acts) == ("keep", False)
        assert verdict.reason.startswith(f"{state}: ")


def test_a_cleaned_season_is_done_unless_its_key_is_back():
    """A key that a failover brought back is reported, and never due: nothing cleans it unasked."""
    cleaned = replace(DELIVERED, state=State.CLEANED)
    gone = decide(Facts(cleaned, NOW, live=False, cleaned_at=NOW))
    assert (gone.action, gone.acts, gone.reason) == ("done", False, "cleaned at 2026-03-01 00:00:00 UTC")
    back = decide(Facts(cleaned, NOW, live=True, cleaned_at=NOW))
    assert (back.action, back.acts) == ("returned", False)
    assert "exists again" in back.reason
    assert decide(Facts(cleaned, NOW)).reason == "cleaned"


def test_a_cancelled_season_has_nothing_to_clean():
    verdict = decide(Facts(replace(DELIVERED, state=State.CANCELLED), NOW, live=True))
    assert (verdict.action, verdict.acts) == ("done", False)
