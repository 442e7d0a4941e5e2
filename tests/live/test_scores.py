"""A whole live board read by ZSCAN, whoever moves meanwhile, and by whichever client."""

from __future__ import annotations

import math
from unittest.mock import patch

import pytest
from redis import Redis

from leaderboard.errors import UnavailableError
from live import scores
from live.errors import WrongTypeError

KEY = "board"
BOARD = {b"p%04d" % number: number * 1.5 for number in range(2_000)} | {b"\xff\r\n": -3.25, b"most": math.inf}


def test_every_row_comes_as_it_is(any_client: Redis) -> None:
    """Members byte for byte and scores bit for bit, those of no board too; none of a key that is not there."""
    any_client.zadd(KEY, BOARD)
    found = [pair for pairs in scores.every(any_client, KEY, 300) for pair in pairs]
    assert dict(found) == BOARD
    assert [pair for pairs in scores.every(any_client, "nobody", 300) for pair in pairs] == []


def test_whoever_moves_is_met_all_the_same(client: Redis) -> None:
    """Each page moves the last players to the top; by position they would be passed over, and here they are met."""
    client.zadd(KEY, BOARD)
    met: dict[bytes, float] = {}
    for turn, pairs in enumerate(scores.every(client, KEY, 100)):
        met.update(pairs)
        client.zadd(KEY, {b"p%04d" % number: 1e6 + turn for number in range(turn * 40, turn * 40 + 40)}, xx=True)
    assert met.keys() == BOARD.keys()


def test_a_failover_in_the_middle_is_told(client: Redis) -> None:
    """A cursor means nothing to another server, so that what it gave is not taken for the whole."""
    client.zadd(KEY, BOARD)
    with (
        patch.object(scores, "server_of", side_effect=["one", "two"]),
        pytest.raises(UnavailableError, match="another server took board over"),
    ):
        list(scores.every(client, KEY, 100))


def test_a_key_of_another_kind_is_refused(client: Redis) -> None:
    """A list under the board's name is no empty board."""
    client.rpush(KEY, "a")
    with pytest.raises(WrongTypeError):
        list(scores.every(client, KEY, 100))
