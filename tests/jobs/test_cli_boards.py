"""finale top, rank and around; and all that only reads, on boards whose writers are not Finale."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import redis

from tests.support.cli import World, finale
from tests.support.servers import ServerFactory, running

BOARD = """
[board.b]
ties = "{ties}"
ledger = "{ledger}"
ahead = 0
{more}
[board.b.calendar]
seasons = [
  {{ id = "past", starts_at = {past:%Y-%m-%dT%H:%M:%SZ}, ends_at = {now:%Y-%m-%dT%H:%M:%SZ} }},
  {{ id = "present", starts_at = {now:%Y-%m-%dT%H:%M:%SZ}, ends_at = {end:%Y-%m-%dT%H:%M:%SZ} }},
  {{ id = "future", starts_at = {end:%Y-%m-%dT%H:%M:%SZ}, ends_at = {later:%Y-%m-%dT%H:%M:%SZ} }},
]
"""
DAY = timedelta(days=1)


def configure(world: World, ties: str = "shared", ledger: str = "own", more: str = "") -> datetime:
    """Write a board of three seasons; the middle one is played now. Return a time within it."""
    now = datetime.now(UTC).replace(microsecond=0) - DAY
    spans = {"past": now - 30 * DAY, "now": now, "end": now + 30 * DAY, "later": now + 60 * DAY}
    world.configure(BOARD.format(ties=ties, ledger=ledger, more=more, **spans))
    return now + timedelta(hours=1)


def test_the_season_that_is_played_now_is_meant(world: World) -> None:
    """Without --season: the running one, whatever came before; with it, that one."""
    at = configure(world)
    world.played("b", f"m1,ann,7,{at.isoformat()}", f"m1,bob,7,{at.isoformat()}", f"m1,cyd,1,{at.isoformat()}")
    world.played("b", f"m0,old,3,{(at - 2 * DAY).isoformat()}")
    assert [(row["rank"], row["player_id"]) for row in finale("top", "b", "--json").ok().json] == [
        (1, "bob"),
        (1, "ann"),
        (3, "cyd"),
    ]
    assert [row["player_id"] for row in finale("top", "b", "-k", "1", "--json").ok().json] == ["bob"]
    assert [row["player_id"] for row in finale("top", "b", "--season", "past", "--json").ok().json] == ["old"]
    assert finale("rank", "b", "ann", "--json").ok().json == {
        "board": "b",
        "season": "present",
        "over": False,
        "player_id": "ann",
        "rank": 1,
        "error": 0,
        "players": 3,
        "percentile": pytest.approx(100 / 3),
        "points": 7,
        "reached_at": None,
    }
    assert [row["player_id"] for row in finale("around", "b", "ann", "-n", "1", "--json").ok().json] == [
        "bob",
        "ann",
        "cyd",
    ]
    assert "33.333" in finale("rank", "b", "bob").ok().out
    finale("rank", "b", "nobody").refused(5, "'nobody'")
    finale("around", "b", "nobody").refused(5, "'nobody'")
    finale("top", "b", "--season", "future").refused(5, "future")
    finale("top", "nothing").refused(5, "nothing")


def test_the_rank_is_the_same_from_the_archive(world: World) -> None:
    """I1: rank, players and percentile are told from the sealed season once its key is gone."""
    at = configure(world, ties="first_to_reach")
    old = at - 2 * DAY
    world.played("b", *(f"m1,p{number},{number % 5},{old.isoformat()}" for number in range(30)))
    live = [finale("rank", "b", f"p{number}", "--season", "past", "--json").ok().json for number in (0, 4, 29)]
    finale("close", "b", "past").ok()
    finale("clean", "b", "past", "--now", "--as", "test").ok()
    assert not world.redis.exists("leaderboard:b:past")
    sealed = [finale("rank", "b", f"p{number}", "--season", "past", "--json").ok().json for number in (0, 4, 29)]
    assert sealed == live
    finale("rank", "b", "nobody", "--season", "past").refused(5, "'nobody'")


def test_an_estimated_rank_says_how_far_off_it_may_be(world: World) -> None:
    """--estimated: from the bands, with its bound; one-point bands are exact; a board without bands refuses."""
    at = configure(world, more="bands = [10, 11, 1000]")
    world.played("b", *(f"m1,p{number},{number},{at.isoformat()}" for number in range(50)))
    for player, error in (("p10", False), ("p30", True)):
        exact = finale("rank", "b", player, "--json").ok().json["rank"]
        told = finale("rank", "b", player, "--estimated", "--json").ok().json
        assert abs(told["rank"] - exact) <= told["error"] < 50
        assert (told["error"] > 0) is error
    assert "within" in finale("rank", "b", "p30", "--estimated").ok().out
    configure(world, more='key = "other:<season>"', ledger="none")
    world.sql("delete from finale.season")
    world.redis.zadd("other:present", {"ann": 1})
    finale("rank", "b", "ann", "--estimated").refused(4, "has no score bands")


def test_nothing_has_begun(world: World) -> None:
    """A board without a season yet says so, and what would create one."""
    configure(world)
    finale("top", "b").refused(5, "no season of board b has begun", "finale tick")


def test_a_board_that_others_write_is_read_without_a_row_of_its_own(world: World) -> None:
    """ledger = "none": top, rank, around and standings of a season that Finale never opened; nothing is written."""
    configure(world, ledger="none", more='key = "lb:<season>"')
    world.redis.zadd("lb:present", {"ann": 5, "bob": 5, "cyd": 0})
    world.redis.zadd("lb:past", {"old": 1})
    before = world.picture()
    assert [row["rank"] for row in finale("top", "b", "--json").ok().json] == [1, 1, 3]
    assert finale("rank", "b", "cyd", "--json").ok().json["rank"] == 3
    assert len(finale("around", "b", "bob", "--json").ok().json) == 3
    assert [row["player_id"] for row in finale("standings", "b", "present", "--json").ok().json] == [
        "bob",
        "ann",
        "cyd",
    ]
    assert [row["player_id"] for row in finale("top", "b", "--season", "past", "--json").ok().json] == ["old"]
    finale("top", "b", "--season", "never").refused(5, "never")
    assert world.picture() == before
    adopted = finale("archive", "adopt", "lb:past", "--board", "b", "--season", "past", "--json")
    adopted.ok()
    assert [row["player_id"] for row in finale("top", "b", "--season", "past", "--json").ok().json] == ["old"]


def test_c10_binary_players_are_asked_for_in_hex(world: World) -> None:
    """C10: ids that are no text go in and out as hex; a wrong hex is refused."""
    configure(world, ledger="none", more='member = "binary"')
    world.redis.zadd("leaderboard:b:present", {b"\xff\x00": 5})
    assert finale("rank", "b", "ff00", "--json").ok().json["rank"] == 1
    assert finale("around", "b", "ff00", "--json").ok().json[0]["player_id"] == "ff00"
    finale("rank", "b", "xyz").refused(4, "hex")


def test_the_top_is_read_from_the_replica_if_there_is_one(
    world: World, server_factory: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[servers] replica, or FINALE_REPLICA: top comes from there, one's own rank from the primary."""
    configure(world, ledger="none")
    world.redis.zadd("leaderboard:b:present", {"ann": 5, "bob": 3})
    with running(server_factory.redis()) as server, redis.Redis.from_url(server.url) as replica:
        replica.zadd("leaderboard:b:present", {"ann": 5})
        monkeypatch.setenv("FINALE_REPLICA", server.url)
        assert [row["player_id"] for row in finale("top", "b", "--json").ok().json] == ["ann"]
        assert finale("rank", "b", "bob", "--json").ok().json["rank"] == 2
        assert server.url.removeprefix("unix://") in finale("config", "show").ok().out
    assert len(finale("top", "b", "--json").ok().json) == 2, "the primary answers where the replica does not"
    monkeypatch.delenv("FINALE_REDIS")
    monkeypatch.delenv("FINALE_POSTGRES")
    finale("top", "b").refused(3, "a replica follows a Redis that is named too")


def test_a_season_that_is_over_is_named(world: World) -> None:
    """Without --season the last one answers between seasons: table and JSON say which it is, and that it is over."""
    at = configure(world)
    text = world.config.read_text()
    world.config.write_text("\n".join(line for line in text.splitlines() if '"present"' not in line))
    world.played("b", f"m0,old,3,{(at - 2 * DAY).isoformat()}")
    assert "season past, which is over since" in finale("top", "b").ok().out
    assert "season past, which is over since" in finale("rank", "b", "old").ok().out
    (row,) = finale("top", "b", "--json").ok().json
    assert (row["season"], row["over"]) == ("past", True)
    assert finale("rank", "b", "old", "--json").ok().json["over"] is True


def test_an_empty_board_says_of_which_season_it_is(world: World) -> None:
    """No row names the season then: the table's title does, and a note beside the empty JSON."""
    configure(world)
    finale("tick").ok()
    assert "season present" in finale("top", "b").ok().out
    empty = finale("top", "b", "--json").ok()
    assert empty.json == []
    assert "note: season present has no players" in empty.err
    assert "note:" not in finale("top", "b", "--season", "present").ok().err


def test_an_empty_top_says_when_the_ledger_has_players(world: World) -> None:
    """A lost live key is no board without players: a note on stderr names the key and the remedy."""
    at = configure(world)
    world.played("b", f"m1,ann,7,{at.isoformat()}")
    assert "note" not in finale("top", "b").ok().err
    world.redis.delete("leaderboard:b:present")
    assert "finale rebuild b present" in finale("top", "b", "--json").ok().err
    told = finale("standings", "b", "present", "--json").ok()
    assert told.json == [] and "finale rebuild b present" in told.err
