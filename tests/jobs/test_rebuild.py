"""finale rebuild: a board made anew from the ledger, whatever became of the old one, and whatever happens meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import redis

from jobs.boards import rebuilding
from jobs.boards.projection import apply_pending
from jobs.wiring import Outside
from leaderboard.errors import LeaseLostError
from leaderboard.keys import building_keys, helper_key
from ledger import pending, totals
from live.board import LiveBoard
from live.counts import recount
from tests.jobs.test_projection import CONFIG, KEY, LAYOUTS, board, check, expected, play, season
from tests.support.cli import World, finale
from tests.support.servers import ServerFactory
from tests.support.topologies import HOST, cluster_of_three


@pytest.fixture(params=list(LAYOUTS))
def outside(world: World, request: pytest.FixtureRequest) -> Iterator[Outside]:
    world.configure(CONFIG.replace("LAYOUT", LAYOUTS[request.param]))
    with world.outside() as wired:
        yield wired


def rebuild(outside: Outside, **more: Any) -> rebuilding.Rebuilt:
    return rebuilding.rebuild(outside, season(outside), who="test", progress=more.get("progress", lambda _: None))


def test_it_is_the_ledger_whatever_the_old_board_was(outside: Outside) -> None:
    """A good board, a wrong one, a lost one, one that was never written: afterwards each equals a recount."""
    play(outside, 1)
    assert rebuild(outside).before == 0
    check(outside)
    play(outside, 2, count=50)
    done = rebuild(outside)
    assert done.players == len(expected(outside))
    assert done.followed == 0
    check(outside)
    for key in season(outside).live_keys:
        outside.redis.zadd(key, {"stranger": 1, "p1": 10**9})
    assert (rebuilding.plan(outside, season(outside)).wrong_bands > 0) is (season(outside).board.bands is not None)
    outside.redis.zrem(season(outside).live_keys[0], "p2", "p3")
    rebuild(outside)
    check(outside)
    outside.redis.flushall()
    rebuild(outside)
    check(outside)
    assert pending.count(outside.database, season(outside).key) == 0
    assert apply_pending(outside, season(outside), "next").players == 0


def test_what_comes_meanwhile_follows(outside: Outside) -> None:
    """Results taken while it is built wait, and are on the board when the command ends."""
    play(outside, 1)
    apply_pending(outside, season(outside), "one")
    seen: list[dict[bytes, float]] = []

    def meanwhile(_: int) -> None:
        if not seen:
            seen.append(board(outside.redis))
            play(outside, 2, count=80)
            assert apply_pending(outside, season(outside), "another").players == 0

    before = board(outside.redis)
    done = rebuild(outside, progress=meanwhile)
    assert seen == [before]
    assert done.followed > 0
    check(outside)


def test_readers_never_see_a_part_of_a_board(world: World, outside: Outside) -> None:
    """While boards are rebuilt again and again, every shard always has all of its players."""
    play(outside, 1)
    apply_pending(outside, season(outside), "one")
    full = {key: outside.redis.zcard(key) for key in season(outside).live_keys}
    done, short = threading.Event(), []

    def look() -> None:
        with world.outside() as own:
            while not done.is_set():
                short.extend(key for key, rows in full.items() if own.redis.zcard(key) != rows)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(5):
            rebuild(outside)
    finally:
        done.set()
        thread.join()
    assert short == []


def test_i9_an_applier_by_force_stops_it_and_nothing_is_lost(outside: Outside) -> None:
    """I9: buckets taken over while it is built: it changes nothing more, and what it has built is found and removed."""
    play(outside, 1)
    apply_pending(outside, season(outside), "one")

    def taken(_: int) -> None:
        play(outside, 3, count=10)
        apply_pending(outside, season(outside), "another", force=True)

    with pytest.raises(LeaseLostError):
        rebuild(outside, progress=taken)
    check(outside)
    assert outside.redis.keys("*building*") != []
    rebuild(outside)
    assert not outside.redis.keys("*building*")
    check(outside)


@pytest.mark.parametrize("layout", ["by player", "by score"])
def test_i1_the_clean_takes_the_helpers_of_every_shard_with_it(world: World, layout: str) -> None:
    """I1: counts of bands, marks of moving players, claims and fences go in the transaction that proved the key."""
    world.configure(CONFIG.replace("LAYOUT", LAYOUTS[layout]))
    with world.outside() as wired:
        play(wired, 1)
        rebuild(wired)
        assert wired.redis.keys("*bands") != []
        wired.redis.hset(helper_key(season(wired).live_keys[0], "moving"), "she", "left by a dead applier")
    world.sql("update finale.season set ends_at = now(), closes_at = now()")
    finale("close", "b", "one").ok()
    finale("clean", "b", "one", "--now", "--as", "ana").ok()
    assert world.redis.keys("*") == []


def test_a_board_that_will_be_renamed_is_rebuilt_where_it_is(world: World) -> None:
    """freeze = "rename": before the freeze the live key is rebuilt, its helpers beside the season's own name."""
    world.configure(CONFIG.replace("LAYOUT", 'freeze = "rename"\nbands = { width = 5 }'))
    with world.outside() as wired:
        play(wired, 1)
        apply_pending(wired, season(wired), "one")
        wired.redis.zadd(KEY, {"stranger": 5})
        rebuild(wired)
        scale = season(wired).board.scale
        assert scale is not None
        assert board(wired.redis) == expected(wired)
        assert recount(wired.redis, KEY, scale, beside=season(wired).own_key).wrong == 0
        play(wired, 2, count=40)
        apply_pending(wired, season(wired), "two")
        assert board(wired.redis) == expected(wired)
    assert finale("rank", "b", "p1", "--estimated", "--json").ok().json["players"] > 100


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_on_a_real_cluster(world: World, server_factory: ServerFactory, layout: str) -> None:
    """Three nodes: written, asked, rebuilt and written on, with the shards of a board on different nodes."""
    world.configure(CONFIG.replace("LAYOUT", LAYOUTS[layout]))
    with (
        cluster_of_three(server_factory) as cluster,
        redis.RedisCluster(HOST, cluster.ports[0]) as client,
        world.outside() as wired,
    ):
        there = replace(wired, redis=client)
        play(there, 1)
        apply_pending(there, season(there), "one")
        check(there)
        live = LiveBoard.of(client, season(there))
        assert {row.player_id: row.score for row in live.top(1_000)} == expected(there)
        middle = live.page(70, 1)[0]
        assert live.around(middle.player_id, 2) == live.page(68, 5)
        found = live.rank(middle.player_id)
        assert found is not None and found.rank == middle.rank
        client.delete(season(there).live_keys[0])
        rebuild(there)
        check(there)
        play(there, 2, count=30)
        apply_pending(there, season(there), "two")
        check(there)
        assert {row.player_id: row.score for row in live.top(1_000)} == expected(there)


class TestCommand:
    """What an operator types."""

    @pytest.fixture
    def outside(self, world: World) -> Iterator[Outside]:
        world.configure(CONFIG.replace("LAYOUT", ""))
        with world.outside() as wired:
            play(wired, 1)
            yield wired

    def test_it_tells_first_and_is_done_in_a_name(self, world: World, outside: Outside) -> None:
        """--dry-run changes nothing; without a terminal a name is needed; the journal keeps who it was."""
        before = world.picture()
        planned = finale("rebuild", "b", "one", "--dry-run", "--json").ok().json
        assert planned["players"] == totals.summed(outside.database, season(outside).key).players
        assert (planned["rows"], planned["keys"]) == (0, [KEY])
        assert "would replace 0 rows" in finale("rebuild", "b", "one", "--dry-run").ok().out
        finale("rebuild", "b", "one", "--yes").refused(4, "--as NAME")
        assert world.picture() == before
        done = finale("rebuild", "b", "one", "--yes", "--as", "ana", "--json").ok().json
        assert done["players"] == planned["players"]
        assert "players in place of" in finale("rebuild", "b", "one", "--yes", "--as", "ana").ok().out
        events = [(event, who) for event, who, _ in world.journal("b", "one") if "rebu" in event]
        assert events == [("rebuilding", "ana"), ("rebuilt", "ana")] * 2

    def test_a_sealed_season_and_somebody_elses_key_are_left_alone(self, world: World, outside: Outside) -> None:
        """I1: after the seal the key stays as it was sealed; keys of other writers are theirs."""
        world.sql("update finale.season set state = 'sealed'")
        finale("rebuild", "b", "one", "--yes", "--as", "ana").refused(23, "must stay as it was sealed")
        world.sql("update finale.season set state = 'open', adopted = true")
        finale("rebuild", "b", "one", "--yes", "--as", "ana").refused(23, "was adopted")

    def test_what_a_broken_off_rebuild_left_goes_with_the_season(self, world: World, outside: Outside) -> None:
        """Named by strays, removed by clean at the latest."""
        finale("rebuild", "b", "one", "--yes", "--as", "ana").ok()
        world.sql("delete from finale.journal where event = 'rebuilt'")
        (fence,) = world.sql("select fence from finale.journal where event = 'rebuilding'")[0]
        world.redis.zadd(building_keys(KEY, fence)[0], {"half": 1})
        world.sql("update finale.season set ends_at = now(), closes_at = now()")
        finale("close", "b", "one").ok()
        finale("clean", "b", "one", "--now", "--as", "ana").ok()
        assert world.redis.keys("*") == []
