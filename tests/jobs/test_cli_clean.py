"""finale clean: the verdict on every season, all that are due at once, and a cleaned key that is back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from archive import removal
from jobs.steps import clean as clean_step
from tests.support.cli import World, differing, finale

CONFIG = """
[board.cup]
ties = "shared"
rewards = "cup.toml"
calendar = { seasons = [
  { id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z },
  { id = "two", starts_at = 2026-02-01T00:00:00Z, ends_at = 2026-03-01T00:00:00Z },
  { id = "three", starts_at = 2026-03-01T00:00:00Z, ends_at = 2026-04-01T00:00:00Z },
  { id = "four", starts_at = 2026-04-01T00:00:00Z, ends_at = 2026-05-01T00:00:00Z },
] }
[board.laps]
ties = "shared"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
MONTHS = {"one": 1, "two": 2, "three": 3, "four": 4}
STEPS = {"season", "journal", "step_result", "lease"}


def key_of(season: str, board: str = "cup") -> str:
    return f"leaderboard:{board}:{season}"


def play(world: World, *seasons: str, board: str = "cup") -> None:
    world.played(board, *(f"m-{one},{who},5,2026-{MONTHS[one]:02d}-02T00:00:00Z" for one in seasons for who in "ab"))


def due(world: World, *seasons: str) -> None:
    """Let the retention of these delivered seasons of the board cup have passed."""
    for season in seasons:
        world.sql("update finale.season set keep_until = now() where board = 'cup' and season = %s", season)


@pytest.fixture
def played(world: World) -> World:
    """Two boards with played seasons that are over, none of them closed."""
    world.configure(CONFIG, cup=TABLE)
    play(world, *MONTHS)
    play(world, "one", board="laps")
    return world


@pytest.fixture
def cleaned(played: World) -> World:
    """Season one of the cup, sealed, paid and cleaned."""
    finale("close", "cup", "one").ok()
    finale("clean", "cup", "one", "--now", "--as", "ana").ok()
    return played


def bring_back(world: World, season: str = "one") -> None:
    """Let the key be there again as it was sealed, as a failover to a replica that had not heard of its end would."""
    rows = finale("standings", "cup", season, "--json").ok().json
    world.redis.zadd(key_of(season), {row["player_id"]: row["points"] for row in rows})


def verdicts(*arguments: str) -> dict[tuple[str, str], dict[str, Any]]:
    found = finale("clean", *arguments, "--dry-run", "--json").ok().json
    return {(one["board"], one["season"]): one for one in found}


def test_a_dry_run_tells_the_verdict_and_its_reason_for_every_season(cleaned: World) -> None:
    """Cleaned, due, kept, held and not closed: each season has its line, and nothing is changed."""
    for season in ("two", "three"):
        finale("close", "cup", season).ok()
    due(cleaned, "two")
    finale("season", "hold", "cup", "four", "--because", "cheaters?", "--as", "ana").ok()
    before = cleaned.picture()
    found = verdicts()
    assert {name: one["verdict"] for name, one in found.items()} == {
        ("cup", "one"): "done",
        ("cup", "two"): "clean",
        ("cup", "three"): "keep",
        ("cup", "four"): "keep",
        ("laps", "one"): "keep",
    }
    assert found["cup", "one"]["reason"].startswith("cleaned at 20")
    assert found["cup", "two"]["reason"].startswith("due since 20")
    assert "the live key is kept until 20" in found["cup", "three"]["reason"]
    assert found["cup", "four"]["reason"] == "on hold: cheaters?"
    assert found["laps", "one"]["reason"].startswith("open: ")
    assert verdicts("laps") == {("laps", "one"): found["laps", "one"]}
    told = finale("clean", "--dry-run").ok().out
    assert all(one["reason"] in told for one in found.values())
    assert differing(before, cleaned.picture()) == []
    finale("clean", "cupp", "--dry-run").refused(5, "'cupp'")


def test_keep_live_counts_from_the_seal_in_the_verdict(played: World) -> None:
    """The end of the retention is the seal's time and seven days, not the season's end."""
    finale("close", "cup", "one").ok()
    shown = finale("season", "show", "cup", "one", "--json").ok().json
    at = datetime.fromisoformat(verdicts()["cup", "one"]["at"])
    assert at - datetime.fromisoformat(shown["sealed_at"]) == timedelta(days=7)


def test_clean_without_a_season_cleans_what_the_dry_run_says_and_nothing_else(played: World) -> None:
    """Of three delivered seasons two are due: both go, the third and the open ones stay; again it finds nothing."""
    for season in ("one", "two", "three"):
        finale("close", "cup", season).ok()
    due(played, "one", "two")
    expected = {name for name, one in verdicts().items() if one["verdict"] == "clean"}
    found = finale("clean", "--json").ok().json
    assert {(one["board"], one["season"]) for one in found} == expected == {("cup", "one"), ("cup", "two")}
    assert all("proved equal and unlinked" in one["done"] for one in found)
    left = {key.decode() for key in played.redis.keys("leaderboard:*")}
    assert left == {key_of("three"), key_of("four"), key_of("one", "laps")}
    assert finale("clean").ok().out == "nothing is due\n"


def test_only_the_named_board_is_cleaned(played: World) -> None:
    finale("close", "cup", "one").ok()
    due(played, "one")
    assert finale("clean", "laps").ok().out == "nothing is due\n"
    assert played.redis.exists(key_of("one"))
    assert "unlinked" in finale("clean", "cup").ok().out
    assert not played.redis.exists(key_of("one"))


def test_one_season_that_cannot_be_cleaned_does_not_stop_the_others(played: World) -> None:
    """A key that somebody wrote to after the seal is held (exit 22, the player named); the other season is cleaned."""
    for season in ("one", "two"):
        finale("close", "cup", season).ok()
    due(played, "one", "two")
    played.redis.zadd(key_of("one"), {"zoe": 9})
    answer = finale("clean", "--json").refused(22, "zoe")
    told = {one["season"]: one for one in answer.json}
    assert (told["one"]["exit_code"], told["one"]["done"]) == (22, None)
    assert "unlinked" in told["two"]["done"]
    assert played.redis.exists(key_of("one"))
    assert "on hold: " in verdicts()["cup", "one"]["reason"]


def test_a_due_season_whose_key_is_gone_is_absent_and_recorded(played: World) -> None:
    finale("close", "cup", "one").ok()
    due(played, "one")
    played.redis.delete(key_of("one"))
    assert verdicts()["cup", "one"]["verdict"] == "absent"
    (done,) = finale("clean", "--json").ok().json
    assert "gone already" in done["done"]
    assert played.state("cup", "one") == "cleaned"


def test_seasons_of_a_board_that_left_the_configuration_are_only_cleaned_by_name(played: World) -> None:
    """As tick leaves them alone, so does clean without a season, and the verdict says how they are cleaned."""
    finale("close", "cup", "one").ok()
    due(played, "one")
    played.configure(CONFIG.partition("[board.laps]")[1] + CONFIG.partition("[board.laps]")[2])
    assert "finale clean cup one" in verdicts("cup")["cup", "one"]["reason"]
    assert finale("clean").ok().out == "nothing is due\n"
    finale("clean", "cup", "one").ok()
    assert played.state("cup", "one") == "cleaned"


def test_levers_are_for_one_season(cleaned: World) -> None:
    """--now and --again without a season are refused before anything is touched, and need a name."""
    before = cleaned.picture()
    finale("clean", "--now", "--as", "ana").refused(4, "one season")
    finale("clean", "cup", "--again", "--as", "ana").refused(4, "one season")
    finale("clean", "cup", "one", "--again", "--now", "--as", "ana").refused(4, "exclude each other")
    finale("clean", "cup", "one", "--again").refused(4, "--as NAME")
    assert differing(before, cleaned.picture()) == []


def test_tick_tells_a_cleaned_key_that_is_back_and_goes_on(cleaned: World) -> None:
    """A failover brought the key back: every tick says so with the remedy (exit 15), and does the rest of its work."""
    assert finale("tick").ok().out == "nothing is due\n"
    bring_back(cleaned)
    finale("close", "cup", "two").ok()
    due(cleaned, "two")
    answer = finale("tick", "--json")
    answer.refused(15, "cup/one was cleaned", key_of("one"), "finale clean cup one --again", "finale season strays")
    told = {one["name"]: one for one in answer.json}
    assert told["cup/two"]["steps"] == ["clean"]
    assert told["cup/one"]["exit_code"] == 15
    assert cleaned.redis.zcard(key_of("one")) == 2
    assert verdicts()["cup", "one"]["verdict"] == "returned"


def test_tick_looks_after_lately_cleaned_seasons_only(cleaned: World) -> None:
    """A season cleaned long ago is no longer asked for, so what a tick asks of Redis stays bounded."""
    bring_back(cleaned)
    cleaned.sql("update finale.step_result set finished_at = now() - interval '31 days' where step = 'clean'")
    finale("tick").ok()
    assert "is back" in finale("season", "strays").ok().out


@pytest.mark.parametrize("cleanup", ["unlink", "expire"])
def test_i1_a_key_that_is_back_is_cleaned_again_once_it_is_proved_equal(world: World, cleanup: str) -> None:
    """I1: parts are read again, the key compared and removed under a new fence; helpers go; the journal keeps it."""
    world.configure(CONFIG.replace('rewards = "cup.toml"', f'rewards = "cup.toml"\ncleanup = "{cleanup}"'), cup=TABLE)
    play(world, "one")
    finale("close", "cup", "one").ok()
    finale("clean", "cup", "one", "--now", "--as", "ana").ok()
    private = "{leaderboard:cup:one}:finale:expiring"
    world.redis.delete(private)
    bring_back(world)
    world.redis.set("{leaderboard:cup:one}:finale:fence", 1)
    world.redis.hset("{leaderboard:cup:one}:finale:applied", "n0", 1)
    before = world.picture()
    (planned,) = finale("clean", "cup", "one", "--again", "--dry-run", "--json").ok().json
    assert (planned["step"], planned["verdict"]) == ("clean", "act")
    assert differing(before, world.picture()) == []
    done = finale("clean", "cup", "one", "--again", "--as", "bob", "--json").ok().json
    assert (done["outcome"], done["rows"]) == ("removed" if cleanup == "unlink" else "expiring", 2)
    assert world.redis.keys() == ([] if cleanup == "unlink" else [private.encode()])
    event, who, detail = world.journal("cup", "one")[-1]
    assert (event, who, detail["rows"]) == ("cleaned again", "bob", 2)
    assert finale("tick").ok().out == "nothing is due\n"
    assert world.state("cup", "one") == "cleaned"


def test_i1_a_key_that_is_back_with_other_content_is_not_removed(cleaned: World) -> None:
    """I1: the players that differ are named (exit 22), the key and the season stay as they were, the journal tells."""
    bring_back(cleaned)
    cleaned.redis.zadd(key_of("one"), {"zoe": 9, "a": 6})
    before = cleaned.picture("journal", "lease")
    (planned,) = finale("clean", "cup", "one", "--again", "--dry-run", "--json").ok().json
    assert planned["verdict"] == "hold"
    assert "zoe" in planned["why"]
    finale("clean", "cup", "one", "--again", "--as", "bob").refused(22, "zoe", "'a'")
    assert differing(before, cleaned.picture("journal", "lease")) == []
    assert cleaned.journal("cup", "one")[-1][0] == "not cleaned again"


def test_i1_a_key_that_is_back_stays_when_a_sealed_part_is_gone(cleaned: World) -> None:
    """I1: the archive is read again before; a part that the store lost leaves the key (exit 30) and no fence."""
    bring_back(cleaned)
    (part,) = (cleaned.store / "standings/board=cup/season=one").iterdir()
    part.unlink()
    finale("clean", "cup", "one", "--again", "--as", "bob").refused(30, "part-00000")
    assert cleaned.redis.keys(f"*{key_of('one')}*") == [key_of("one").encode()]


def test_i9_a_runner_that_was_taken_over_does_not_clean_again(cleaned: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """I9: another fence beside the key, raised while the parts were read, and nothing is removed; that fence stays."""
    bring_back(cleaned)
    fence = "{leaderboard:cup:one}:finale:fence"
    remove = removal.remove

    def taken_over(*given: Any, **named: Any) -> Any:
        cleaned.redis.set(fence, 10_000)
        return remove(*given, **named)

    monkeypatch.setattr(clean_step.removal, "remove", taken_over)
    finale("clean", "cup", "one", "--again", "--as", "bob").refused(21, "10000")
    assert cleaned.redis.zcard(key_of("one")) == 2
    assert cleaned.redis.get(fence) == b"10000"


@pytest.mark.parametrize(
    ("replicas", "confirmed", "told"), [(0, 0, False), (2, 2, False), (2, 1, True), (2, None, True)]
)
def test_c19_the_step_tells_of_replicas_that_are_behind(
    played: World, monkeypatch: pytest.MonkeyPatch, replicas: int, confirmed: int | None, told: bool
) -> None:
    """C19: how many replicas confirmed stands in the step's result; fewer than follow are a warning in the journal."""
    monkeypatch.setattr(removal, "wait_for_replicas", lambda _: (replicas, confirmed))
    finale("close", "cup", "one").ok()
    finale("clean", "cup", "one", "--now", "--as", "ana").ok()
    result = played.sql("select result from finale.step_result where step = 'clean'")[0][0]
    assert (result["replicas"], result["acknowledged"]) == (replicas, confirmed)
    warned = [entry for entry in finale("journal", "cup", "one", "--json").ok().json if "warnings" in str(entry)]
    assert ("2 replicas follow this Redis" in str(warned)) is told


def test_again_is_for_cleaned_seasons_and_removes_what_is_left_beside_a_key_that_is_gone(cleaned: World) -> None:
    finale("clean", "cup", "two", "--again", "--as", "bob").refused(23, "is open")
    cleaned.redis.hset("{leaderboard:cup:one}:finale:applied", "n0", 1)
    assert finale("clean", "cup", "one", "--again", "--as", "bob", "--json").ok().json["outcome"] == "absent"
    assert cleaned.redis.keys("*cup:one*") == []


def test_what_is_no_board_under_the_key_is_told_alike_and_can_be_moved_away(played: World) -> None:
    """I1: something else under the live key: the same verdict dry and real, nothing touched, and the remedy works."""
    finale("close", "cup", "one").ok()
    due(played, "one")
    key = key_of("one")
    played.redis.delete(key)
    played.redis.set(key, "x")
    verdict = verdicts()[("cup", "one")]
    assert verdict["verdict"] == "foreign"
    assert f"the live key {key} is a string, not a sorted set" in verdict["reason"]
    [planned] = finale("clean", "cup", "one", "--dry-run", "--json").ok().json
    assert planned["verdict"] == "hold" and f"RENAMENX {key}" in planned["hint"]
    finale("clean", "cup", "one").refused(22, "is a string, not a sorted set", f"RENAMENX {key} {key}:moved")
    assert played.redis.get(key) == b"x"
    assert played.redis.renamenx(key, f"{key}:moved")
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("clean", "cup", "one").ok()
    assert played.state("cup", "one") == "cleaned" and played.redis.get(f"{key}:moved") == b"x"
