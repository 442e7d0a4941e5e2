"""Seasons of a calendar: bounds, neighbours, off-seasons, lists."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from leaderboard.calendar import season_at, season_called, seasons_from
from leaderboard.calendar_rule import Calendar
from leaderboard.names import check_name
from leaderboard.walltime import shown, to_utc

ZONES = sorted(available_timezones() - {"localtime", "Factory"})
TRICKY = ["America/Santiago", "Africa/Cairo", "Asia/Beirut", "Pacific/Apia", "Australia/Lord_Howe", "Europe/Berlin"]
MICROSECOND = timedelta(microseconds=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def shortly(calendar: Calendar, instant: str, count: int) -> list[tuple[str, str, str]]:
    """Return the next seasons as (id, start, end) in short UTC."""
    return [
        (each.id, f"{each.starts_at:%m-%dT%H:%M}", f"{each.ends_at:%m-%dT%H:%M}")
        for each in islice(seasons_from(calendar, at(instant)), count)
    ]


@st.composite
def calendars(draw) -> Calendar:
    every, anchor = draw(
        st.sampled_from(
            [
                *((unit, None) for unit in ("day", "week", "month", "quarter", "year")),
                *(("3 weeks", "2026-06-04"), ("10 days", "2026-02-20"), ("2 quarters", "2026-04-01")),
            ]
        )
    )
    zone = draw(st.sampled_from(TRICKY) | st.sampled_from(ZONES))
    clock = draw(st.sampled_from([time(0), time(2, 30), time(5), time(23, 30)]) | st.times())
    return Calendar(every=every, anchor=anchor, timezone=zone, at=clock)


INSTANTS = st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 (limits are naive)


class TestAnyPeriodAndZone:
    @given(calendars(), INSTANTS)
    def test_the_season_at_an_instant_contains_it_and_its_edges_are_half_open(self, calendar, instant):
        """The start belongs to the season, the end to the next one."""
        season = season_at(calendar, instant)
        assert season is not None
        assert season.starts_at <= instant < season.ends_at
        assert (season.starts_at.tzinfo, season.ends_at.tzinfo) == (UTC, UTC)
        assert season_at(calendar, season.starts_at) == season
        assert season_at(calendar, season.ends_at - MICROSECOND) == season
        following = season_at(calendar, season.ends_at)
        assert following is not None
        assert following.starts_at == season.ends_at

    @given(calendars(), INSTANTS)
    def test_seasons_follow_each_other_without_gap_or_overlap(self, calendar, instant):
        """Each starts where the one before ends; ids are names, unique and increasing; a walk agrees with a look."""
        seasons = list(islice(seasons_from(calendar, instant), 12))
        assert seasons[0] == season_at(calendar, instant)
        for before, after in pairwise(seasons):
            assert before.ends_at == after.starts_at
            assert before.id < after.id
        for season in seasons:
            assert check_name(season.id, "season")
            assert season_at(calendar, season.starts_at + (season.ends_at - season.starts_at) / 2) == season

    @given(calendars(), INSTANTS)
    def test_a_season_starts_at_the_local_wall_time_of_its_first_date(self, calendar, instant):
        """Or, where that does not exist, at the next instant that does."""
        season = season_at(calendar, instant)
        number = calendar.period.find(season.id)
        wanted = datetime.combine(calendar.period.first_day(number), calendar.at)
        assert season.starts_at == to_utc(wanted, calendar.zone)
        assert shown(season.starts_at, calendar.zone) >= wanted


@pytest.mark.parametrize("every", ["day", "week", "month"])
def test_c48_no_season_is_lost_in_any_zone_of_the_world(every):
    """C48: every local date of 2025 to 2027 (for days: of 2026) starts a season if it should, in all zones."""
    first, last = (date(2026, 1, 1), date(2027, 1, 1)) if every == "day" else (date(2025, 1, 1), date(2028, 1, 1))
    for name in ZONES:
        calendar = Calendar(every=every, timezone=name)
        zone = ZoneInfo(name)
        previous = None
        dates = []
        for season in seasons_from(calendar, datetime.combine(first, time(12), tzinfo=zone)):
            start = shown(season.starts_at, zone)
            if start.date() >= last:
                break
            assert previous is None or previous.ends_at == season.starts_at, (name, season)
            assert timedelta(0) <= start - datetime.combine(start.date(), time(0)) <= timedelta(hours=1), (name, season)
            dates.append(start.date())
            previous = season
        wanted = [first + timedelta(days=day) for day in range((last - first).days)]
        if every == "week":
            wanted = [day for day in wanted if day.weekday() == 0]
        if every == "month":
            wanted = [day for day in wanted if day.day == 1]
        assert [day for day in dates if day >= first] == wanted, name


class TestChanges:
    def test_c48_the_week_after_spring_forward_is_there(self):
        """C48: Monday 2026-03-30 00:00 in Berlin, which a cron trigger passed over."""
        calendar = Calendar(every="week", timezone="Europe/Berlin")
        assert shortly(calendar, "2026-03-25T00:00Z", 2) == [
            ("s2026w13", "03-22T23:00", "03-29T22:00"),
            ("s2026w14", "03-29T22:00", "04-05T22:00"),
        ]

    def test_c48_the_day_after_spring_forward_is_there(self):
        """C48: daily in New York, 2026-03-08 has 23 hours and 03-09 follows it."""
        calendar = Calendar(every="day", timezone="America/New_York")
        assert shortly(calendar, "2026-03-08T12:00Z", 2) == [
            ("s20260308", "03-08T05:00", "03-09T04:00"),
            ("s20260309", "03-09T04:00", "03-10T04:00"),
        ]

    @pytest.mark.parametrize(
        ("zone", "day", "season", "starts_at", "hours"),
        [
            ("America/Santiago", "2026-09-06T12:00Z", "s20260906", "2026-09-06T04:00Z", 23),
            ("America/Santiago", "2026-04-04T12:00Z", "s20260404", "2026-04-04T03:00Z", 25),
            ("Africa/Cairo", "2026-04-24T12:00Z", "s20260424", "2026-04-23T22:00Z", 23),
            ("Asia/Beirut", "2026-03-29T12:00Z", "s20260329", "2026-03-28T22:00Z", 23),
            ("Australia/Lord_Howe", "2026-10-04T00:00Z", "s20261004", "2026-10-03T13:30Z", 23.5),
            ("Australia/Lord_Howe", "2026-04-05T00:00Z", "s20260405", "2026-04-04T13:00Z", 24.5),
        ],
    )
    def test_c49_a_day_whose_midnight_is_missing_or_doubled_is_one_season(self, zone, day, season, starts_at, hours):
        """C49: daily 00:00 in Santiago on 2026-09-06 never fired; here it is a season of 23 hours."""
        found = season_at(Calendar(every="day", timezone=zone), at(day))
        assert (found.id, found.starts_at) == (season, at(starts_at))
        assert found.ends_at - found.starts_at == timedelta(hours=hours)

    def test_c49_a_time_that_comes_twice_closes_one_season_once(self):
        """C49: 02:30 in Berlin on 2026-10-25, and the first of a month 01:00 in New York on 2026-11-01."""
        berlin = Calendar(every="day", timezone="Europe/Berlin", at="02:30")
        assert shortly(berlin, "2026-10-24T12:00Z", 2) == [
            ("s20261024", "10-24T00:30", "10-25T00:30"),
            ("s20261025", "10-25T00:30", "10-26T01:30"),
        ]
        new_york = Calendar(every="month", timezone="America/New_York", at="01:00")
        assert shortly(new_york, "2026-11-01T05:30Z", 1) == [("s2026m11", "11-01T05:00", "12-01T06:00")]
        assert season_at(new_york, at("2026-11-01T06:00Z")).id == "s2026m11"

    def test_a_date_that_a_zone_jumped_over_is_no_season(self):
        """Apia had no 2011-12-30: a season of no length must not exist, and none of its neighbours is lost."""
        calendar = Calendar(every="day", timezone="Pacific/Apia")
        assert shortly(calendar, "2011-12-30T09:59Z", 2) == [
            ("s20111229", "12-29T10:00", "12-30T10:00"),
            ("s20111231", "12-30T10:00", "12-31T10:00"),
        ]
        assert season_at(calendar, at("2011-12-30T10:00Z")).id == "s20111231"

    def test_a_date_that_a_zone_had_twice_is_one_season(self):
        """Juneau, 1867: 24 hours were repeated when Alaska changed sides of the date line."""
        calendar = Calendar(every="day", timezone="America/Juneau")
        seasons = list(islice(seasons_from(calendar, at("1867-10-15T12:00Z")), 4))
        assert [each.id for each in seasons] == ["s18671016", "s18671017", "s18671018", "s18671019"]
        assert max(each.ends_at - each.starts_at for each in seasons) == timedelta(hours=48)


class TestLengths:
    @pytest.mark.parametrize(
        ("every", "instant", "starts_at", "ends_at"),
        [
            ("month", "2028-02-29T12:00Z", "2028-02-01", "2028-03-01"),
            ("month", "2100-02-28T23:59Z", "2100-02-01", "2100-03-01"),
            ("day", "2028-02-29T12:00Z", "2028-02-29", "2028-03-01"),
            ("month", "2026-04-30T23:59:59Z", "2026-04-01", "2026-05-01"),
            ("quarter", "2026-12-31T23:59:59Z", "2026-10-01", "2027-01-01"),
            ("year", "2028-12-31T00:00Z", "2028-01-01", "2029-01-01"),
            ("week", "2026-12-31T00:00Z", "2026-12-28", "2027-01-04"),
        ],
    )
    def test_c59_a_season_ends_at_the_first_instant_of_the_next(self, every, instant, starts_at, ends_at):
        """C59: never 'the 31st' or 'the last second'; leap days and short months need no rule of their own."""
        season = season_at(Calendar(every=every), at(instant))
        assert (season.starts_at, season.ends_at) == (at(f"{starts_at}T00:00Z"), at(f"{ends_at}T00:00Z"))

    def test_c83_three_weeks_from_launch(self):
        """C83: from a Thursday, over the end of daylight saving, at 18:00 local."""
        calendar = Calendar(every="3 weeks", anchor="2026-09-24", at="18:00", timezone="Europe/Berlin")
        assert shortly(calendar, "2026-09-24T16:00Z", 3) == [
            ("s2026w39", "09-24T16:00", "10-15T16:00"),
            ("s2026w42", "10-15T16:00", "11-05T17:00"),
            ("s2026w45", "11-05T17:00", "11-26T17:00"),
        ]
        assert season_at(calendar, at("2026-09-24T15:59Z")).id == "s2026w36"

    def test_it_goes_on_as_far_as_dates_do_and_not_further(self):
        """The last season given is the last that ends within the year 9999; nothing raises at either end."""
        calendar = Calendar(every="year", timezone="Asia/Tokyo")
        assert [each.id for each in seasons_from(calendar, at("9997-06-01T00:00Z"))] == ["s9997", "s9998"]
        for instant in (datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)):
            for every in ("day", "year"):
                for zone in ("Asia/Tokyo", "America/New_York"):
                    season_at(Calendar(every=every, timezone=zone, at="12:00"), instant)

    def test_a_look_costs_the_same_in_any_year(self, monkeypatch):
        """No walk from the year 1: a handful of conversions, counted."""
        calls = []

        def counted(local, zone):
            calls.append(local)
            return to_utc(local, zone)

        monkeypatch.setattr("leaderboard.calendar.to_utc", counted)
        for year in (1850, 2026, 9000):
            calls.clear()
            assert season_at(Calendar(every="day", timezone="Europe/Berlin"), datetime(year, 7, 1, tzinfo=UTC))
            assert len(calls) <= 6

    def test_a_naive_instant_is_refused(self):
        with pytest.raises(ValueError, match="no UTC offset"):
            season_at(Calendar(every="day"), at("2026-01-01T00:00"))
        with pytest.raises(ValueError, match="no UTC offset"):
            seasons_from(Calendar(every="day"), at("2026-01-01T00:00"))


class TestSkip:
    def test_a_skipped_season_is_an_off_season(self):
        calendar = Calendar(every="month", skip=["s2026m08"])
        assert season_at(calendar, at("2026-08-15T00:00Z")) is None
        assert [each[0] for each in shortly(calendar, "2026-07-01T00:00Z", 3)] == ["s2026m07", "s2026m09", "s2026m10"]
        assert shortly(calendar, "2026-08-15T00:00Z", 1)[0][0] == "s2026m09"

    @pytest.mark.parametrize("season", ["s2026q1", "s2026m13", "august", "", "s2026m8"])
    def test_a_name_that_no_season_has_is_refused(self, season):
        """A typing error would let the season run that was meant to be left out."""
        with pytest.raises(ValidationError, match="no season") as caught:
            Calendar(every="month", skip=[season])
        assert repr(season) in str(caught.value)


class TestLists:
    LISTED = Calendar(
        timezone="Europe/Berlin",
        seasons=[
            {"id": "winter", "starts_at": "2026-12-01T00:00:00", "ends_at": "2027-02-01T00:00:00"},
            {"id": "launch", "starts_at": "2026-06-04T18:00:00", "ends_at": "2026-06-25T18:00:00"},
            {"id": "summer", "starts_at": "2026-06-25T16:00:00Z", "ends_at": "2026-10-25T02:30:00"},
        ],
    )

    def test_c83_listed_seasons_come_in_order_with_local_and_aware_times(self):
        """C83: naive times are read in the calendar's zone (02:30 comes twice: the first), aware ones converted."""
        assert shortly(self.LISTED, "2026-01-01T00:00Z", 9) == [
            ("launch", "06-04T16:00", "06-25T16:00"),
            ("summer", "06-25T16:00", "10-25T00:30"),
            ("winter", "11-30T23:00", "01-31T23:00"),
        ]

    @pytest.mark.parametrize(
        ("instant", "season"),
        [
            ("2026-06-04T15:59:59.999999Z", None),
            ("2026-06-04T16:00Z", "launch"),
            ("2026-06-25T15:59:59.999999Z", "launch"),
            ("2026-06-25T16:00Z", "summer"),
            ("2026-10-25T00:30Z", None),
            ("2026-11-15T00:00Z", None),
            ("2027-01-31T22:59Z", "winter"),
            ("2027-01-31T23:00Z", None),
        ],
    )
    def test_c73_off_seasons_lie_between_and_edges_are_half_open(self, instant, season):
        """C73: [start, end)."""
        found = season_at(self.LISTED, at(instant))
        assert (found and found.id) == season

    def test_the_walk_starts_with_the_season_at_hand_or_the_next_and_ends(self):
        ids = [[each.id for each in seasons_from(self.LISTED, at(f"{day}T00:00Z"))] for day in LIST_DAYS]
        assert ids == [["summer", "winter"], ["winter"], []]

    def test_overlapping_seasons_are_both_named_with_their_bounds(self):
        with pytest.raises(ValidationError) as caught:
            Calendar(
                seasons=[listed("a", "2026-01-01", "2026-02-01"), listed("b", "2026-01-31T23:59:59", "2026-03-01")]
            )
        said = str(caught.value)
        assert "a [2026-01-01T00:00:00+00:00, 2026-02-01T00:00:00+00:00)" in said
        assert "b [2026-01-31T23:59:59+00:00, 2026-03-01T00:00:00+00:00)" in said

    def test_an_overlap_with_one_that_is_not_a_neighbour_is_found(self):
        with pytest.raises(ValidationError, match="overlap"):
            Calendar(
                seasons=[
                    listed("long", "2026-01-01", "2026-12-01"),
                    listed("far", "2026-11-01", "2027-01-01"),
                    listed("inner", "2026-02-01", "2026-03-01"),
                ]
            )

    def test_seasons_that_overlap_only_in_utc_are_refused(self):
        """The end is local in Berlin, the start is said in UTC: an hour of both."""
        with pytest.raises(ValidationError, match="overlap"):
            Calendar(
                timezone="Europe/Berlin",
                seasons=[listed("a", "2026-01-01", "2026-02-01"), listed("b", "2026-01-31T22:00:00Z", "2026-03-01")],
            )


LIST_DAYS = ("2026-07-01", "2026-11-01", "2027-02-01")


def listed(season: str, starts_at: object, ends_at: object) -> dict[str, object]:
    return {"id": season, "starts_at": starts_at, "ends_at": ends_at}


class TestRefused:
    ONE = (listed("a", "2026-01-01", "2026-02-01"),)

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({}, "either every or seasons"),
            ({"every": "year", "seasons": ONE}, "either every or seasons"),
            ({"every": "fortnight"}, "'fortnight' is no period"),
            ({"every": "2 weeks"}, "needs an anchor"),
            ({"every": "2 weeks", "anchor": "2026-06-04", "starts_on": "monday"}, "is a thursday"),
            ({"every": "month", "starts_on": "monday"}, "is for weeks"),
            ({"every": "week", "starts_on": "1"}, "'monday', 'tuesday'"),
            ({"every": "week", "starts_on": 1}, "'monday', 'tuesday'"),
            ({"every": "week", "starts_on": "Mon"}, "'monday', 'tuesday'"),
            ({"every": "year", "timezone": "Mars/Olympus"}, "'Mars/Olympus' is no IANA time zone"),
            ({"every": "year", "at": "00:00:00Z"}, "has an offset"),
            ({"every": "year", "att": "00:00"}, "att"),
            ({"seasons": ONE, "at": "04:00"}, "at belongs to every"),
            ({"seasons": ONE, "anchor": "2026-01-01"}, "anchor belongs to every"),
            ({"seasons": ONE, "starts_on": "monday"}, "starts_on belongs to every"),
            ({"seasons": ONE, "skip": ["a"]}, "skip belongs to every"),
            ({"seasons": [listed("a/b", "2026-01-01", "2026-02-01")]}, "'a/b' cannot name a season"),
            ({"seasons": [listed("epoch", "2026-01-01", "2026-02-01")]}, "'epoch' cannot name a season"),
            ({"seasons": [listed("a", "2026-02-01", "2026-01-01")]}, "does not end after its start"),
            ({"seasons": [listed("a", "2026-02-01", "2026-02-01")]}, "does not end after its start"),
            ({"seasons": [listed("a", 20260101, "2026-02-01")]}, "20260101 is no date"),
            ({"seasons": [*ONE, listed("a", "2026-03-01", "2026-04-01")]}, "2 seasons have the id 'a'"),
            (
                {"timezone": "Asia/Tokyo", "seasons": [listed("a", "0001-01-01T00:00:00", "2026-04-01")]},
                "outside the years",
            ),
        ],
    )
    def test_a_calendar_that_cannot_be_is_refused_with_the_reason(self, fields, reason):
        """C51: a weekday is a name in full, never a number."""
        with pytest.raises(ValidationError, match=reason):
            Calendar.model_validate(fields)

    def test_a_listed_season_that_falls_into_a_gap_has_no_length_and_is_refused(self):
        """02:15 to 02:45 in Berlin on the day of the change are the same instant."""
        with pytest.raises(ValidationError, match="does not end after its start"):
            Calendar(timezone="Europe/Berlin", seasons=[listed("a", "2026-03-29T02:15:00", "2026-03-29T02:45:00")])


@pytest.mark.parametrize(
    "calendar",
    [
        TestLists.LISTED,
        Calendar(every="3 weeks", anchor="2026-06-04", at="18:00", timezone="Europe/Berlin"),
        Calendar(every="week", starts_on="sunday", skip=["s2026w33"]),
        Calendar(every="year"),
    ],
)
def test_c61_a_calendar_stored_as_json_means_the_same(calendar):
    """C61: what a season stores of its calendar reads back as the same calendar, defaults included."""
    again = Calendar.model_validate(calendar.model_dump(mode="json"))
    assert again == calendar
    assert shortly(again, "2026-06-01T00:00Z", 3) == shortly(calendar, "2026-06-01T00:00Z", 3)


@pytest.mark.parametrize(
    "calendar",
    [
        TestLists.LISTED,
        Calendar(every="3 weeks", anchor="2026-06-04", at="18:00", timezone="Europe/Berlin"),
        Calendar(every="week", starts_on="sunday", skip=["s2026w33"]),
        Calendar(every="day", timezone="America/Santiago"),
    ],
)
def test_a_season_is_found_by_its_id(calendar):
    """The id alone gives the same bounds as the calendar does in its turn; a skipped or unknown id gives none."""
    for bounds in islice(seasons_from(calendar, datetime(2026, 6, 1, tzinfo=UTC)), 150):
        assert season_called(calendar, bounds.id) == bounds
    assert all(season_called(calendar, other) is None for other in ("s2026w33", "s9999w99", "s00001231", "nonsense"))
