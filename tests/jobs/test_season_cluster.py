"""Boards whose shards lie on the three nodes of a real cluster: whole seasons, and what goes wrong in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import redis

from archive import departures
from archive.instant import Instant
from archive.removal import Departing
from leaderboard import keys
from leaderboard.shards import Layout
from tests.jobs.test_season_shards import BOARD, archived, sealed
from tests.support.cli import World, finale
from tests.support.servers import ServerFactory
from tests.support.topologies import HOST, Cluster, cluster_of_three

PLAYERS, BANDS = '{ by = "player", count = 4 }', '{ by = "score", cuts = [50, 100, 150] }'
NAMES = keys.shard_keys("leaderboard:cup:one", 4)
ROWS = 200


@pytest.fixture(scope="module")
def started(server_factory: ServerFactory) -> Iterator[Cluster]:
    """Three nodes that share the slots."""
    with cluster_of_three(server_factory) as cluster:
        yield cluster


@contextmanager
def within(world: World, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Give a world whose Redis is the cluster, empty."""
    monkeypatch.setenv("FINALE_REDIS", f"redis+cluster://{HOST}:{cluster.ports[0]}")
    with redis.RedisCluster(HOST, cluster.ports[0]) as client:
        client.flushall()
        found: Any = client
        yield replace(world, redis=found)


@pytest.fixture
def in_cluster(world: World, started: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with within(world, started, monkeypatch) as inside:
        yield inside


def fill(world: World, shards: str, cluster: Cluster) -> None:
    """Give p000 to p199 as many points, each in its shard, over all nodes."""
    assert {cluster.owner(keys.slot(name)) for name in NAMES} == {0, 1, 2}
    world.configure(BOARD.format(shards=shards, more=""))
    layout = Layout(4, (50.0, 100.0, 150.0) if shards == BANDS else (), True)
    rows: dict[str, dict[str, int]] = {}
    for number in range(ROWS):
        name = NAMES[layout.shard(b"p%03d" % number, float(number))]
        rows.setdefault(name, {})[f"p{number:03}"] = number
    for name, each in rows.items():
        world.redis.zadd(name, each)


def left(cluster: Cluster) -> list[bytes]:
    """Return the keys of all nodes."""
    found: list[bytes] = []
    for number in range(3):
        with cluster.node(number) as node:
            found += node.keys()  # type: ignore[arg-type]  # annotated for async clients too
    return found


@contextmanager
def once(monkeypatch: pytest.MonkeyPatch, kind: Any, name: str, act: Callable[[], object]) -> Iterator[None]:
    """Do something just before it is called for the first time: after the last page, before the first EXEC."""
    method, acted = getattr(kind, name), [False]

    def wrapped(self: Any, *args: Any) -> Any:
        if not acted[0]:
            acted[0] = True
            act()
        return method(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(kind, name, wrapped)
        yield


@pytest.mark.parametrize("shards", [PLAYERS, BANDS])
def test_i1_i3_a_season_over_three_nodes(in_cluster: World, started: Cluster, shards: str) -> None:
    """I1, I3: sealed as one standing, verified, cleaned from every node, with a digest of each key in the seal."""
    fill(in_cluster, shards, started)
    finale("close", "cup", "one", "--until", "seal").ok()
    assert sum(in_cluster.redis.zcard(name) for name in NAMES) == ROWS
    finale("archive", "verify", "cup", "one").ok()
    assert archived(in_cluster) == [(place, f"p{ROWS - place:03}") for place in range(1, ROWS + 1)]
    assert [key.key for key in sealed(in_cluster).keys] == list(NAMES)
    finale("close", "cup", "one").ok()
    assert in_cluster.state("cup", "one") == "cleaned"
    assert left(started) == []


def test_i3_a_write_to_one_node_starts_all_over(
    in_cluster: World, started: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I3: after the last page of all, before the first EXEC: what was read of the other nodes goes too."""
    fill(in_cluster, PLAYERS, started)
    with once(monkeypatch, Instant, "prove", lambda: in_cluster.redis.zadd(NAMES[2], {"late": 500})):
        run = finale("close", "cup", "one", "--until", "seal", "--json").ok().json
    (taken,) = [step for step in run["steps"] if step["step"] == "snapshot"]
    assert taken["result"]["restarts"] == 1
    assert archived(in_cluster)[0] == (1, "late")


def test_i3_a_slot_that_moves_meanwhile_is_found_on_its_new_node(
    in_cluster: World, started: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I3: the key leaves its node after it was read: the try is thrown away, and the next one asks where it is."""
    fill(in_cluster, PLAYERS, started)
    slot = keys.slot(NAMES[1])
    home = started.owner(slot)
    away = (home + 1) % 3
    beside = [NAMES[1], keys.helper_key(NAMES[1], "fence")]
    try:
        with once(monkeypatch, Instant, "prove", lambda: started.move(slot, *beside, target=away)):
            finale("close", "cup", "one").ok()
        assert len(archived(in_cluster)) == ROWS
        assert left(started) == []
    finally:
        started.move(slot, target=home, source=away)


def test_i1_a_write_between_the_proof_and_the_removal_keeps_what_is_left(
    in_cluster: World, started: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I1: the key that was written to stays, whatever became of the others; nothing of it is lost."""
    fill(in_cluster, PLAYERS, started)
    finale("close", "cup", "one", "--until", "deliver").ok()
    with once(monkeypatch, Departing, "execute", lambda: in_cluster.redis.zadd(NAMES[3], {"late": 1})):
        finale("clean", "cup", "one").refused(14, "not one instant")
    assert [in_cluster.redis.exists(name) for name in NAMES] == [0, 0, 0, 1]
    assert in_cluster.redis.zscore(NAMES[3], "late") == 1
    finale("clean", "cup", "one").refused(22, f"{NAMES[3]} differs from its sealed archive")
    in_cluster.redis.zrem(NAMES[3], "late")
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("clean", "cup", "one").ok()
    assert left(started) == []


@pytest.mark.slow
@pytest.mark.parametrize("until", ["snapshot", "clean"])
def test_i1_i3_a_node_that_is_lost_meanwhile(
    world: World, server_factory: ServerFactory, monkeypatch: pytest.MonkeyPatch, until: str
) -> None:
    """I1, I3: without one node there is no standing, and no key is removed on the others."""
    with cluster_of_three(server_factory) as cluster, within(world, cluster, monkeypatch) as inside:
        fill(inside, PLAYERS, cluster)
        lost = cluster.owner(keys.slot(NAMES[2]))

        def lose() -> None:
            with cluster.node(lost) as node:
                node.shutdown(nosave=True)

        if until == "clean":
            finale("close", "cup", "one", "--until", "deliver").ok()
        # The keys of several servers are proved side by side, so the node is lost before any of them is.
        where: tuple[Any, str] = (Instant, "prove") if until == "snapshot" else (departures, "_prove")
        with once(monkeypatch, *where, lose):
            finale("close", "cup", "one", "--until", until).refused(10, "did not answer")
        assert (inside.state("cup", "one"), inside.files("staging")) == (
            "frozen" if until == "snapshot" else "delivered",
            [],
        )
        for number in {0, 1, 2} - {lost}:
            with cluster.node(number) as node:
                mine = [name for name in NAMES if cluster.owner(keys.slot(name)) == number]
                there = [str(key) for key in node.scan_iter()]
                assert all(str(name.encode()) in there for name in mine)
