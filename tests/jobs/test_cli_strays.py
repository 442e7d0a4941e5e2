"""finale season strays: keys that look like a board's and belong to no season. It reports, and touches nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.jobs.test_cli_clean import CONFIG, TABLE, bring_back, key_of, play
from tests.support.cli import World, differing, finale

MORE = """
[board.dated]
ledger = "none"
ties = "shared"
key = "lb:<starts_at:%Y-%m-%d>"
calendar = { every = "month" }
[board.mine]
ledger = "none"
ties = "shared"
key = "{mine}:<season>"
calendar = { every = "year" }
"""


@pytest.fixture
def cup(world: World) -> World:
    """Seasons one (cleaned) and two (open) of the cup, and two boards without a ledger."""
    world.configure(CONFIG + MORE, cup=TABLE)
    play(world, "one", "two")
    finale("close", "cup", "one").ok()
    finale("clean", "cup", "one", "--now", "--as", "ana").ok()
    return world


def reported(*arguments: str) -> dict[str, dict[str, Any]]:
    return {one["key"]: one for one in finale("season", "strays", *arguments, "--json").ok().json}


def test_nothing_is_reported_where_every_key_belongs_to_a_season(cup: World) -> None:
    """The live keys of open seasons, their helpers, and keys that look like nobody's board are no strays."""
    cup.redis.zadd("sessions", {"x": 1})
    cup.redis.set("leaderboard:cup:old", "text")
    assert reported() == {}
    assert "belongs to a season" in finale("season", "strays").ok().out


def test_c11_c16_keys_that_look_like_boards_are_told_once_with_a_remedy_and_left_alone(cup: World) -> None:
    """C11, C16: a season's registry, not SCAN, decides what is removed: SCAN only reports, each key once."""
    cup.redis.zadd("leaderboard:cup:old", {"x": 1, "y": 2})
    cup.redis.zadd("lb:2024-02-01", {"x": 1})
    cup.redis.zadd("{mine}:s2024", {"x": 1})
    before = cup.picture()
    found = reported()
    assert {key: (one["kind"], one["board"], one["season"], one["rows"]) for key, one in found.items()} == {
        "leaderboard:cup:old": ("board", "cup", "old", 2),
        "lb:2024-02-01": ("board", "dated", None, 1),
        "{mine}:s2024": ("board", "mine", "s2024", 1),
    }
    assert "finale archive adopt leaderboard:cup:old --board cup --season old" in found["leaderboard:cup:old"]["hint"]
    assert "finale close mine s2024" in found["{mine}:s2024"]["hint"]
    assert set(reported("cup")) == {"leaderboard:cup:old"}
    told = finale("season", "strays").ok().out
    assert all(key in told for key in found)
    assert differing(before, cup.picture()) == []
    finale("clean").ok()
    finale("tick")
    assert cup.redis.exists(*found) == len(found)
    finale("season", "strays", "cupp").refused(5, "'cupp'")


def test_helper_keys_that_no_season_needs_are_told(cup: World) -> None:
    """A fence of a cleaned season, one of no season; not those of open ones, nor a private name that is to expire."""
    cup.redis.set("{leaderboard:cup:one}:finale:fence", 3)
    cup.redis.hset("{leaderboard:cup:nine}:finale:applied", "n0", 1)
    cup.redis.zadd("{leaderboard:cup:one}:finale:expiring", {"x": 1})
    cup.redis.expire("{leaderboard:cup:one}:finale:expiring", 1_000)
    assert cup.redis.keys("*cup:two*applied")
    found = reported()
    assert {key: (one["kind"], one["season"]) for key, one in found.items()} == {
        "{leaderboard:cup:one}:finale:fence": ("helper", "one"),
        "{leaderboard:cup:nine}:finale:applied": ("helper", None),
    }
    assert set(reported("cup")) == set(found)
    assert reported("dated") == {}
    cup.redis.persist("{leaderboard:cup:one}:finale:expiring")
    assert "by hand" in reported()["{leaderboard:cup:one}:finale:expiring"]["hint"]


def test_a_cleaned_key_that_is_back_is_compared_with_its_archive(cup: World) -> None:
    """The very rows, other rows (the players named), another type, an archive that is gone: each is told as it is."""
    bring_back(cup)
    before = cup.picture()
    back = reported()[key_of("one")]
    assert (back["kind"], back["season"], back["rows"]) == ("returned", "one", 2)
    assert "the very rows that were sealed" in back["what"]
    assert "finale clean cup one --again" in back["hint"]
    assert differing(before, cup.picture()) == []
    cup.redis.zadd(key_of("one"), {"zoe": 7})
    back = reported()[key_of("one")]
    assert "not what was sealed" in back["what"]
    assert "zoe" in back["what"]
    assert "--again" not in back["hint"]
    (cup.store / "seals/cup/one/standings.json").unlink()
    assert "could not be compared" in reported()[key_of("one")]["what"]
    cup.redis.delete(key_of("one"))
    cup.redis.set(key_of("one"), "x")
    assert "it is a string" in reported()[key_of("one")]["what"]


def test_a_board_that_left_the_configuration_is_still_known_by_its_seasons(cup: World) -> None:
    """Its template stands in the ledger: its keys are neither forgotten nor, where a season has them, strays."""
    cup.redis.zadd("leaderboard:cup:old", {"x": 1})
    cup.configure(MORE)
    assert set(reported()) == {"leaderboard:cup:old"}
