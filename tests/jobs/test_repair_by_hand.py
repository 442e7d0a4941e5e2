"""A repair by hand before the seal: what was compared or accepted stands no more, so that the key can be cleaned."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.cli import World, finale

KEY = "leaderboard:cup:one"
NOW = datetime.now(UTC).replace(microsecond=0)
PLAYERS = 120
REPAIR = ("reconcile", "cup", "one", "--repair", "--because", "x", "--as", "ana")


def play(world: World, *keys: str, over: bool = True, ties: str = "'shared'") -> None:
    """Play a season, over and frozen, or running; the live key of one that is over goes as soon as it may."""
    begun = datetime(2026, 1, 1, tzinfo=UTC) if over else NOW - timedelta(days=9)
    ends = datetime(2026, 2, 1, tzinfo=UTC) if over else datetime(2090, 1, 1, tzinfo=UTC)
    span = f"starts_at = {begun:%Y-%m-%dT%H:%M:%SZ}, ends_at = {ends:%Y-%m-%dT%H:%M:%SZ}"
    calendar = f"calendar = {{ seasons = [{{ id = 'one', {span} }}] }}"
    world.configure("\n".join(("[board.cup]", f"ties = {ties}", "keep_live = '0s'", calendar, *keys, "")))
    at = f"{begun + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    world.played("cup", *(f"m1,p{number:03d},{number},{at}" for number in range(PLAYERS)))
    if over:
        finale("close", "cup", "one", "--until", "freeze").ok()


def seal(world: World) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((world.store / "seals/cup/one/standings.json").read_bytes())
    return found


def accepted(world: World) -> None:
    """Play a season, plant drift beyond the bound, and accept the report that holds it."""
    play(world, "reconcile = { repair = 0 }")
    world.redis.zincrby(KEY, 5, "p007")
    finale("close", "cup", "one").refused(22, "differ in 1 player")
    (report,) = (world.store / "reports/cup/one").glob("drift-*.json")
    words = ("--accept-drift", report.name, "--because", "x", "--as", "ana")
    finale("season", "release", "cup", "one", *words).ok()


@pytest.mark.parametrize("until", ["snapshot", "reconcile"])
def test_i1_i4_repaired_after_an_acceptance_the_ledgers_numbers_are_sealed(world: World, until: str) -> None:
    """I1, I4: the snapshot is taken again, whether the accepted one was compared already or not; the key is cleaned."""
    accepted(world)
    if until == "reconcile":
        finale("close", "cup", "one", "--until", until).ok()
    finale("reconcile", "cup", "one").refused(18, "--repair")
    assert "the snapshot is taken again" in finale(*REPAIR).ok().out
    assert world.state("cup", "one") == "frozen"
    (event,) = [entry for entry in world.journal("cup", "one") if entry[0] == "snapshot given up"]
    assert event[1] == "ana" and event[2]["because"] == "x"
    finale("close", "cup", "one").ok()
    assert world.state("cup", "one") == "cleaned" and not world.redis.exists(KEY)
    assert seal(world)["accepted_drift"] is None and seal(world)["points_sum"] == sum(range(PLAYERS))


@pytest.mark.parametrize("how", ["rebuild cup one --because x --as ana", "results apply cup one --all"])
def test_i1_whatever_else_writes_the_ledgers_truth_takes_the_snapshot_again_too(world: World, how: str) -> None:
    """I1: a board that is rebuilt, or whose totals are all written, is sealed as it then is, and cleaned."""
    accepted(world)
    finale("close", "cup", "one", "--until", "reconcile").ok()
    finale(*how.split()).ok()
    assert (world.state("cup", "one"), world.redis.zscore(KEY, "p007")) == ("frozen", 7)
    finale("close", "cup", "one").ok()
    assert world.state("cup", "one") == "cleaned" and seal(world)["accepted_drift"] is None


def test_i1_a_repair_of_named_players_takes_the_snapshot_again_too(world: World) -> None:
    """I1: a tolerated player, repaired by name after the comparison, is sealed as Redis has her; then it is cleaned."""
    play(world, "reconcile = { tolerance = 2 }")
    world.redis.zincrby(KEY, 1, "p007")
    finale("close", "cup", "one", "--until", "reconcile").ok()
    assert finale("reconcile", "cup", "one", "--json").ok().json["tolerated"] == 1
    finale(*REPAIR, "--player", "p007").ok()
    assert world.redis.zscore(KEY, "p007") == 7
    finale("close", "cup", "one").ok()
    assert world.state("cup", "one") == "cleaned"


def test_a_season_whose_seal_is_committed_is_not_repaired(world: World) -> None:
    """I1, I2: what the journal has committed will be put; until then, too, the live key stays as it was sealed."""
    accepted(world)
    finale("close", "cup", "one", "--until", "reconcile").ok()
    world.sql(
        "insert into finale.seal (season_id, kind, board, number, previous, sha256, body, fence)"
        " select season_id, 'standings', board, 1, null, 'x', 'x', 1 from finale.season"
    )
    finale(*REPAIR).refused(23, "seal is committed", "as it was sealed")
    assert world.state("cup", "one") == "reconciled" and world.redis.zscore(KEY, "p007") == 12


@pytest.mark.parametrize("ties", ["'shared'", "{ by = 'first_to_reach', unit = 'hour' }"])
def test_the_tolerance_holds_while_a_season_is_played_too(world: World, ties: str) -> None:
    """Within the tolerance nobody drifts, is told of, or rewritten: live as at the close; beyond it, exactly who is."""
    play(world, "reconcile = { tolerance = 2, live = 'repair', repair = 5 }", over=False, ties=ties)
    point = 1 if "shared" in ties else 2**24
    tolerated = world.redis.zincrby(KEY, 2 * point, "p007")
    asked = finale("reconcile", "cup", "one", "--live", "--json").ok().json
    assert (asked["drift"], asked["tolerated"], asked["players_compared"]) == (0, 1, PLAYERS)
    assert "drift" not in finale("tick").ok().out
    assert finale(*REPAIR, "--json").ok().json["repaired"] == 0
    world.redis.zincrby(KEY, -3 * point, "p020")
    world.redis.zrem(KEY, "p030")
    if point > 1:
        world.redis.zincrby(KEY, -1, "p040")  # the same points, an hour later
    asked = finale("reconcile", "cup", "one", "--json").refused(18).json
    assert {one["player_id"] for one in asked["players"]} == {"p020", "p030"} | ({"p040"} if point > 1 else set())
    assert finale(*REPAIR, "--json").ok().json["repaired"] == asked["drift"]
    assert world.redis.zscore(KEY, "p007") == tolerated
