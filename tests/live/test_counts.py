"""The counts of score bands: kept in the write itself, counted anew, put right, and the rank estimated from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from leaderboard.board import Board
from leaderboard.errors import InputError
from leaderboard.keys import helper_key, shard_keys
from live.apply import apply, claim
from live.board import LiveBoard
from live.counts import counted, recount
from tests.live.boards import BOUNDS, KEY, Total, board, brute_force, connected, live
from tests.live.test_board import MEMBERS

BANDS: tuple[Any, ...] = ({"width": 1}, {"width": 3}, [1, 2, 4], [3])
APPLIED = helper_key(KEY, "bands")


def write(client: Redis, of: Board, scores: Mapping[bytes, float], removed: Any = (), key: str = KEY) -> None:
    assert of.scale is not None
    number = claim(client, key, 0, 1)[0].number + 1
    members, values = list(scores), list(scores.values())
    named = {"members": members, "scores": values, "removed": list(removed), "bands": of.scale.text}
    apply(client, key, bucket=0, fence=1, number=number, **named)


@pytest.mark.parametrize("ties", ["shared", "member", "first_to_reach"])
@pytest.mark.parametrize("order", ["high", "low"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_counts_follow_every_write(redis_url: str, order: str, ties: str, data: st.DataObject) -> None:
    """After any writes, changes and removals the counts are those of the board, and a rank is within its bound."""
    of = board(order=order, ties=ties, bands=data.draw(st.sampled_from(BANDS)))
    points = st.integers(0 if of.packed else -4, 6)
    batches = data.draw(st.lists(st.dictionaries(MEMBERS, st.builds(Total, points, st.integers(0, 2))), max_size=4))
    totals: dict[bytes, Total] = {}
    with connected(redis_url) as client:
        client.flushall()
        for batch in batches:
            removed = data.draw(st.sets(st.sampled_from(sorted(totals)))) - set(batch) if totals else set()
            write(client, of, {player: total.score(of) for player, total in batch.items()}, removed)
            totals = {player: total for player, total in (totals | batch).items() if player not in removed}
        assert of.scale is not None
        found = recount(client, KEY, of.scale)
        assert found.wrong == 0
        assert sum(found.counted.values()) == len(totals)
        assert counted(client, [KEY]) == Counter(found.counted)
        reader = live(client, order=order, ties=ties, bands=of.bands)
        for position, rank, player, *_ in brute_force(of, totals):
            told = reader.rank(player, exact=False)
            assert told is not None and told.players == len(totals)
            here = found.counted[int(of.scale.of(_array(totals[player].score(of)))[0])]
            assert abs(told.rank - rank) <= told.error < max(here, 1)
            assert ties != "member" or abs(told.rank - position) <= told.error
            if of.bands is not None and of.bands.width == 1 and ties == "shared":
                assert told.error == 0
        assert reader.rank(b"nobody here", exact=False) is None


def _array(score: float) -> Any:
    return np.array([score])


def test_what_was_counted_wrong_is_found_and_put_right(redis_url: str) -> None:
    """A write of somebody else's, or a lost hash, shows in the recount; a repair is right in the same instant."""
    of = board(ties="shared", bands={"width": 10})
    assert of.scale is not None
    with connected(redis_url) as client:
        write(client, of, {b"p%02d" % at: float(at) for at in range(35)})
        client.zincrby(KEY, 100, b"p01")
        assert recount(client, KEY, of.scale).wrong == 2
        assert recount(client, KEY, of.scale, repair=True).wrong == 2
        assert recount(client, KEY, of.scale).wrong == 0
        client.delete(APPLIED)
        reader = live(client, ties="shared", bands={"width": 10})
        assert reader.rank(b"p01", exact=False) == reader.rank(b"p01")
        assert recount(client, KEY, of.scale).wrong == 5
        recount(client, KEY, of.scale, repair=True)
        assert client.hgetall(APPLIED) == {b"0": b"9", b"1": b"10", b"2": b"10", b"3": b"5", b"10": b"1"}


def test_bands_of_shards_are_summed(redis_url: str) -> None:
    """Each shard keeps its own; the estimate is from all of them."""
    of = board(ties="shared", bands={"width": 1}, shards={"by": "player", "count": 3})
    names = shard_keys(KEY, 3)
    totals = {b"p%02d" % at: float(at // 2) for at in range(40)}
    with connected(redis_url) as client:
        for shard, name in enumerate(names):
            write(
                client,
                of,
                {player: score for player, score in totals.items() if of.layout.of_player(player) == shard},
                key=name,
            )
        reader = LiveBoard(client, of, BOUNDS, KEY, shards=names)
        for player in totals:
            assert reader.rank(player, exact=False) == reader.rank(player)


def test_a_board_without_bands_says_so(redis_url: str) -> None:
    """An estimate needs bands."""
    with connected(redis_url) as client, pytest.raises(InputError, match="has no score bands"):
        live(client).rank(b"a", exact=False)


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("decoded", [False, True])
def test_every_client_reads_the_counts(redis_url: str, protocol: int, decoded: bool) -> None:
    """C07: of either protocol, decoding or not."""
    of = board(ties="shared", bands={"width": 2})
    with connected(redis_url) as plain, connected(redis_url, protocol=protocol, decode_responses=decoded) as client:
        write(plain, of, {b"a": 1, b"b": 5})
        assert counted(client, [KEY]) == {0: 1, 2: 1}
