"""Periods: numbering, ids, and the grammar of `every`."""

import calendar as months
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.names import check_name
from leaderboard.periods import WEEKDAYS, parse_every, repeated

UNITS = ["day", "week", "month", "quarter", "year"]
DATES = st.dates(date(1900, 1, 1), date(2200, 1, 1))
QUARTER_STARTS = (1, 4, 7, 10)


@st.composite
def periods(draw):
    unit = draw(st.sampled_from(UNITS))
    count = draw(st.sampled_from([1, 2, 3, 7, 13]))
    day = draw(DATES)
    anchors = {
        "month": day.replace(day=1),
        "quarter": day.replace(day=1, month=QUARTER_STARTS[(day.month - 1) // 3]),
        "year": day.replace(day=1, month=1),
    }
    return repeated(f"{count} {unit}s", anchors.get(unit, day), None)


@given(periods(), DATES)
def test_each_date_lies_in_exactly_one_repetition(period, day):
    number = period.number(day)
    assert period.first_day(number) <= day < period.first_day(number + 1)


@given(periods())
def test_c83_the_anchor_starts_a_repetition(period):
    """C83: every 3 weeks from launch, which no cron line can say."""
    assert period.first_day(period.number(period.anchor)) == period.anchor


@given(periods(), st.integers(-100, 100))
def test_ids_are_names_increase_and_lead_back(period, number):
    """An id is found again as its own repetition only, and text order is time order, as listings sort them."""
    season = period.id(number)
    assert check_name(season, "season") == season
    assert period.find(season) == number
    assert period.id(number - 1) < season < period.id(number + 1)


@pytest.mark.parametrize(
    ("every", "day", "season"),
    [
        ("year", "2026-12-04", "s2026"),
        ("quarter", "2026-12-04", "s2026q4"),
        ("quarter", "2026-03-31", "s2026q1"),
        ("month", "2026-12-04", "s2026m12"),
        ("month", "2026-01-31", "s2026m01"),
        ("week", "2026-12-04", "s2026w49"),
        ("day", "2026-12-04", "s20261204"),
        ("week", "2027-01-01", "s2026w53"),
        ("week", "2024-12-31", "s2025w01"),
        ("week", "2021-01-03", "s2020w53"),
        ("day", "2028-02-29", "s20280229"),
    ],
)
def test_a_season_is_named_after_its_first_date(every, day, season):
    """ISO week-years: the last days of December may be in week 1 of the next year."""
    period = repeated(every, None, None)
    assert period.id(period.number(date.fromisoformat(day))) == season


@pytest.mark.parametrize(
    ("every", "anchor", "day", "season"),
    [
        ("3 weeks", "2026-06-04", "2026-06-24", "s2026w23"),
        ("3 weeks", "2026-06-04", "2026-06-25", "s2026w26"),
        ("3 weeks", "2026-06-04", "2026-06-03", "s2026w20"),
        ("2 months", "2026-02-01", "2026-03-31", "s2026m02"),
        ("2 quarters", "2026-04-01", "2026-09-30", "s2026q2"),
        ("4 years", "2024-01-01", "2027-06-01", "s2024"),
        ("10 days", "2026-02-20", "2026-03-01", "s20260220"),
        ("10 days", "2026-02-20", "2026-03-02", "s20260302"),
    ],
)
def test_c83_several_of_one_are_named_after_the_first(every, anchor, day, season):
    """C83: and they run both ways from the anchor."""
    period = repeated(every, date.fromisoformat(anchor), None)
    assert period.id(period.number(date.fromisoformat(day))) == season


@pytest.mark.parametrize("weekday", WEEKDAYS)
def test_c51_weeks_start_on_the_named_day_all_seven(weekday):
    """C51: days of the week are names, never numbers, so no two conventions can be mixed up; no cron is read here."""
    period = repeated("week", None, weekday)
    first = period.first_day(period.number(date(2026, 12, 4)))
    assert first.strftime("%A").lower() == weekday
    assert first <= date(2026, 12, 4) < first + timedelta(days=7)


def test_c51_weeks_start_on_monday_by_default_and_with_an_anchor_on_its_day():
    """C51: an anchor on a Thursday needs no second setting."""
    assert repeated("week", None, None).first_day(0).weekday() == 0
    assert repeated("week", date(2026, 6, 4), None).first_day(5).weekday() == 3


@pytest.mark.parametrize("year", [2026, 2028, 2100])
def test_c59_months_end_where_the_next_begins(year):
    """C59: 30-day months, 29 February 2028, and none in 2100."""
    period = repeated("month", None, None)
    for month in range(1, 13):
        number = period.number(date(year, month, 1))
        length = (period.first_day(number + 1) - period.first_day(number)).days
        assert length == months.monthrange(year, month)[1]


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("day", (1, "day")),
        ("weeks", (1, "week")),
        ("3 weeks", (3, "week")),
        (" 2  months ", (2, "month")),
        ("1 year", (1, "year")),
    ],
)
def test_every_is_understood(text, parsed):
    assert parse_every(text) == parsed


@pytest.mark.parametrize(
    "text",
    ["", "fortnight", "0 weeks", "-1 day", "1.5 days", "weeks 3", "3weeks", "1000 days", "Day", "٣ days", "days days"],
)
def test_every_refuses_the_rest_and_shows_it(text):
    with pytest.raises(ValueError, match="no period") as caught:
        parse_every(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("every", "anchor", "starts_on", "reason"),
    [
        ("3 weeks", None, None, "needs an anchor"),
        ("2 days", None, None, "needs an anchor"),
        ("month", None, "monday", "is for weeks"),
        ("day", date(2026, 1, 1), "friday", "is for weeks"),
        ("3 weeks", date(2026, 6, 4), "monday", "2026-06-04 is a thursday"),
        ("2 months", date(2026, 1, 2), None, "not the first day of a month"),
        ("quarter", date(2026, 2, 1), None, "not the first day of a quarter"),
        ("4 years", date(2026, 7, 1), None, "not the first day of a year"),
    ],
)
def test_an_anchor_must_be_a_start(every, anchor, starts_on, reason):
    with pytest.raises(ValueError, match=reason):
        repeated(every, anchor, starts_on)


@pytest.mark.parametrize(
    ("every", "season"),
    [
        ("week", "s2026w54"),
        ("week", "s2027w53"),
        ("week", "s2026w1"),
        ("month", "s2026m13"),
        ("quarter", "s2026q5"),
        ("day", "s20270229"),
        ("year", "s2026m01"),
        ("year", "s0000"),
        ("year", "2026"),
        ("day", ""),
    ],
)
def test_an_id_that_no_repetition_has_is_not_found(every, season):
    assert repeated(every, None, None).find(season) is None


def test_of_several_only_the_first_one_lends_its_id():
    period = repeated("3 weeks", date(2026, 6, 4), None)
    assert [period.find(f"s2026w{week}") is not None for week in (23, 24, 25, 26)] == [True, False, False, True]
