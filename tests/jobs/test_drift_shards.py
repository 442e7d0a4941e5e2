"""I4 over several sorted sets of Finale's own ledger: a shard that is lost, and checks while the season is played."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.cli import World, finale

KEY = "leaderboard:cup:one"
NOW = datetime.now(UTC).replace(microsecond=0)
OPEN = f"{{ id = 'one', starts_at = {NOW - timedelta(days=9):%Y-%m-%dT%H:%M:%SZ}, ends_at = 2090-01-01T00:00:00Z }}"
OVER = "{ id = 'one', starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }"
PLAYERS = '{ by = "player", count = 8 }'
BANDS = '{ by = "score", cuts = [30, 60, 90, 120, 150, 180, 210] }'
COUNT = 240


def play(world: World, shards: str, reconcile: str, *, over: bool) -> None:
    """Play a season of 240 players with 0 to 239 points over eight sorted sets."""
    world.configure(
        f"[board.cup]\nties = 'shared'\nahead = 0\nshards = {shards}\nreconcile = {{ {reconcile} }}\n"
        f"calendar = {{ seasons = [{OVER if over else OPEN}] }}\n"
    )
    at = "2026-01-02T00:00:00Z" if over else f"{NOW - timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
    world.played("cup", *(f"m1,p{number:03d},{number},{at}" for number in range(COUNT)))


def lose(world: World, *, marks: bool) -> tuple[str, int]:
    """Lose a shard, with or without what stands beside it; return its key and how many players it had."""
    lost = f"{KEY}:3"
    players = world.redis.zcard(lost)
    assert players >= 10
    world.redis.delete(lost, *([f"{{{lost}}}:finale:applied"] if marks else []))
    return lost, players


def report(world: World) -> Any:
    (path,) = (world.store / "reports/cup/one").glob("drift-*.json")
    return json.loads(path.read_bytes())


@pytest.mark.parametrize("marks", [False, True])
@pytest.mark.parametrize("shards", [PLAYERS, BANDS])
def test_i4_a_lost_shard_is_said_once_and_holds(world: World, shards: str, marks: bool) -> None:
    """I4: exactly its players drift, the hold says so in one sentence, and a repair by hand lets the season close."""
    play(world, shards, "repair = '1%'", over=True)
    finale("close", "cup", "one", "--until", "freeze").ok()
    lost, players = lose(world, marks=marks)
    said = f"all {players} are in 1 of 8 shards: {lost} ({players})"
    held = finale("close", "cup", "one").refused(22, f"differ in {players} players")
    shown = [line for line in held.err.splitlines() if not line.startswith("{")]
    assert " ".join(" ".join(shown).split()).count(said) == 1
    assert not world.files("seals")
    told = report(world)
    assert (told["only_ledger"], told["drift"]) == (players, players)
    assert [one["words"] for one in told["shared"] if one["kind"] == "place"] == [said]
    # What stands beside the key remembers what was confirmed; lost with it, the server has been rolled back.
    assert [one["kind"] for one in told["shared"]] == ["rollback", "place"][not marks :]
    finale("reconcile", "cup", "one", "--repair", "--as", "ana").ok()
    assert world.redis.zcard(lost) == players
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one", "--until", "seal").ok()
    assert finale("archive", "verify", "cup", "one").ok()
    found = json.loads((world.store / "seals/cup/one/standings.json").read_bytes())
    assert (found["rows"], found["repaired"], found["reconcile"]["equal"]) == (COUNT, None, COUNT)


@pytest.mark.parametrize("shards", [PLAYERS, BANDS])
def test_i4_a_lost_shard_within_the_bound_wakes_nobody(world: World, shards: str) -> None:
    """I4: the shard is written again from the ledger, and the seal tells of it."""
    play(world, shards, "repair = '20%'", over=True)
    finale("close", "cup", "one", "--until", "freeze").ok()
    lost, players = lose(world, marks=False)
    finale("close", "cup", "one", "--until", "seal").ok()
    found = json.loads((world.store / "seals/cup/one/standings.json").read_bytes())
    (repaired,) = found["repaired"]
    assert repaired["players"] == repaired["only_ledger"] == players
    assert any(f"are in 1 of 8 shards: {lost}" in words for words in repaired["shared"])
    assert (found["rows"], found["reconcile"]["drift"]) == (COUNT, 0)


@pytest.mark.parametrize("live", ["report", "repair"])
@pytest.mark.parametrize("shards", [PLAYERS, BANDS])
def test_checks_of_a_played_season_go_over_every_shard(world: World, shards: str, live: str) -> None:
    """Lost, changed, nobody's, and a player who stands in two shards: found in slices, reported, put right.

    Also where a player is in a shard that is not hers, to which Finale never writes her.
    """
    play(world, shards, f"live = '{live}', every = '10s', slice = 100, repair = 20", over=False)
    finale("tick").ok()
    keys = [f"{KEY}:{shard}" for shard in range(8)]
    firsts = [world.redis.zrange(key, 0, 0)[0].decode() for key in keys]
    world.redis.zrem(keys[0], firsts[0])
    world.redis.zincrby(keys[2], 1, firsts[2])
    world.redis.zadd(keys[7], {"intruder": 211})
    world.redis.zadd(keys[5], {firsts[4]: 155})
    planted = {firsts[0], firsts[2], firsts[4], "intruder"}
    asked = finale("reconcile", "cup", "one", "--json").refused(18, "differ in 4 players")
    assert {one["player_id"] for one in asked.json["players"]} == planted
    (twice,) = (one for one in asked.json["players"] if one["player_id"] == firsts[4])
    assert (twice["class"], asked.json["several_shards"]) == ("several_shards", 1)
    assert {row["key"] for row in twice["redis_rows"]} == {keys[4], keys[5]}
    assert twice["redis_points"] == twice["ledger_points"], "those of her own shard"
    assert f"stands in 2 shards: key {keys[4]} (score" in finale("reconcile", "cup", "one").out
    named: set[str] = set()
    for _ in range(10):
        world.sql("update finale.live_check set checked_at = checked_at - interval '1 minute'")
        finale("tick").ok()
    events = [detail for event, _, detail in world.journal("cup", "one") if event == "drift"]
    for detail in events:
        named |= {example.partition(":")[0] for example in detail["examples"]}
        assert (world.store / detail["report"].partition("/store/")[2]).exists()
    assert named == planted
    differences = [detail["report"] for detail in events]
    assert len(set(differences)) == len(differences)
    after = finale("reconcile", "cup", "one", "--json")
    assert after.json["drift"] == (4 if live == "report" else 0)
    assert sum(world.redis.zcard(key) for key in keys) == (COUNT if live == "repair" else COUNT + 1)


@pytest.mark.parametrize("shards", [PLAYERS, BANDS])
def test_a_row_in_a_wrong_shard_is_told_and_put_right(world: World, shards: str) -> None:
    """Alone it counts as the player's; beside her own row it holds the season, and a repair leaves only her own."""
    play(world, shards, "repair = 0", over=True)
    finale("close", "cup", "one", "--until", "freeze").ok()
    keys = [f"{KEY}:{shard}" for shard in range(8)]
    alone, twice = (world.redis.zrange(keys[at], 0, 0)[0].decode() for at in (3, 4))
    score = world.redis.zscore(keys[3], alone)
    world.redis.zrem(keys[3], alone)
    world.redis.zadd(keys[6], {alone: score})
    assert finale("reconcile", "cup", "one", "--json").ok().json["drift"] == 0
    assert finale("rank", "cup", alone, "--json").ok().json["points"] == score
    world.redis.zadd(keys[5], {twice: 155})
    held = finale("close", "cup", "one").refused(22, "in more than one shard", keys[4], keys[5])
    assert "finale reconcile cup one --repair" in held.err
    asked = finale("reconcile", "cup", "one", "--json").refused(18, "differ")
    assert [one["player_id"] for one in asked.json["players"]] == [twice]
    finale("reconcile", "cup", "one", "--repair", "--player", alone, "--player", twice, "--as", "ana").ok()
    assert [[key for key in keys if world.redis.zscore(key, one) is not None] for one in (alone, twice)] == [
        [keys[3]],
        [keys[4]],
    ]
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one", "--until", "seal").ok()
    assert finale("archive", "verify", "cup", "one").ok()
