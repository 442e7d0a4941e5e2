"""Checks of a season that is played: of however many who were active, one looks at a part and the next goes on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.checks import live_check, reporting
from leaderboard.season import Season
from ledger import evidence, live_checks, seasons
from ledger.database import Database
from tests.support.cli import World, finale

KEY = "leaderboard:cup:one"
NOW = datetime.now(UTC).replace(microsecond=0)
BEGUN = NOW - timedelta(days=9)
YESTERDAY = f"{NOW - timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
PLAYERS = 120


def play(world: World, *keys: str) -> None:
    """Play a season that goes on, without a check of it."""
    span = f"starts_at = {BEGUN:%Y-%m-%dT%H:%M:%SZ}, ends_at = 2090-01-01T00:00:00Z"
    lines = ("[board.cup]", "ties = 'shared'", f"calendar = {{ seasons = [{{ id = 'one', {span} }}] }}", *keys, "")
    world.configure("\n".join(lines))
    world.played("cup", *(f"m1,p{number:03d},{number},{YESTERDAY}" for number in range(PLAYERS)))


def check(world: World) -> str:
    """Let a tick check the season, whenever the last check was; return what it printed."""
    world.sql("update finale.live_check set checked_at = checked_at - interval '1 hour'")
    return finale("tick").ok().out


def progress(world: World) -> live_checks.Progress:
    with world.outside() as wired:
        return live_checks.find(wired.database, seasons.find(wired.database, "cup", "one"))


def test_the_whole_board_is_compared_a_part_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With everybody drifting, no part has more than its own; the report and the repair have them all."""
    play(world)
    finale("tick").ok()
    right = world.redis.zrange(KEY, 0, -1, withscores=True)
    monkeypatch.setattr(live_check, "BATCH", 50)
    world.redis.delete(KEY)
    world.redis.zadd(KEY, {"intruder": 3})
    with world.outside() as wired:
        parts = list(live_check.whole(wired, seasons.find(wired.database, "cup", "one")))
    assert [len(part.drift) for part in parts] == [50, 50, 21]
    looked_up: list[int] = []
    matches = evidence.matches

    def counted(database: Database, season: Season, players: Sequence[bytes]) -> Any:
        looked_up.append(len(players))
        return matches(database, season, players)

    monkeypatch.setattr(evidence, "matches", counted)
    monkeypatch.setattr(reporting, "_CHUNK", 50)
    monkeypatch.setattr(reporting, "LOOKED_UP", 110)
    asked = finale("reconcile", "cup", "one", "--json").refused(18, "differ in 121 players").json
    assert looked_up[:3] == [50, 50, 10] and asked["players_compared"] == 121
    assert (asked["only_ledger"], asked["only_redis"], asked["players_compared"]) == (PLAYERS, 1, PLAYERS + 1)
    (path,) = (world.store / "reports/cup/one").glob("live-*.parquet")
    rows = pq.read_table(path).to_pylist()
    assert [row["player_id"] for row in rows] == [b"intruder", *(b"p%03d" % number for number in range(PLAYERS))]
    assert [row["cause"] is None for row in rows] == [False] * 110 + [True] * 11
    assert rows[0]["cause"] == "written by someone else" and rows[7]["last_matches"][0]["points"] == 6
    assert finale("reconcile", "cup", "one", "--repair", "--as", "ana", "--json").ok().json["repaired"] == PLAYERS + 1
    assert world.redis.zrange(KEY, 0, -1, withscores=True) == right
    (event,) = [detail for event, _, detail in world.journal("cup", "one") if event == "repaired by hand"]
    assert event["players"] == PLAYERS + 1 and len(event["named"]) == len(event["drift"]) == 20
    assert event["named"][0] == "intruder"
    assert not list((world.folder / "home" / "work").iterdir()), "what it spilled is gone"


def test_one_check_looks_at_a_part_of_who_was_active_and_the_next_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a great import no check reads more than its part; the watermark follows when all were looked at."""
    play(world)
    monkeypatch.setattr(live_check, "ACTIVE", 50)
    monkeypatch.setattr(live_check, "PAGE", 20)
    asked: list[int] = []
    rows = Database.rows

    def counted(self: Database, name: str, *values: Any, **options: Any) -> Any:
        found = rows(self, name, *values, **options)
        if name == "live_checks.active":
            asked.append(len(found))
        return found

    monkeypatch.setattr(Database, "rows", counted)
    check(world)
    first = progress(world)
    assert asked == [20, 20, 10]
    assert (first.watermark, first.active_cursor) == (BEGUN, b"p049")
    assert first.active_horizon is not None
    # Who plays behind the round is met by the next one.
    world.played("cup", f"m2,p007,1,{YESTERDAY}")
    world.redis.zincrby(KEY, 5, "p110")
    check(world)
    assert progress(world).active_cursor == b"p099" and progress(world).watermark == BEGUN
    assert "p110" in check(world)
    last = progress(world)
    assert (last.watermark, last.active_cursor, last.active_horizon) == (first.active_horizon, None, None)
    assert sum(asked) == PLAYERS
    with world.outside() as wired:
        season = seasons.find(wired.database, "cup", "one")
        assert b"p007" in live_checks.active(wired.database, season, last.watermark, None, PLAYERS)
