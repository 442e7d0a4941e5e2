"""Whether a key that is back still is what was sealed: compared at one instant, and left as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import redis

from archive.once import proof_factory
from archive.proof import ProofConnection
from archive.refusals import WrongTypeError
from archive.returned import Likeness, likeness
from tests.archive.boards import KEY, connector, plain_rows
from tests.archive.test_removal import Sealed


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as made:
        yield made


@pytest.fixture(params=["high", "low"])
def sealed(client: redis.Redis, store_url: str, request: pytest.FixtureRequest) -> Sealed:
    return Sealed(client, store_url, order=request.param)


def compared(sealed: Sealed, client: redis.Redis, connect: Callable[[], ProofConnection] | None = None) -> Likeness:
    return likeness(
        connect or connector(client),
        sealed.facts,
        descending=sealed.descending,
        archived=sealed.rows.to_batches,
        page_rows=10,
    )


def test_the_very_rows_are_equal_and_stay(sealed: Sealed, client: redis.Redis) -> None:
    before = plain_rows(client)
    assert compared(sealed, client) == Likeness(50, True, "")
    assert plain_rows(client) == before


def test_other_rows_are_named(sealed: Sealed, client: redis.Redis) -> None:
    """One player more, one less, one with another score: all three are told."""
    client.zadd(KEY, {"new": 3, "p000": 99})
    client.zrem(KEY, "p001")
    found = compared(sealed, client)
    assert (found.rows, found.equal) == (50, False)
    assert all(f"'{name}'" in found.told for name in ("new", "p000", "p001"))


def test_of_a_shard_as_many_other_rows_are_not_told_as_equal_numbers(sealed: Sealed, client: redis.Redis) -> None:
    """Of a shard no players are named, since its sealed rows stand among those of all: numbers, or that rows differ."""

    def shard() -> Likeness:
        return likeness(connector(client), sealed.facts, descending=sealed.descending, archived=None, page_rows=10)

    client.zincrby(KEY, 1, "p003")
    assert shard() == Likeness(50, False, f"{KEY} has other players or scores than were sealed")
    client.zrem(KEY, "p003")
    assert shard() == Likeness(49, False, f"{KEY} has 49 rows, sealed were 50")


def test_a_missing_key_has_no_rows_and_is_not_equal(sealed: Sealed, client: redis.Redis) -> None:
    client.delete(KEY)
    found = compared(sealed, client)
    assert (found.rows, found.equal) == (0, False)


def test_a_key_that_is_written_to_meanwhile_is_not_called_equal(sealed: Sealed, client: redis.Redis) -> None:
    """I3: the rows that were read are the sealed ones, but a write came before the proof."""

    class Written(ProofConnection):
        def unchanged(self) -> None:
            client.zincrby(KEY, 1, "p003")
            super().unchanged()

    found = compared(sealed, client, lambda: Written(proof_factory(client)))
    assert (found.equal, found.told) == (False, "it is being written to")


def test_a_key_of_another_type_is_no_board(sealed: Sealed, client: redis.Redis) -> None:
    client.delete(KEY)
    client.set(KEY, "x")
    with pytest.raises(WrongTypeError):
        compared(sealed, client)
