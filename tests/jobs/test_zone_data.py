"""C61, I7: the zone data change, the stored bounds do not, and the seasons to come fit to them."""

from __future__ import annotations

import shutil
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path

import pytest

from leaderboard.calendar import fitted
from leaderboard.season import Bounds
from leaderboard.states import State
from leaderboard.walltime import zone_called
from tests.support.cli import World, finale

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
NOON = max(12 - NOW.hour, -10)  # the offset in hours at which it is about noon: no midnight passes while a test runs


@pytest.fixture
def zone_files(tmp_path: Path) -> Iterator[Path]:
    """A folder of zone files that wins over all others; what a test puts there holds after ``changed``."""
    zoneinfo.reset_tzpath([tmp_path, *zoneinfo.TZPATH])
    yield tmp_path
    zoneinfo.reset_tzpath()
    read_anew()


def changed(folder: Path, zone: str, like: str) -> None:
    """Let ``zone`` keep the time of ``like`` from now on, as a government may decide."""
    target = folder / zone
    target.parent.mkdir(parents=True, exist_ok=True)
    with as_file(files("tzdata.zoneinfo").joinpath(like)) as source:
        shutil.copy(source, target)
    read_anew()


def read_anew() -> None:
    """Forget the zones that were read, as a process that starts knows none."""
    zoneinfo.ZoneInfo.clear_cache()
    zone_called.cache_clear()


def fixed(hours: int) -> str:
    """The zone that is always so many hours ahead of UTC; the sign in its name is the other way round."""
    return f"Etc/GMT{-hours:+d}"


@pytest.mark.parametrize("hours", [-2, 2])
def test_c61_i7_stored_bounds_stand_and_new_seasons_fit(world: World, zone_files: Path, hours: int) -> None:
    """C61, I7: of daily seasons at an offset that comes to be another: no gap, no overlap, and the check tells."""
    changed(zone_files, "Asia/Riyadh", fixed(NOON))
    world.configure('[board.daily]\nties = "shared"\nahead = 2\ncalendar = { every = "day", timezone = "Asia/Riyadh" }')
    finale("tick").ok()
    query = "select season, starts_at, ends_at from finale.season order by starts_at"
    before = world.sql(query)
    assert len(before) == 3
    finale("calendar", "daily", "--check").ok()
    changed(zone_files, "Asia/Riyadh", fixed(NOON - hours))
    finale("tick").ok()
    assert world.sql(query)[:3] == before
    world.seen("daily", NOW + 4 * DAY)
    after = world.sql(query)
    assert after[:3] == before and len(after) >= 6
    for (_, _, ends_at), (_, starts_at, _) in pairwise(after):
        assert ends_at == starts_at
    assert after[3][2] - after[3][1] == DAY + timedelta(hours=hours)
    assert [season for season, _, _ in after] == sorted({season for season, _, _ in after})
    told = finale("calendar", "daily", "--check", "--json")
    assert told.code == 17
    assert [one["season"] for one in told.json] == [season for season, _, _ in after[:4]]
    finale("calendar", "daily", "--check").refused(17, "4 seasons of daily", "the stored ones stand")


def test_a_stored_season_that_the_calendar_does_not_have_is_shown(world: World) -> None:
    """The configuration goes from days to years: the days that the ledger has stay, and the check names them."""
    board = '[board.daily]\nties = "shared"\nahead = 0\ncalendar = { every = "day" }'
    world.configure(board)
    finale("tick").ok()
    world.configure(board.replace('"day"', '"year"'))
    (one,) = finale("calendar", "daily", "--check", "--json").json
    assert one["calendar"] is None
    assert "not in it" in finale("calendar", "daily", "--check").out


def bounds(start: float, end: float, name: str) -> Bounds:
    return Bounds(NOW + start * DAY, NOW + end * DAY, name)


@pytest.mark.parametrize(
    ("state", "stored", "expected"),
    [
        (State.SCHEDULED, bounds(0, 7.1, "s1"), (7.1, 14)),  # the stored one lasts longer: follow it
        (State.SCHEDULED, bounds(0, 6.9, "s1"), (6.9, 14)),  # it ends before: no gap
        (State.OPEN, bounds(0, 3, "s1"), (7, 14)),  # it was closed early: that is an off-season
        (State.OPEN, bounds(0, 9, "s1"), (9, 14)),  # it was extended
        (State.OPEN, bounds(0, 14, "s1"), None),  # nothing is left
        (State.SCHEDULED, bounds(10, 20, "other"), (7, 10)),  # a season of another calendar follows
    ],
)
def test_a_new_season_fits_to_its_stored_neighbours(
    state: State, stored: Bounds, expected: tuple[float, float] | None
) -> None:
    """The stored bounds stand, the new season takes what they leave."""
    found = fitted(bounds(7, 14, "s2"), bounds(0, 7, "s1"), [(stored, state)])
    assert found == (bounds(*expected, "s2") if expected else None)
