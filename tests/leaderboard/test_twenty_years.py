"""Twenty years of seasons, in every zone and period: no gap, no overlap, each once, under ids that only grow."""

from __future__ import annotations

import random
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise, takewhile
from zoneinfo import available_timezones

import pytest

from leaderboard.calendar import season_called, seasons_from
from leaderboard.calendar_rule import Calendar

ZONES = sorted(available_timezones() - {"localtime", "Factory"})
SINCE, UNTIL = datetime(2020, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
PERIODS = [
    *({"every": unit} for unit in ("day", "week", "month", "quarter", "year")),
    *(
        {"every": "week", "starts_on": day}
        for day in ("tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    ),
    {"every": "10 days", "anchor": "2026-02-20"},
    {"every": "3 weeks", "anchor": "2026-06-04"},
    {"every": "2 quarters", "anchor": "2026-04-01"},
]
CLOCKS = [time(0), time(2, 30), time(23, 59, 59)]
#: Zones that have changed their clocks at midnight, by half an hour, or often.
TRICKY = ["Africa/Cairo", "America/Santiago", "Asia/Beirut", "Asia/Gaza", "Australia/Lord_Howe", "Africa/Casablanca"]


def twenty_years(zone: str, period: dict[str, str], clock: time) -> int:
    """Check the seasons of twenty years, and return how many there were."""
    calendar = Calendar.model_validate({**period, "timezone": zone, "at": clock})
    found = list(takewhile(lambda one: one.starts_at < UNTIL, seasons_from(calendar, SINCE)))
    assert found[0].starts_at <= SINCE and found[-1].ends_at >= UNTIL
    for before, after in pairwise(found):
        assert before.ends_at == after.starts_at, (zone, period, before, after)  # no gap, no overlap
        assert before.id < after.id, (zone, period, before, after)  # unique, and in order as text too
        assert after.ends_at - after.starts_at > timedelta(days=9) or period["every"] in ("day", "week")
    for one in (found[0], found[len(found) // 2], found[-1]):
        assert season_called(calendar, one.id) == one
    return len(found)


@pytest.mark.parametrize("period", PERIODS, ids=lambda period: "-".join(period.values()))
def test_c48_c49_c51_c59_sampled_zones(period: dict[str, str]) -> None:
    """C48, C49, C51, C59: the tricky zones and a few others, each at some time of the day, for every period."""
    chance = random.Random(repr(period))
    for zone in [*TRICKY, *chance.sample(ZONES, 4)]:
        twenty_years(zone, period, chance.choice(CLOCKS))


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("period", PERIODS, ids=lambda period: "-".join(period.values()))
def test_c48_c49_c51_c59_every_zone(period: dict[str, str]) -> None:
    """C48, C49, C51, C59: every zone there is, at midnight, in the night's gap, and a second before midnight."""
    for zone in ZONES:
        for clock in CLOCKS:
            twenty_years(zone, period, clock)
