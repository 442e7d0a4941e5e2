"""C24: whether the server may drop a board by itself, asked of real servers; never a failure, at most unknown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis

from live.eviction import Eviction, dangers, eviction
from tests.live.boards import KEY
from tests.live.test_keyspace import connected_as


@pytest.fixture
def lenient(client: Redis) -> Iterator[Redis]:
    """The shared server, its policy put back afterwards."""
    before = client.config_get("maxmemory-policy")["maxmemory-policy"]
    yield client
    client.config_set("maxmemory-policy", before)


def test_c24_a_server_that_evicts_nothing_is_no_danger(lenient: Redis) -> None:
    lenient.config_set("maxmemory-policy", "noeviction")
    found = eviction(lenient)
    assert (found.policy, found.may_drop, found.any_key) == ("noeviction", False, False)
    assert "not evicted" in found.fate()
    assert dangers(lenient, KEY) == []


@pytest.mark.parametrize(
    ("policy", "any_key"), [("allkeys-lru", True), ("allkeys-random", True), ("volatile-ttl", False)]
)
def test_c24_a_server_that_evicts_is_named_with_its_policy(lenient: Redis, policy: str, any_key: bool) -> None:
    """C24: allkeys-… may drop any board, volatile-… one with a time to live; the missing key's fate says which."""
    lenient.config_set("maxmemory-policy", policy)
    found = eviction(lenient)
    assert (found.policy, found.may_drop, found.any_key) == (policy, True, any_key)
    assert policy in found.fate()
    assert ("if it had a time to live" in found.fate()) is not any_key
    (danger,) = dangers(lenient, KEY)
    assert policy in danger


def test_c24_a_time_to_live_on_an_open_board_is_a_danger_under_any_policy(lenient: Redis) -> None:
    """C24: a job put a TTL on a board that is not archived yet."""
    lenient.config_set("maxmemory-policy", "noeviction")
    lenient.zadd(KEY, {"ann": 1})
    assert dangers(lenient, KEY) == []
    lenient.expire(KEY, 1_000)
    (danger,) = dangers(lenient, KEY)
    assert KEY in danger
    assert "expires in" in danger


def test_c24_evicted_keys_are_counted_in_the_fate() -> None:
    assert "has evicted 1,234 keys" in Eviction("allkeys-lru", 1_234).fate()
    assert "has evicted" not in Eviction("allkeys-lru", 0).fate()


def test_c24_where_the_user_may_not_ask_the_policy_is_unknown(lenient: Redis) -> None:
    """C24: CONFIG is not needed at all, and without INFO and TTL nothing fails: unknown is neither yes nor no."""
    lenient.config_set("maxmemory-policy", "allkeys-lru")
    lenient.acl_setuser("narrow", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-config"])
    try:
        with connected_as(lenient, "narrow") as narrow:
            assert eviction(narrow).policy == "allkeys-lru"
        lenient.acl_setuser("narrow", enabled=True, commands=["-info", "-ttl"])
        with connected_as(lenient, "narrow") as narrow:
            found = eviction(narrow)
            assert (found.policy, found.may_drop) == (None, False)
            assert "does not tell" in found.fate()
            assert dangers(narrow, KEY) == []
    finally:
        lenient.acl_deluser("narrow")
