"""Boards over several sorted sets, whole seasons of them, filled by writers that are not Finale's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from archive.removal import Departing
from archive.seal import Seal, StandingFacts
from leaderboard.errors import UnavailableError
from leaderboard.shards import Layout
from tests.jobs.test_season_rename import ALONE, YEAR
from tests.jobs.test_season_rename import configure as configure_rename
from tests.support.cli import World, finale

BOARD = """
[board.cup]
ledger = "none"
ties = "shared"
keep_live = "0s"
ahead = 0
{more}
shards = {shards}
calendar = {{ seasons = [{{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }}] }}
"""
PLAYERS = '{ by = "player", count = 3 }'
BANDS = '{ by = "score", cuts = [10, 20] }'
KEY = "leaderboard:cup:one"
NAMES = [f"{KEY}:{shard}" for shard in range(3)]


def configure(world: World, shards: str = BANDS, more: str = "") -> None:
    world.configure(BOARD.format(shards=shards, more=more))


def fill(world: World, shards: str = BANDS, rows: int = 30) -> None:
    """Give p00 to p29 as many points, each in its shard."""
    layout = Layout(3, (10.0, 20.0) if shards == BANDS else (), True)
    for number in range(rows):
        world.redis.zadd(NAMES[layout.shard(b"p%02d" % number, float(number))], {f"p{number:02}": number})


def sealed(world: World) -> StandingFacts:
    facts = Seal.parse((world.store / "seals/cup/one/standings.json").read_bytes()).facts
    assert isinstance(facts, StandingFacts)
    return facts


def archived(world: World) -> list[tuple[int, str]]:
    found = finale("archive", "sql", "select position, player_id from standings order by position", "--json").ok().json
    return [(row["position"], row["player_id"]) for row in found]


@contextmanager
def dying_at(removal: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail the ``removal``-th removal of a key, before it is sent."""
    left = [removal]
    execute = Departing.execute

    def counted(self: Departing) -> object:
        left[0] -= 1
        if not left[0]:
            raise UnavailableError("the wire was cut")
        return execute(self)

    with monkeypatch.context() as patch:
        patch.setattr(Departing, "execute", counted)
        yield


@pytest.mark.parametrize("shards", [PLAYERS, BANDS])
def test_i1_a_sharded_season_is_sealed_verified_and_cleaned(world: World, shards: str) -> None:
    """I1, I3: one standing from three keys, a digest of each in the seal, and nothing left in Redis."""
    configure(world, shards)
    fill(world, shards)
    finale("close", "cup", "one", "--until", "seal").ok()
    assert [key.key for key in sealed(world).keys] == NAMES
    assert sum(key.rows for key in sealed(world).keys) == 30
    assert all(world.redis.exists(name) for name in NAMES)
    finale("archive", "verify", "cup", "one").ok()
    assert archived(world) == [(place, f"p{30 - place:02}") for place in range(1, 31)]
    run = finale("close", "cup", "one", "--json").ok().json
    assert run["steps"][-1]["result"]["rows"] == 30
    assert [key["outcome"] for key in run["steps"][-1]["result"]["keys"]] == ["removed"] * 3
    assert world.redis.keys() == []
    assert world.state("cup", "one") == "cleaned"


def test_cleanup_expire_gives_each_shard_a_private_name(world: World) -> None:
    configure(world, more='cleanup = "expire"')
    fill(world)
    finale("close", "cup", "one").ok()
    assert sorted(world.redis.keys()) == [f"{{{name}}}:finale:expiring".encode() for name in NAMES]
    assert all(0 < world.redis.ttl(key) <= timedelta(days=1).total_seconds() for key in world.redis.scan_iter())


@pytest.mark.parametrize("changed", range(3))
def test_i1_no_shard_is_removed_while_any_differs(world: World, changed: int) -> None:
    """I1: a key that is not what was sealed keeps all of them, and the hold names who differs."""
    configure(world)
    fill(world)
    finale("close", "cup", "one", "--until", "seal").ok()
    world.redis.zadd(NAMES[changed], {"late": 10 * changed + 5})
    finale("close", "cup", "one").refused(
        22, f"{NAMES[changed]} differs from its sealed archive", "1 only live", "'late'"
    )
    assert sum(world.redis.zcard(name) for name in NAMES) == 31
    world.redis.zrem(NAMES[changed], "late")
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one").ok()
    assert world.redis.keys() == []


@pytest.mark.parametrize("killed", [1, 2, 3])
def test_i8_a_clean_that_died_between_two_removals_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch, killed: int
) -> None:
    """I1, I8: what is gone was removed by the run before, which the journal tells; the rest is proved anew."""
    configure(world)
    fill(world)
    finale("close", "cup", "one", "--until", "deliver").ok()
    with dying_at(killed, monkeypatch):
        finale("clean", "cup", "one").refused(10, "the wire was cut")
    assert sum(world.redis.exists(name) for name in NAMES) == 4 - killed
    done = finale("clean", "cup", "one").ok()
    assert "gone before anything was removed" not in done.err
    assert world.redis.keys() == []
    (entry,) = [
        detail for event, _, detail in world.journal("cup", "one") if event == "done" and "unlinked" in str(detail)
    ]
    assert ("by an earlier run" in entry["figures"]) == (killed > 1)


def test_i1_a_shard_that_changed_after_others_were_removed_is_held(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I1: the rest is proved anew, so a write in between keeps what is left; the hold says that others are gone."""
    configure(world)
    fill(world)
    finale("close", "cup", "one", "--until", "deliver").ok()
    with dying_at(2, monkeypatch):
        finale("clean", "cup", "one").refused(10, "the wire was cut")
    world.redis.zincrby(NAMES[2], 1, "p25")
    finale("clean", "cup", "one").refused(22, f"{NAMES[2]} differs", "other shards are gone already")
    assert [world.redis.zcard(name) for name in NAMES] == [0, 10, 10]


def test_c24_a_shard_that_was_evicted_is_told_apart_from_one_that_was_removed(world: World) -> None:
    """C24: the archive is whole and the rest is removed, but a person learns that the server drops boards."""
    configure(world)
    fill(world)
    finale("close", "cup", "one", "--until", "deliver").ok()
    world.redis.delete(NAMES[1])
    told = finale("clean", "cup", "one").ok().err
    assert f"{NAMES[1]}, sealed with 10 rows, was gone before anything was removed" in told
    assert world.redis.keys() == []


def test_c24_a_shard_evicted_before_a_clean_that_died_is_still_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C24, I8: what was gone before the first run proved the rest was not removed by that run."""
    configure(world)
    fill(world)
    finale("close", "cup", "one", "--until", "deliver").ok()
    world.redis.delete(NAMES[0])
    with dying_at(3, monkeypatch):
        finale("clean", "cup", "one").refused(10, "the wire was cut")
    told = finale("clean", "cup", "one").ok().err
    assert f"{NAMES[0]}, sealed with 10 rows, was gone before anything was removed" in told
    assert NAMES[1] not in told


def test_an_empty_shard_is_none_that_was_lost(world: World) -> None:
    configure(world)
    fill(world, rows=8)
    done = finale("close", "cup", "one").ok()
    assert "was gone" not in done.err
    assert [key.rows for key in sealed(world).keys] == [8, 0, 0]


def test_c24_a_shard_that_nobody_is_in_is_accepted_by_a_person(world: World) -> None:
    """C24, I4: without a ledger a lost shard of players would be archived as an empty one, so somebody must say so."""
    configure(world, PLAYERS)
    fill(world, PLAYERS)
    world.redis.delete(NAMES[1])
    finale("close", "cup", "one").refused(22, f"1 shards do not exist: {NAMES[1]}", "it was deleted")
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    assert "archived as empty" in finale("close", "cup", "one", "--until", "seal").ok().err
    assert sealed(world).keys[1].rows == 0


def test_a_player_in_two_shards_holds_the_season(world: World) -> None:
    configure(world)
    fill(world)
    world.redis.zadd(NAMES[0], {"p25": 5})
    finale("close", "cup", "one").refused(22, "1 player stands in more than one shard", f"'p25' in {NAMES[0]} (5.0)")
    world.redis.zrem(NAMES[0], "p25")
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one").ok()


def test_shards_that_came_back_are_found_and_removed_again(world: World) -> None:
    """C19: a failover may bring one shard back; it is compared with what was sealed of that shard."""
    configure(world)
    fill(world)
    finale("close", "cup", "one").ok()
    world.redis.zadd(NAMES[1], {f"p{number}": number for number in range(10, 20)})
    finale("tick").refused(15, "its live key leaderboard:cup:one:1 is back")
    (stray,) = finale("season", "strays", "--json").ok().json
    assert (stray["kind"], stray["key"], stray["rows"]) == ("returned", NAMES[1], 10)
    assert "the very rows that were sealed" in stray["what"]
    finale("clean", "cup", "one", "--again", "--as", "ana").ok()
    assert world.redis.keys() == []
    world.redis.zadd(NAMES[2], {"other": 1})
    finale("clean", "cup", "one", "--again", "--as", "ana").refused(22, f"{NAMES[2]} differs")
    assert world.redis.keys() == [NAMES[2].encode()]


def test_strays_know_the_shards_of_a_board(world: World) -> None:
    """Shards of a running season are no strays; those of a season that the ledger does not have are."""
    configure(world)
    fill(world)
    finale("close", "cup", "one", "--until", "freeze").ok()
    assert finale("season", "strays", "--json").ok().json == []
    world.redis.zadd("leaderboard:cup:old:2", {"p": 1})
    (stray,) = finale("season", "strays", "--json").ok().json
    assert (stray["kind"], stray["board"], stray["season"]) == ("board", "cup", "old")


def test_a_board_with_shards_adopts_no_single_key(world: World) -> None:
    configure(world)
    world.redis.zadd("old", {"p": 1})
    finale("archive", "adopt", "old", "--board", "cup", "--season", "one", "--as", "ana").refused(
        4, "spread over 3 sorted sets", "finale close cup one"
    )


def test_i3_all_shards_are_frozen_by_renaming_in_one_transaction(world: World) -> None:
    """I3: with freeze = "rename" no write can come between two shards; late ones under the old names are told."""
    configure_rename(world, key="lb:{cup}:<shard>", more=f"shards = {PLAYERS}", ended=timedelta(0))
    world.redis.zadd("lb:{cup}:0", {"ann": 3})
    world.redis.zadd("lb:{cup}:1", {"dan": 1})
    world.redis.zadd("lb:{cup}:2", {"bob": 2})
    run = finale("close", "cup", "one", "--until", "freeze", "--json").ok().json
    assert run["steps"][-1]["result"]["rename"] == {"outcome": "renamed", "rows": 3, "later": 0, **ALONE}
    assert sorted(world.redis.keys("*:frozen:one")) == [b"lb:{cup}:%d:finale:frozen:one" % shard for shard in range(3)]
    world.redis.zadd("lb:{cup}:1", {"cyd": 9})
    finale("close", "cup", "one").ok()
    assert world.redis.keys() == [b"lb:{cup}:1"]
    assert [player for _, player in archived(world)] == ["ann", "bob", "dan"]


def test_a_cluster_cannot_rename_shards_in_several_slots(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    configure_rename(world, key="lb:<season>", more=f"shards = {PLAYERS}", ended=YEAR)
    finale("config", "check").ok()
    monkeypatch.setenv("FINALE_REDIS", "redis+cluster://127.0.0.1:7000")
    finale("config", "check").refused(3, "renames all shards in one transaction", "{cup}:<season>:<shard>")


def test_two_boards_may_not_share_a_shard(world: World) -> None:
    """The second board's key would be the first one's shard."""
    configure(world)
    text = world.config.read_text()
    world.configure(
        text
        + text.replace("[board.cup]", '[board.odd]\nkey = "leaderboard:cup:<season>:1"').replace(
            f"shards = {BANDS}", ""
        )
    )
    finale("config", "check").refused(3, "would have the same live key 'leaderboard:cup:one:1'")
