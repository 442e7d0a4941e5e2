"""The runner's fence beside the live key, and the key that names the open season's (I9)."""

from __future__ import annotations

import pytest
from redis import Redis

from leaderboard.errors import InputError, LeaseLostError
from leaderboard.keys import helper_key, slot
from live.errors import WrongTypeError
from live.fence import raise_fence, read_current, read_fence, set_current, withdraw_fence
from tests.live.boards import KEY

CURRENT = "leaderboard:goals:current"


def test_i9_the_fence_only_rises(any_client: Redis) -> None:
    """I9: a later runner's fence replaces an earlier one; the earlier runner is told and changes nothing."""
    assert read_fence(any_client, KEY) is None
    raise_fence(any_client, KEY, 9)
    raise_fence(any_client, KEY, 9)
    raise_fence(any_client, KEY, 10)
    with pytest.raises(LeaseLostError, match="is 10, this runner's 9"):
        raise_fence(any_client, KEY, 9)
    assert read_fence(any_client, KEY) == 10


def test_i9_a_fence_raised_too_late_is_withdrawn(any_client: Redis) -> None:
    """I9: a runner that was taken over takes its own fence away again, never a later one."""
    raise_fence(any_client, KEY, 9)
    withdraw_fence(any_client, KEY, 8)
    assert read_fence(any_client, KEY) == 9
    withdraw_fence(any_client, KEY, 9)
    withdraw_fence(any_client, KEY, 9)
    assert read_fence(any_client, KEY) is None


def test_raising_the_same_fence_writes_nothing(client: Redis) -> None:
    """Repeating a take-over does not break a WATCH on the fence."""
    raise_fence(client, KEY, 3)
    with client.pipeline() as watching:
        watching.watch(helper_key(KEY, "fence"))
        raise_fence(client, KEY, 3)
        watching.multi()
        watching.ping()
        assert watching.execute() == [True]


def test_helpers_share_the_live_keys_slot() -> None:
    """The scripts' keys lie in one slot of a cluster."""
    assert slot(KEY) == slot(helper_key(KEY, "fence")) == slot(helper_key(KEY, "applied"))


@pytest.mark.parametrize("foreign", ["", "abc", "1.5"])
def test_a_fence_that_is_no_number_is_named(any_client: Redis, foreign: str) -> None:
    """Something else's value in the fence's place is an error, never overwritten."""
    any_client.set(helper_key(KEY, "fence"), foreign)
    with pytest.raises(InputError, match="not a fence"):
        raise_fence(any_client, KEY, 1)
    with pytest.raises(InputError, match="not a fence"):
        read_fence(any_client, KEY)


def test_the_current_key_names_the_open_season(any_client: Redis) -> None:
    """It is written when it changes, and only then."""
    assert read_current(any_client, CURRENT) is None
    assert set_current(any_client, CURRENT, "lb:s1", seen=None) is True
    assert set_current(any_client, CURRENT, "lb:s1", seen="lb:s1") is False
    assert set_current(any_client, CURRENT, "lb:s2", seen="lb:s1") is True
    assert read_current(any_client, CURRENT) == "lb:s2"


@pytest.mark.parametrize("seen", [None, "lb:s0", ""])
def test_i9_a_late_write_cannot_bring_an_earlier_season_back(any_client: Redis, seen: str | None) -> None:
    """I9: who looked before the season changed is refused; repeating what stands is not."""
    set_current(any_client, CURRENT, "lb:s2", seen=None)
    with pytest.raises(LeaseLostError, match="changed by another to 'lb:s2'"):
        set_current(any_client, CURRENT, "lb:s1", seen=seen)
    assert set_current(any_client, CURRENT, "lb:s2", seen=seen) is False
    assert read_current(any_client, CURRENT) == "lb:s2"


def test_keys_of_another_type_are_named(any_client: Redis) -> None:
    """A hash where a string belongs is an error that names key and type, and stays as it is."""
    for key in (CURRENT, helper_key(KEY, "fence")):
        any_client.hset(key, "a", "b")
    for wrong in (
        lambda: set_current(any_client, CURRENT, KEY, seen=None),
        lambda: read_current(any_client, CURRENT),
        lambda: raise_fence(any_client, KEY, 1),
        lambda: read_fence(any_client, KEY),
    ):
        with pytest.raises(WrongTypeError, match="is a hash, not a string"):
            wrong()
