"""A board built beside the live key: commands encoded from columns, and the swap that only its holder can make."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from jobs.embedded.server import wait_until
from leaderboard.bands import Scale
from leaderboard.errors import LeaseLostError, UnavailableError
from leaderboard.keys import helper_key
from leaderboard.marks import Mark
from live.apply import claim, written
from live.counts import recount
from live.errors import LostWritesError
from live.fence import raise_fence
from live.loading import Building, Place, encode, forget
from tests.live.boards import KEY, content, write

PLACE = Place(KEY, KEY, 7)
BUCKETS = {0: (1, Mark()), 3: (1, Mark())}


def columns(rows: dict[bytes, int]) -> tuple[memoryview, Any]:
    return encode(pa.array(list(rows), pa.binary()), np.array(list(rows.values()), dtype=np.float64))


@settings(deadline=None)
@given(
    rows=st.dictionaries(
        st.one_of(st.binary(max_size=12), st.just(b"x" * 70_000)), st.integers(-(2**53) + 1, 2**53 - 1), min_size=1
    )
)
def test_rows_are_encoded_as_any_client_would(rows: dict[bytes, int]) -> None:
    """Byte for byte what one value after another comes to, whatever is in the ids, and in slices too."""
    data, offsets = columns(rows)
    expected = [
        b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in (b"%d" % score, member))
        for member, score in rows.items()
    ]
    assert [bytes(data[start:end]) for start, end in pairwise(offsets)] == expected
    half = pa.array(list(rows), pa.binary())[1:]
    data, offsets = encode(half, np.array(list(rows.values())[1:], dtype=np.float64))
    assert [bytes(data[start:end]) for start, end in pairwise(offsets)] == expected[1:]


def prepared(client: Redis) -> None:
    """Give the old board some rows, and this rebuild the season and its buckets."""
    write(client, {b"old": 1, b"both": 2})
    client.delete(helper_key(KEY, "applied"))
    raise_fence(client, KEY, 7)
    claim(client, KEY, [0, 3], 1)


def test_the_new_board_takes_the_old_ones_place(client: Redis) -> None:
    """Until the swap players see the old one, then the new one, whole; nothing is left; the swap counts as a batch."""
    prepared(client)
    rows = {b"p%05d" % at: at % 97 for at in range(20_011)} | {b"both": 5, b"\r\n$": 3}
    with Building(client, PLACE) as building:
        building.add(columns(dict(list(rows.items())[:15_000])))
        building.add(columns(dict(list(rows.items())[15_000:])))
        building.finish(Scale(10.0, (), 1.0))
        assert building.rows == len(rows)
        assert dict(content(client)) == {b"old": 1, b"both": 2}
        marks = building.swap(BUCKETS)
    assert dict(content(client)) == rows
    assert written(client, KEY, [0, 3]) == list(marks.values())
    assert [mark.number for mark in marks.values()] == [1, 1]
    assert recount(client, KEY, Scale(10.0, (), 1.0)).wrong == 0
    helpers = [helper_key(KEY, kind).encode() for kind in ("applied", "bands", "fence")]
    assert sorted(client.keys()) == sorted([KEY.encode(), *helpers])


def test_c23_no_big_key_is_deleted_in_passing(client: Redis) -> None:
    """C23: the old board is freed in the background, not by a rename onto it, which would do it at once."""
    client.config_set("lazyfree-lazy-server-del", "no")
    write(client, {b"p%05d" % at: at for at in range(10_000)})
    prepared(client)
    before = client.info("memory")["lazyfreed_objects"]
    with Building(client, PLACE) as building:
        building.add(columns({b"new": 1}))
        building.finish(None)
        building.swap(BUCKETS)
    assert wait_until(lambda: client.info("memory")["lazyfreed_objects"] > before, 20)
    assert content(client) == [(b"new", 1)]


def test_a_lost_key_is_made_again_and_an_empty_board_goes(client: Redis) -> None:
    """Without an old board the new one is simply there; without players there is no board."""
    raise_fence(client, KEY, 7)
    claim(client, KEY, [0, 3], 1)
    with Building(client, PLACE) as building:
        building.add(columns({b"a": 1}))
        building.finish(None)
        marks = building.swap(BUCKETS)
    assert content(client) == [(b"a", 1)]
    raise_fence(client, KEY, 8)
    with Building(client, Place(KEY, KEY, 8)) as building:
        building.finish(None)
        building.swap({bucket: (1, mark) for bucket, mark in marks.items()})
    assert not client.exists(KEY)


@pytest.mark.parametrize("who", ["season", "bucket", "batch", "cleaned"])
def test_i9_whoever_was_taken_over_swaps_nothing(client: Redis, who: str) -> None:
    """I9: a later runner, a bucket that another holds, a batch in between, a cleaned season: all is as it was."""
    prepared(client)
    with Building(client, PLACE) as building:
        building.add(columns({b"new": 1}))
        building.finish(None)
        if who == "season":
            raise_fence(client, KEY, 8)
        elif who == "bucket":
            claim(client, KEY, 3, 2)
        elif who == "batch":
            write(client, {b"more": 3}, fence=1, bucket=3)
        else:
            client.delete(helper_key(KEY, "fence"))
        before = content(client)
        with pytest.raises(LeaseLostError, match="was not replaced"):
            building.swap(BUCKETS)
    assert content(client) == before
    assert forget(client, PLACE.names) == 1
    assert content(client) == before


def test_c19_what_was_lost_while_it_was_built_is_noticed(client: Redis) -> None:
    """C19: rows that are missing at the swap, or that somebody else added, are told, and the old board stays."""
    prepared(client)
    with Building(client, PLACE) as building:
        building.add(columns({b"a": 1, b"b": 2}))
        building.finish(None)
        client.zrem(PLACE.built, b"a")
        with pytest.raises(LostWritesError, match="has 1 of 2 players"):
            building.swap(BUCKETS)
    client.zadd(PLACE.built, {b"late": 1})
    with Building(client, PLACE) as building:
        building.add(columns({b"late": 1, b"b": 2}))
        with pytest.raises(UnavailableError, match="of 2 players"):
            building.finish(None)
    assert dict(content(client)) == {b"old": 1, b"both": 2}
