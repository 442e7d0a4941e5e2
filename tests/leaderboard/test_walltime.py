"""Local wall time to UTC: gaps, folds, and every zone there is."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.walltime import check_zone, shown, to_utc

ZONES = sorted(available_timezones())
SECOND = timedelta(seconds=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("zone", "local", "utc"),
    [
        # A time that does not exist: the first one that does, not as much later as the gap is long.
        ("Europe/Berlin", "2026-03-29T02:00", "2026-03-29T01:00Z"),
        ("Europe/Berlin", "2026-03-29T02:30", "2026-03-29T01:00Z"),
        ("Europe/Berlin", "2026-03-29T02:59:59.999999", "2026-03-29T01:00Z"),
        ("Europe/Berlin", "2026-03-29T03:00", "2026-03-29T01:00Z"),
        ("America/Santiago", "2026-09-06T00:00", "2026-09-06T04:00Z"),
        ("Africa/Cairo", "2026-04-24T00:00", "2026-04-23T22:00Z"),
        ("Asia/Beirut", "2026-03-29T00:00", "2026-03-28T22:00Z"),
        ("Australia/Lord_Howe", "2026-10-04T02:15", "2026-10-03T15:30Z"),
        ("Antarctica/Troll", "2026-03-29T01:30", "2026-03-29T01:00Z"),
        ("Pacific/Apia", "2011-12-30T00:00", "2011-12-30T10:00Z"),
        ("Pacific/Apia", "2011-12-30T17:45", "2011-12-30T10:00Z"),
        ("Pacific/Apia", "2011-12-31T00:00", "2011-12-30T10:00Z"),
        # A time that occurs twice: the first.
        ("Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30Z"),
        ("Europe/Berlin", "2026-10-25T02:00", "2026-10-25T00:00Z"),
        ("Europe/Berlin", "2026-10-25T03:00", "2026-10-25T02:00Z"),
        ("America/New_York", "2026-11-01T01:00", "2026-11-01T05:00Z"),
        ("America/Santiago", "2026-04-04T23:30", "2026-04-05T02:30Z"),
        ("Africa/Cairo", "2026-10-29T23:00", "2026-10-29T20:00Z"),
        ("Australia/Lord_Howe", "2026-04-05T01:45", "2026-04-04T14:45Z"),
        # A whole day that occurred twice, and offsets with seconds.
        ("America/Juneau", "1867-10-18T00:00", "1867-10-17T08:57:41Z"),
        ("Africa/Monrovia", "1972-01-07T00:10", "1972-01-07T00:44:30Z"),
        # Plain ones.
        ("UTC", "2026-01-01T00:00", "2026-01-01T00:00Z"),
        ("Asia/Kathmandu", "2026-01-01T00:00", "2025-12-31T18:15Z"),
    ],
)
def test_c49_a_gap_takes_the_next_valid_instant_and_a_fold_the_first(zone, local, utc):
    """C48, C49: 02:30 that does not exist, 01:00 that comes twice, and midnight itself missing."""
    assert to_utc(at(local), ZoneInfo(zone)) == at(utc)


@pytest.mark.parametrize("fold", [0, 1])
def test_the_fold_of_what_is_asked_makes_no_difference(fold):
    assert to_utc(at("2026-10-25T02:30").replace(fold=fold), ZoneInfo("Europe/Berlin")) == at("2026-10-25T00:30Z")


@given(st.sampled_from(ZONES), st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)))  # noqa: DTZ001 (wall times)
def test_the_clock_shows_the_time_and_did_not_show_it_before(zone_name, local):
    """The definition, in any zone: shown at that instant, or jumped past; a second earlier not yet."""
    zone = ZoneInfo(zone_name)
    instant = to_utc(local, zone)
    assert instant.tzinfo is UTC
    assert shown(instant, zone) >= local
    assert shown(instant - SECOND, zone) < local


@pytest.mark.parametrize("year", [1999, 2011, 2026])
def test_c49_around_every_change_of_every_zone(year):
    """C49: for all zones, an hour around each change of a year is monotone, and each answer is the earliest."""
    changes = 0
    for name in ZONES:
        zone = ZoneInfo(name)
        for change in _changes(zone, year):
            changes += 1
            before, after = shown(change - SECOND, zone), shown(change, zone)
            edges = sorted({before, after, min(before, after) + abs(after - before) / 2, after - SECOND})
            answers = [to_utc(wall, zone) for wall in edges]
            assert answers == sorted(answers), (name, change)
            for wall, answer in zip(edges, answers, strict=True):
                exists = shown(answer, zone) == wall
                assert exists or (answer == change and before < wall < after), (name, change, wall)
                assert shown(answer - SECOND, zone) < wall, (name, change, wall)
    assert changes > 100


def _changes(zone: ZoneInfo, year: int) -> list[datetime]:
    """Return the instants of a year at which the zone's offset changes, to the second."""
    found = []
    day = datetime(year, 1, 1, tzinfo=UTC)
    while day.year == year:
        low, high = day, day + timedelta(days=2)
        offset = low.astimezone(zone).utcoffset()
        if high.astimezone(zone).utcoffset() != offset:
            while high - low > SECOND:
                middle = low + timedelta(seconds=(high - low) // SECOND // 2)
                low, high = (middle, high) if middle.astimezone(zone).utcoffset() == offset else (low, middle)
            found.append(high)
        day += timedelta(days=2)
    return found


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "US/Pacific", "Asia/Calcutta", "Etc/GMT+12", "EST5EDT"])
def test_c61_iana_names_and_their_aliases_are_known(name):
    """C61: US/* and other old names are there, since the tzdata package carries them where the system does not."""
    assert check_zone(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "Mars/Olympus", "Europe", "../../etc/passwd", "/etc/localtime", "localtime", "right/UTC", "GMT+25", "a\0"],
)
def test_c61_anything_else_is_refused_and_shown(name):
    """C61: also what zoneinfo would open, but which follows the machine or counts leap seconds."""
    with pytest.raises(ValueError, match="no IANA time zone") as caught:
        check_zone(name)
    assert repr(name) in str(caught.value)


def test_c61_every_zone_is_accepted_but_the_machines_own():
    """C61: nothing that people may write is shut out."""
    refused = set()
    for name in ZONES:
        try:
            check_zone(name)
        except ValueError:
            refused.add(name)
    assert refused <= {"localtime", "Factory"}


def test_c61_a_system_without_zone_files_falls_back_to_the_package():
    """C61: the same answer in a slim container, from the tzdata package."""
    program = (
        "from datetime import datetime; from zoneinfo import TZPATH, ZoneInfo; from leaderboard.walltime import *;"
        "assert TZPATH == (), TZPATH; check_zone('US/Pacific');"
        "print(to_utc(datetime(2026, 9, 6), ZoneInfo('America/Santiago')).isoformat())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONTZPATH": ""}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "2026-09-06T04:00:00+00:00"


def test_a_time_that_utc_cannot_hold_overflows():
    with pytest.raises(OverflowError):
        to_utc(
            datetime(1, 1, 1),  # noqa: DTZ001 (a wall time)
            ZoneInfo("Asia/Tokyo"),
        )
    with pytest.raises(OverflowError):
        to_utc(
            datetime(9999, 12, 31, 23),  # noqa: DTZ001 (a wall time)
            ZoneInfo("America/New_York"),
        )
