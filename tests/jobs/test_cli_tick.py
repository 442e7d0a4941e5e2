"""finale tick: does what is due by PostgreSQL's clock, oldest first, and nothing twice."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs import identity
from jobs.scheduler import tick as scheduling
from jobs.seasons import runner
from jobs.wiring import Outside
from leaderboard.board import Board
from leaderboard.season import Season
from ledger import leases, seasons
from tests.support.cli import World, differing, finale, started

DAY = timedelta(days=1)
LONGEST = timedelta(seconds=60)  # that a test here takes
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
DAILY = """
[board.daily]
ties = "shared"
calendar = { every = "day" }
grace = "0s"
ahead = 4
rewards = "daily.toml"
"""


@pytest.fixture(autouse=True)
def one_day() -> None:
    """Let a test that would run into midnight begin after it: the ledger's clock is real, and so are daily seasons."""
    now = datetime.now(UTC)
    if (left := (now + DAY).replace(hour=0, minute=0, second=0, microsecond=0) - now) < LONGEST:
        time.sleep(left.total_seconds() + 1)


def midnight(days_ago: int) -> datetime:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - days_ago * DAY


def id_of(days_ago: int) -> str:
    return f"s{midnight(days_ago):%Y%m%d}"


def missed(world: World, days: int) -> list[str]:
    """Leave daily seasons that were played and have ended while no scheduler ran; return their ids, oldest first."""
    world.configure(DAILY, daily=TABLE)
    world.seen("daily", midnight(days))
    for number in range(days, 0, -1):
        at = (midnight(number) + timedelta(hours=1)).isoformat()
        world.played("daily", f"m{number},ann,{number + 1},{at}", f"m{number},bob,1,{at}")
    return [id_of(number) for number in range(days, 0, -1)]


def steps_taken(world: World) -> list[tuple[str, str]]:
    """Return season and step of everything done, in order."""
    return world.sql(
        "select season, step from finale.journal join finale.season using (season_id) where event = 'done'"
        " order by journal_id"
    )


def test_c53_c54_c55_a_late_tick_catches_up_every_ended_season_oldest_first(world: World) -> None:
    """C53, C54, C55: three daily seasons ended while nothing ran; one tick closes each by its stored bounds."""
    ids = missed(world, 3)
    told = {one["name"]: one for one in finale("tick", "--json").ok().json}
    closed = [season for season, step in steps_taken(world) if step == "deliver"]
    assert closed == ids
    for number, season in zip((3, 2, 1), ids, strict=True):
        assert told[f"daily/{season}"]["steps"][-1] == "deliver"
        (first,) = finale("standings", "daily", season, "--top", "1", "--json").ok().json
        assert (first["player_id"], first["points"]) == ("ann", number + 1)
    assert world.sql("select count(*) from finale.payable") == [(6,)]


def test_c56_a_doubled_tick_is_harmless(world: World) -> None:
    """C56: the second tick finds nothing due, says so, and changes no row, no key and no file.

    But for when the periodic comparison last looked at the season that is played.
    """
    missed(world, 2)
    finale("tick").ok()
    before = world.picture()
    assert finale("tick").ok().out == "nothing is due\n"
    assert finale("tick", "--json").ok().json == []
    assert set(differing(before, world.picture())) <= {"table live_check"}


def test_c56_two_ticks_at_once_give_one_archive_and_one_set_of_grants(world: World) -> None:
    """C56, I9: two processes at once seal each season once and grant once, whoever gets there first."""
    ids = missed(world, 2)
    with started("tick", "--json") as one, started("tick", "--json") as other:
        for process in (one, other):
            _, told = process.communicate(timeout=60)
            assert process.returncode == 0, told
    finale("tick").ok()
    assert [world.state("daily", season) for season in ids] == ["delivered", "delivered"]
    assert world.sql("select count(*), count(distinct grant_id) from finale.payable") == [(4, 4)]
    assert world.sql("select count(*) from finale.seal where kind = 'standings'") == [(2,)]
    assert world.files("staging") == []


def test_a_season_that_somebody_works_on_is_left_to_them(world: World) -> None:
    """I9: close tells who holds the lease and since when, with exit code 20; tick goes past it and exits 0."""
    (season,) = missed(world, 1)
    with world.outside() as wired:
        key = seasons.find(wired.database, "daily", season).key
        leases.acquire(wired.database, key, season, "elsewhere:1:1::00000000", timedelta(minutes=1))
    finale("close", "daily", season).refused(20, "elsewhere", "since 20", "lease runs until")
    assert f"daily/{season}: another runner works on it" in finale("tick").ok().out
    assert "another runner" not in finale("season", "list").ok().out
    assert finale("season", "show", "daily", season, "--json").ok().json["lease"]["holder"].startswith("elsewhere")
    assert "worked on by" in finale("season", "show", "daily", season).ok().out
    assert world.redis.get(f"{{leaderboard:daily:{season}}}:finale:fence") is None
    assert world.state("daily", season) == "scheduled"


def test_the_lease_of_a_dead_process_of_this_machine_is_not_waited_for(world: World) -> None:
    """I8: a runner that was killed leaves its lease behind; the next one sees that it has ended and goes on at once."""
    (season,) = missed(world, 1)
    ended = subprocess.run(
        [sys.executable, "-c", "from jobs.identity import holder; print(holder())"], capture_output=True, check=True
    )
    holder = ended.stdout.decode().strip()
    assert identity.has_ended(holder)
    with world.outside() as wired:
        key = seasons.find(wired.database, "daily", season).key
        leases.acquire(wired.database, key, season, holder, timedelta(hours=1))
    finale("close", "daily", season).ok()


def test_a_backfill_is_left_to_a_person(world: World) -> None:
    """A season first seen after its grace is never closed by tick; season show says so, and finale close closes it."""
    world.configure(DAILY, daily=TABLE)
    at = midnight(30) + timedelta(hours=1)
    world.played("daily", f"m1,ann,5,{at.isoformat()}")
    finale("tick").ok()
    assert world.state("daily", id_of(30)) == "open"
    shown = finale("season", "show", "daily", id_of(30), "--json").ok().json
    assert shown["backfill"] is True
    assert "a backfill" in shown["next"]["when"]
    assert shown["next"]["at"] is None
    finale("close", "daily", id_of(30)).ok()
    world.sql("update finale.season set keep_until = now() where season = %s", id_of(30))
    assert finale("tick", "--json").ok().json[-1]["steps"] == ["clean"]


def test_one_broken_board_does_not_stop_another(world: World) -> None:
    """A board whose live key is a hash fails with its reason and code; the other board's season is closed."""
    at, other = midnight(1), (midnight(1) + timedelta(hours=1)).isoformat()
    world.configure(DAILY + DAILY.replace("daily]", "broken]"), daily=TABLE)
    world.redis.hset(f"leaderboard:broken:{id_of(1)}", "not", "a board")
    for board in ("daily", "broken"):
        world.seen(board, at)
    world.played("daily", f"m1,ann,5,{other}")
    finale("results", "import", str(world.results(f"m1,ann,5,{other}")), "--board", "broken").refused(4, "is a hash")
    answer = finale("tick", "--json")
    assert answer.code == 4
    told = {one["name"]: one for one in answer.json}
    assert told[f"daily/{id_of(1)}"]["steps"][-1] == "deliver"
    assert "is a hash, not a zset" in told[f"broken/{id_of(1)}"]["error"]["message"]
    assert told[f"broken/{id_of(1)}"]["exit_code"] == 4
    assert "Traceback" not in answer.err
    assert finale("season", "list", "--json").ok().json


def test_what_nobody_foresaw_stops_one_season_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any error of one season is told with its name and logged; its board's other seasons are done; exit code 1."""
    first, second = missed(world, 2)
    run = runner.run

    def broken(outside: Outside, season: Season, **given: Any) -> Any:
        if season.id == first:
            raise OverflowError("postgresql://finale:secret@host")
        return run(outside, season, **given)

    monkeypatch.setattr(runner, "run", broken)
    answer = finale("tick", "--json")
    assert answer.code == 1
    told = {one["name"]: one for one in answer.json}
    assert f"daily/{first}: this should not have happened: OverflowError" in told[f"daily/{first}"]["error"]["message"]
    assert told[f"daily/{second}"]["steps"][-1] == "deliver"
    assert "tick.unforeseen" in answer.err and "Traceback" not in answer.err
    assert "secret" not in answer.err + answer.out


def test_seasons_are_created_ahead_and_opened(world: World) -> None:
    """The first tick creates the present season and the next ones, and opens the present one."""
    world.configure(DAILY.replace("ahead = 4", "ahead = 2"), daily=TABLE)
    board, season = finale("tick", "--json").ok().json
    assert board["created"] == [id_of(0), id_of(-1), id_of(-2)]
    assert (season["name"], season["steps"]) == (f"daily/{id_of(0)}", ["open"])
    states = {one["season"]: one["state"] for one in finale("season", "list", "daily", "--json").ok().json}
    assert states == {id_of(0): "open", id_of(-1): "scheduled", id_of(-2): "scheduled"}


def test_current_key_follows_the_open_season(world: World) -> None:
    """The board's current_key names yesterday's key until a tick of today, then today's."""
    world.configure(DAILY + 'current_key = "now:<board>"\n', daily=TABLE)
    world.seen("daily", midnight(1))
    world.redis.set("now:daily", f"leaderboard:daily:{id_of(1)}")
    finale("tick").ok()
    assert world.redis.get("now:daily") == f"leaderboard:daily:{id_of(0)}".encode()
    assert world.state("daily", id_of(1)) == "delivered"


@pytest.mark.parametrize("slow", ["another", "daily"])
def test_i7_a_slow_tick_does_not_bring_an_ended_season_back(
    world: World, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """I7: the season ends while a tick is busy, with another board or this one; current_key, moved on since, stays."""
    board = DAILY + 'current_key = "now:<board>"\n'
    world.configure(f"[runner]\nworkers = 1\n{board.replace('daily]', 'another]')}{board}", daily=TABLE)
    finale("tick").ok()
    world.seen("another", midnight(1))
    create, following = scheduling.create_ahead, f"leaderboard:daily:{id_of(-1)}".encode()

    def slowly(outside: Outside, board: Board, now: datetime, *, who: str) -> list[str]:
        if board.name != slow:
            return create(outside, board, now, who=who)
        bound = outside.database.now()
        moved, which = "update finale.season set", "where board = 'daily' and season = %s"
        world.sql(f"{moved} ends_at = %s, closes_at = %s {which}", bound, bound, id_of(0))
        world.sql(f"{moved} starts_at = %s {which}", bound, id_of(-1))
        world.redis.set("now:daily", following)  # as a tick does that begins now
        return []

    monkeypatch.setattr(scheduling, "create_ahead", slowly)
    finale("tick").ok()
    assert world.redis.get("now:daily") == following
    if slow == "another":
        assert world.state("daily", id_of(0)) == "delivered", "what became due meanwhile is done"


def test_tick_writes_what_redis_missed(world: World) -> None:
    """Totals that an import could not write are in the live key after the next tick."""
    world.configure(DAILY, daily=TABLE)
    at = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    world.played("daily", f"m1,ann,5,{at}")
    key = finale("season", "list", "daily", "--json").ok().json[0]["live_key"]
    world.redis.flushall()
    world.sql(
        "insert into finale.pending (season_id, bucket, players)"
        " select season_id, finale.bucket_of(player_id), array[player_id]"
        " from finale.player_total"
    )
    finale("tick").ok()
    assert world.redis.zrange(key, 0, -1, withscores=True) == [(b"ann", 5.0)]
