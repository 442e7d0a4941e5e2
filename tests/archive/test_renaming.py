"""The freeze by renaming: a private name under our own fence, whoever writes meanwhile; nothing is ever overwritten."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
import redis

from archive.once import proof_factory
from archive.proof import DisturbedError, ProofConnection
from archive.refusals import CrowdedError, WrongTypeError
from archive.removal import Fence
from archive.renaming import Renaming, rename
from leaderboard.errors import LeaseLostError
from leaderboard.keys import frozen_key, helper_key, slot
from tests.archive.boards import KEY, connector, fill, plain_rows

FROZEN = frozen_key(KEY, "s2026")
FENCE = Fence(helper_key(FROZEN, "fence"), 7)


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as made:
        made.set(FENCE.key, FENCE.number)
        yield made


def renamed(client: redis.Redis, fence: Fence = FENCE) -> Renaming:
    return rename(connector(client), KEY, FROZEN, fence)


def test_c13_the_rows_move_whole_and_their_time_to_live_is_taken_off(client: redis.Redis) -> None:
    """C13, C24: RENAME carries a time to live along; a board that is not archived yet must not expire."""
    fill(client)
    client.expire(KEY, 100)
    before = plain_rows(client)
    assert renamed(client) == Renaming("renamed", 25, 0)
    assert plain_rows(client, FROZEN) == before
    assert (client.ttl(FROZEN), client.exists(KEY)) == (-1, 0)


def test_i8_c13_again_it_is_done_already_and_what_came_later_is_told_and_left(client: redis.Redis) -> None:
    """I8, C13: repeated, nothing is renamed over what is there; rows under the old name are counted, not touched."""
    fill(client)
    renamed(client)
    assert renamed(client) == Renaming("done", 25, 0)
    client.zadd(KEY, {"late": 1, "later": 2})
    assert renamed(client) == Renaming("done", 25, 2)
    assert (client.zcard(FROZEN), client.zcard(KEY)) == (25, 2)


def test_a_missing_key_is_told_apart(client: redis.Redis) -> None:
    assert renamed(client) == Renaming("missing", 0, 0)


@pytest.mark.parametrize("key", [KEY, FROZEN])
def test_c13_a_key_of_another_type_is_not_touched(client: redis.Redis, key: str) -> None:
    """C13: neither what is no board nor what somebody else keeps under the private name is moved or overwritten."""
    fill(client)
    client.delete(key)
    client.set(key, "precious")
    with pytest.raises(WrongTypeError):
        renamed(client)
    assert client.get(key) == b"precious"


@pytest.mark.parametrize("stored", [None, 6, 8])
def test_i9_only_the_runner_whose_fence_it_is_renames(client: redis.Redis, stored: int | None) -> None:
    """I9: another runner's fence, or none, and the key stays where it was."""
    fill(client)
    client.delete(FENCE.key)
    if stored is not None:
        client.set(FENCE.key, stored)
    with pytest.raises(LeaseLostError):
        renamed(client)
    assert (client.zcard(KEY), client.exists(FROZEN)) == (25, 0)


def test_i9_a_runner_taken_over_in_the_middle_renames_nothing(client: redis.Redis) -> None:
    """I9: the fence is watched, so one that rises after it was compared stops the rename."""
    fill(client)

    class TakenOver(ProofConnection):
        def send(self, *args: str | bytes | int | float) -> None:
            if args[0] == "MULTI":
                client.set(FENCE.key, 8)
            super().send(*args)

    with pytest.raises(LeaseLostError):
        rename(lambda: TakenOver(proof_factory(client)), KEY, FROZEN, FENCE)
    assert (client.zcard(KEY), client.exists(FROZEN)) == (25, 0)


def test_i3_writers_that_never_stop_do_not_keep_it_from_being_frozen(client: redis.Redis) -> None:
    """I3: the rename succeeds at the first try under constant writes, and every row is under one of the two names."""
    fill(client)
    ended, begun = threading.Event(), threading.Event()
    written = 0

    def write() -> None:
        nonlocal written
        with redis.Redis(connection_pool=client.connection_pool) as writer:
            while not ended.is_set():
                writer.zadd(KEY, {f"writer{written}": written})
                written += 1
                if written == 20:
                    begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert begun.wait(10)
        outcome = renamed(client).outcome
    finally:
        ended.set()
        thread.join()
    assert outcome == "renamed"
    frozen = client.zcard(FROZEN)
    assert frozen >= 45
    assert frozen + client.zcard(KEY) == 25 + written


def test_c14_the_private_name_and_the_fence_beside_it_are_in_the_live_keys_slot() -> None:
    """C14: a rename across slots cannot happen; two seasons of one key have fences of their own."""
    other = frozen_key(KEY, "s2027")
    names = {KEY, FROZEN, other, FENCE.key, helper_key(other, "fence")}
    assert len(names) == 5
    assert len({slot(name) for name in names}) == 1


class Crowded(ProofConnection):
    """A connection whose server, as before version 7 at maxmemory, takes no transaction."""

    meanwhile: ClassVar[Callable[[], Any]]

    def exec(self, *commands: Any) -> list[Any]:
        type(self).meanwhile()
        self.close()
        raise CrowdedError("Redis is at its maxmemory and refuses commands")


@pytest.mark.parametrize(
    ("meanwhile", "error"),
    [
        (lambda client: None, None),
        (lambda client: client.zadd(KEY, {"more": 1}), None),
        (lambda client: client.set(FENCE.key, 8), LeaseLostError),
        (lambda client: client.zadd(FROZEN, {"taken": 1}), DisturbedError),
    ],
)
def test_i9_without_memory_a_script_renames_under_the_same_guards(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[Any], Any], error: type[Exception] | None
) -> None:
    """I3, I9: another's fence and a name that is taken meanwhile stop it as they stop the transaction."""
    fill(client)
    client.expire(KEY, 100)
    monkeypatch.setattr(Crowded, "meanwhile", lambda: meanwhile(client), raising=False)
    before = client.zcard(KEY)
    if error is None:
        done = rename(lambda: Crowded(proof_factory(client)), KEY, FROZEN, FENCE)
        assert (done.outcome, done.rows, client.exists(KEY), client.ttl(FROZEN)) == (
            "renamed",
            client.zcard(FROZEN),
            0,
            -1,
        )
        assert done.rows in (before, before + 1)
    else:
        with pytest.raises(error):
            rename(lambda: Crowded(proof_factory(client)), KEY, FROZEN, FENCE)
        assert client.zcard(KEY) == before
