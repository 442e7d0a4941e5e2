"""Reading through a Sentinel, from a replica, and from a cluster: also after a failover and while slots move."""

from __future__ import annotations

import pytest
import redis

from leaderboard.keys import slot
from live.board import LiveBoard, Rank
from tests.live.boards import BOUNDS, KEY, board, connected, live, write
from tests.support.servers import ServerFactory, running
from tests.support.topologies import HOST, cluster_of_three, sentinel_pair


@pytest.mark.slow
def test_c18_reading_goes_on_after_a_failover(server_factory: ServerFactory) -> None:
    """C18: the same clients, asked again after the Sentinel has made the replica the primary, answer the same."""
    with sentinel_pair(server_factory) as watched:
        primary: redis.Redis = watched.sentinel.master_for(watched.name)
        replica: redis.Redis = watched.sentinel.slave_for(watched.name)
        with primary, replica:
            write(primary, {b"a": 3, b"b": 2, b"c": 2})
            primary.wait(1, 5_000)
            reader = LiveBoard(primary, board(ties="shared"), BOUNDS, KEY, replica=replica)
            before = reader.top(3), reader.around(b"b", 1), reader.rank(b"c"), reader.score(b"a"), reader.count()
            assert before[2:] == (Rank(2, 3, 2.0), 3.0, 3)
            watched.fail_over()
            after = reader.top(3), reader.around(b"b", 1), reader.rank(b"c"), reader.score(b"a"), reader.count()
            assert after == before


def test_shared_views_are_the_replicas_and_ones_own_rank_the_primarys(server_factory: ServerFactory) -> None:
    """Top and pages are asked of the replica; rank, neighbours and score of the primary; without the replica, all."""
    with (
        running(server_factory.redis()) as first,
        running(server_factory.redis()) as second,
        connected(first.url) as primary,
        connected(second.url) as replica,
    ):
        # Two servers that differ, so that it shows who answered.
        write(primary, {b"a": 2, b"b": 1})
        write(replica, {b"a": 1, b"b": 2})
        reader = LiveBoard(primary, board(ties="shared"), BOUNDS, KEY, replica=replica)
        assert [row.player_id for row in reader.top(2)] == [b"b", b"a"]
        assert [row.player_id for row in reader.page(1, 1)] == [b"a"]
        assert reader.rank(b"a") == Rank(1, 2, 2.0)
        assert [row.player_id for row in reader.around(b"b", 1)] == [b"a", b"b"]
        second.stop()
        assert [row.player_id for row in reader.top(2)] == [b"a", b"b"]


def test_a_restarted_server_is_asked_again(server_factory: ServerFactory) -> None:
    """A connection that broke while nobody looked is opened anew: the reader is not told."""
    with running(server_factory.redis()) as server, connected(server.url) as client:
        write(client, {b"a": 1})
        reader = live(client, ties="shared")
        assert reader.rank(b"a") == Rank(1, 1, 1.0)
        server.stop()
        server.start()
        assert reader.rank(b"a") == Rank(1, 1, 1.0)
        server.stop()
        server.start()
        assert reader.count() == 1


def test_reading_from_a_cluster_whose_slots_move(server_factory: ServerFactory) -> None:
    """The board's slot is moved to another node: the same client finds it there, script and all."""
    with cluster_of_three(server_factory) as cluster, redis.RedisCluster(HOST, cluster.ports[0]) as client:
        client.zadd(KEY, {b"a": 3, b"b": 2, b"c": 2})
        reader = LiveBoard(client, board(ties="shared"), BOUNDS, KEY)
        before = reader.top(3), reader.around(b"b", 1), reader.rank(b"c"), reader.score(b"a"), reader.count()
        assert before[2:] == (Rank(2, 3, 2.0), 3.0, 3)
        at = cluster.owner(slot(KEY))
        cluster.move(slot(KEY), KEY, target=(at + 1) % 3)
        after = reader.top(3), reader.around(b"b", 1), reader.rank(b"c"), reader.score(b"a"), reader.count()
        assert after == before
