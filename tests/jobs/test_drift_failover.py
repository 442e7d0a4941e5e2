"""C19, I4: a real Sentinel fails over to a replica that has not heard of the last writes, after the freeze."""

from __future__ import annotations

import json

import pytest
import redis

from tests.support.cli import World, finale
from tests.support.servers import ServerFactory
from tests.support.topologies import sentinel_pair

KEY = "leaderboard:cup:one"
CONFIG = """
[board.cup]
ties = "shared"
rewards = "cup.toml"
reconcile = { repair = 0 }
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'


@pytest.mark.slow
def test_c19_i4_what_a_failover_rolled_back_is_found_and_named_once(
    world: World, server_factory: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly the players of the last seconds drift; the report says since when; nobody is paid before the repair."""
    with sentinel_pair(server_factory) as watched:
        port = watched.sentinel.sentinels[0].connection_pool.connection_kwargs["port"]
        monkeypatch.setenv("FINALE_REDIS", f"redis+sentinel://127.0.0.1:{port}/{watched.name}")
        world.configure(CONFIG, cup=TABLE)
        world.played("cup", *(f"m1,p{number:03d},{number},2026-01-02T00:00:00Z" for number in range(300)))
        with redis.Redis("127.0.0.1", watched.sentinel.discover_master(watched.name)[1]) as primary:
            primary.wait(1, 5_000)
        watched.cut_off()
        late = [f"p{number:03d}" for number in range(100, 140)]
        world.played("cup", *(f"m2,{name},7,2026-01-03T00:00:00Z" for name in [*late, "fresh"]))
        finale("close", "cup", "one", "--until", "freeze").ok()
        watched.fail_over()
        finale("close", "cup", "one").refused(22, "differ in 41 players", "rolled back by a failover since")
        assert world.sql("select count(*) from finale.grants") == [(0,)]
        (path,) = (world.store / "reports/cup/one").glob("*.json")
        told = json.loads(path.read_bytes())
        assert {one["player_id"] for one in told["players"]} == {*late, "fresh"}
        assert {one["cause"] for one in told["players"]} == {"rolled back by a failover"}
        assert (told["only_ledger"], told["points_differ"], told["only_redis"]) == (1, 40, 0)
        finale("reconcile", "cup", "one", "--repair", "--as", "ana").ok()
        finale("season", "release", "cup", "one", "--as", "ana").ok()
        finale("close", "cup", "one").ok()
        assert world.sql("select count(*) from finale.payable") == [(301,)]
