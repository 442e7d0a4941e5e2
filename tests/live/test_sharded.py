"""A board over several sorted sets answers as one that is in a single set: property-tested, and on a real cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from leaderboard.board import Board
from leaderboard.keys import helper_key, shard_keys, slot
from live import apply, sharded
from live.board import LiveBoard
from live.errors import WrongTypeError
from tests.live.boards import BOUNDS, KEY, Total, board, brute_force, connected
from tests.live.test_board import MEMBERS, TIES, told
from tests.support.servers import ServerFactory, running
from tests.support.topologies import HOST, cluster_of_three

LAYOUTS: tuple[Any, ...] = ({"by": "player", "count": 3}, {"by": "score", "cuts": [1, 3]})


def reader(client: Redis, of: Board, **fields: Any) -> LiveBoard:
    return LiveBoard(client, of, BOUNDS, KEY, shards=shard_keys(KEY, of.shards.number), **fields)


def spread(client: Redis, of: Board, totals: Mapping[bytes, Total], removed: Iterable[bytes] = ()) -> None:
    """Write players to the shards they belong to and nowhere else, by plain commands."""
    names = shard_keys(KEY, of.shards.number)
    for name in names:
        if gone := [*totals, *removed]:
            client.zrem(name, *gone)
    for player, total in totals.items():
        score = total.score(of)
        client.zadd(names[of.layout.shard(player, score)], {player: score})


@pytest.mark.parametrize("layout", LAYOUTS, ids=["player", "score"])
@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("order", ["high", "low"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_answers_equal_a_brute_force(redis_url: str, order: str, ties: str, layout: Any, data: st.DataObject) -> None:
    """Top, pages however deep, player, rank, around, score and count are what sorting everything gives."""
    of = board(order=order, ties=ties, shards=layout)
    points = st.integers(0 if of.packed else -3, 5)
    totals = data.draw(st.dictionaries(MEMBERS, st.builds(Total, points, st.integers(0, 2)), max_size=14))
    moved = (
        data.draw(st.dictionaries(st.sampled_from(sorted(totals)), st.builds(Total, points, st.just(1))))
        if totals
        else {}
    )
    with connected(redis_url) as client:
        client.flushall()
        spread(client, of, totals)
        spread(client, of, moved)
        expected = brute_force(of, totals | moved)
        boards = reader(client, of)
        assert boards.count() == len(expected)
        with pytest.MonkeyPatch.context() as patch:
            for heads in (10_000, 0):
                patch.setattr(sharded, "_HEADS", heads)
                for offset in range(len(expected) + 1):
                    assert told(boards.page(offset, 3)) == expected[offset : offset + 3]
                assert told(boards.top(99)) == expected
        for at, row in enumerate(expected):
            rank = boards.rank(row[2])
            assert rank is not None and (rank.rank, rank.players) == (row[1], len(expected))
            assert boards.score(row[2]) == rank.score
            for n in (0, 1, 4):
                assert told(boards.around(row[2], n)) == expected[max(0, at - n) : at + n + 1]
        assert (boards.rank(b"nobody here"), boards.around(b"nobody here", 1)) == (None, [])


@pytest.mark.parametrize("order", ["high", "low"])
@pytest.mark.parametrize("up", [True, False])
def test_a_player_who_moves_is_seen_once_and_as_she_is_now(redis_url: str, order: str, up: bool) -> None:
    """Between bands she is added before she is removed: all see her once, with the score that was written last."""
    of = board(order=order, ties="shared", shards={"by": "score", "cuts": [10, 20]})
    names = shard_keys(KEY, 3)
    old, new = (5.0, 25.0) if up else (25.0, 5.0)
    with connected(redis_url) as client:
        spread(client, of, {b"p%d" % at: Total(at, 0) for at in range(0, 30, 4)})
        spread(client, of, {b"she": Total(int(old), 0)})
        boards = reader(client, of)
        at = of.layout.shard(b"she", new)
        apply.claim(client, names[at], 0, 1)
        apply.apply(
            client,
            names[at],
            bucket=0,
            fence=1,
            number=1,
            members=[b"she"],
            scores=[new],
            removed=[],
            moving="0001.0001",
        )
        assert [client.zscore(name, b"she") for name in names].count(None) == 1
        assert boards.score(b"she") == new
        rows = boards.top(99)
        assert [row.points for row in rows if row.player_id == b"she"] == [new]
        assert [row.points for row in boards.around(b"she", 1) if row.player_id == b"she"] == [new]
        client.zrem(names[of.layout.shard(b"she", old)], b"she")
        assert told(boards.top(99))[0][2:] == told(rows)[0][2:]


def test_a_page_past_the_first_band_knows_who_is_moving(redis_url: str) -> None:
    """The marks are those of the bands that the rows came from, also where a band in front was not asked for."""
    of = board(ties="shared", shards={"by": "score", "cuts": [10, 20]})
    names = shard_keys(KEY, 3)
    with connected(redis_url) as client:
        spread(client, of, {b"top": Total(25, 0), b"she": Total(15, 0), b"low": Total(1, 0)})
        apply.claim(client, names[0], 0, 1)
        apply.apply(
            client, names[0], bucket=0, fence=1, number=1, members=[b"she"], scores=[5.0], removed=[], moving="0001"
        )
        rows = reader(client, of).page(1, 9)
        assert [(row.player_id, row.points) for row in rows] == [(b"she", 5), (b"low", 1)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=["player", "score"])
def test_on_a_cluster_with_the_shards_on_different_nodes(server_factory: ServerFactory, layout: Any) -> None:
    """Same answers from three nodes, also while a shard's slot moves to another."""
    of = board(
        ties="shared", shards={**layout, "count": 8} if layout["by"] == "player" else {**layout, "cuts": [20, 60, 90]}
    )
    names = shard_keys(KEY, of.shards.number)
    totals = {b"p%03d" % number: Total(number * 7 % 101, 0) for number in range(150)}
    with cluster_of_three(server_factory) as cluster:
        assert len({cluster.owner(slot(name)) for name in names}) > 1
        with redis.RedisCluster(HOST, cluster.ports[0]) as client:
            for player, total in totals.items():
                score = total.score(of)
                client.zadd(names[of.layout.shard(player, score)], {player: score})
            boards = reader(client, of)
            expected = brute_force(of, totals)

            def check() -> None:
                assert told(boards.top(1_000)) == expected
                assert told(boards.page(77, 10)) == expected[77:87]
                assert told(boards.around(expected[100][2], 3)) == expected[97:104]
                assert boards.count() == 150
                rank = boards.rank(expected[50][2])
                assert rank is not None and rank.rank == expected[50][1]

            check()
            moving = names[1]
            cluster.move(slot(moving), moving, target=(cluster.owner(slot(moving)) + 1) % 3)
            check()


@pytest.mark.parametrize("decoded", [False, True])
@pytest.mark.parametrize("protocol", [2, 3])
def test_c07_c10_every_client_gives_the_same_answers(redis_url: str, protocol: int, decoded: bool) -> None:
    """C07, C10: either protocol, decoding or not, members that are no text among them."""
    of = board(ties="shared", shards=LAYOUTS[0], member="binary")
    totals = {b"\xff": Total(3, 0), b"a\r\nb": Total(3, 0), b"": Total(1, 0)}
    with connected(redis_url) as plain, connected(redis_url, protocol=protocol, decode_responses=decoded) as client:
        spread(plain, of, totals)
        boards = reader(client, of)
        assert told(boards.top(5)) == brute_force(of, totals)
        assert told(boards.around(b"a\r\nb", 1)) == brute_force(of, totals)
        assert boards.score(b"\xff") == 3.0


def test_a_shard_of_another_type_is_named(redis_url: str) -> None:
    """Which of the shards it is, is told."""
    of = board(ties="shared", shards=LAYOUTS[0])
    name = shard_keys(KEY, 3)[1]
    with connected(redis_url) as client:
        client.set(name, "x")
        for ask in (lambda: reader(client, of).count(), lambda: reader(client, of).top(3)):
            with pytest.raises(WrongTypeError, match=f"'{name}' is a string, not a zset"):
                ask()


def test_a_band_board_reads_its_top_from_the_replica(server_factory: ServerFactory) -> None:
    """What one band has comes from the replica; what takes two comes from the primary, all of one age."""
    of = board(ties="shared", shards={"by": "score", "cuts": [10]})
    with (
        running(server_factory.redis()) as first,
        running(server_factory.redis()) as second,
        connected(first.url) as primary,
        connected(second.url) as replica,
    ):
        spread(primary, of, {b"now": Total(20, 0), b"low": Total(1, 0)})
        spread(replica, of, {b"before": Total(20, 0), b"low": Total(1, 0)})
        boards = replace(reader(primary, of), replica=replica)
        assert [row.player_id for row in boards.top(1)] == [b"before"]
        assert [row.player_id for row in boards.around(b"now", 0)] == [b"now"]
        second.stop()
        assert [row.player_id for row in boards.top(1)] == [b"now"]


def test_helpers_stand_in_the_slots_of_their_shards() -> None:
    """Marks of moving players and counts of bands go where the shard goes."""
    for name in shard_keys(KEY, 5):
        assert slot(helper_key(name, "moving")) == slot(helper_key(name, "bands")) == slot(name)
