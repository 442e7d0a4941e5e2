"""Looking for keys: every sorted set once, on primaries only, whatever the client decodes."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from jobs.embedded.redis_server import RedisServer
from jobs.embedded.server import wait_until
from leaderboard.errors import AccessError, UnavailableError
from live import keyspace
from tests.live.boards import connected
from tests.support.servers import ServerFactory, running

MANY = 2_500


def test_c11_every_sorted_set_is_found_once_in_a_keyspace_of_many_pages(any_client: Redis) -> None:
    """C11: SCAN repeats and orders as it likes; each name comes once, but strings and names that are no UTF-8 never."""
    pipeline: Any = any_client.pipeline(transaction=False)
    for number in range(MANY):
        pipeline.zadd(f"board:{number}", {"ann": 1})
        pipeline.set(f"text:{number}", "x")
    pipeline.zadd(b"board:\xff", {"ann": 1})
    pipeline.execute()
    assert keyspace.sorted_sets([any_client]) == {f"board:{number}" for number in range(MANY)}


def test_names_are_found_by_their_pattern_whatever_their_type(client: Redis) -> None:
    client.set("{a}:finale:fence", 1)
    client.hset("{a}:finale:applied", "n0", 1)
    client.zadd("{a}:finale:expiring", {"ann": 1})
    client.set("finale", 1)
    assert keyspace.called([client], "*:finale:*") == {
        f"{{a}}:finale:{kind}" for kind in ("fence", "applied", "expiring")
    }


def test_types_sizes_and_lifetimes_of_many_keys(any_client: Redis) -> None:
    """C17: one command a key, so that no two slots meet in one; a key that is not there is none, 0 and -2."""
    any_client.zadd("z", {"ann": 1, "bob": 2})
    any_client.set("s", "x", ex=100)
    assert keyspace.kinds(any_client, ["z", "s", "gone"]) == {"z": "zset", "s": "string", "gone": "none"}
    assert keyspace.sizes(any_client, ["z", "gone"]) == {"z": 2, "gone": 0}
    left = keyspace.lifetimes(any_client, ["z", "s", "gone"])
    assert (left["z"], left["gone"]) == (-1, -2)
    assert 0 < left["s"] <= 100
    assert len(keyspace.kinds(any_client, [f"k{number}" for number in range(MANY)])) == MANY
    assert keyspace.kinds(any_client, []) == {}


def test_a_server_that_hangs_is_named_by_the_first_look() -> None:
    """Redis accepts and says nothing: unavailable, by its address, and no unforeseen error."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with (
            Redis(port=port, socket_timeout=0.2, retry=Retry(NoBackoff(), 0)) as hanging,
            pytest.raises(UnavailableError, match=f"{port} did not answer"),
        ):
            keyspace.sorted_sets([hanging])


def test_c16_primaries_only_and_each_key_once(
    client: Redis, redis_server: RedisServer, server_factory: ServerFactory
) -> None:
    """C16: several primaries are looked through together, a replica is refused instead of being counted."""
    with connected(redis_server.url) as other, running(server_factory.redis()) as third:
        client.zadd("a", {"ann": 1})
        other.zadd("a", {"ann": 1})
        other.zadd("b", {"ann": 1})
        assert keyspace.sorted_sets([client, other, client]) == {"a", "b"}
        with connected(third.url) as replica:
            replica.replicaof("localhost", 1)
            assert wait_until(lambda: replica.role()[0] != b"master", 10)
            with pytest.raises(UnavailableError, match="no primary, its role is slave"):
                keyspace.sorted_sets([other, replica])


def test_a_user_who_may_not_scan_is_told_so(client: Redis) -> None:
    client.acl_setuser("narrow", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-scan"])
    try:
        with connected_as(client, "narrow") as narrow, pytest.raises(AccessError) as refused:
            keyspace.sorted_sets([narrow])
        assert "scan" in refused.value.detail.lower()
    finally:
        client.acl_deluser("narrow")


def connected_as(client: Redis, user: str) -> Redis:
    """Return a client of the same server under another name."""
    path = client.connection_pool.connection_kwargs["path"]
    return connected(f"unix://{user}:none@{path}")


def test_looking_changes_nothing_and_leaves_no_connection(client: Redis) -> None:
    client.zadd("z", {"ann": 1})
    before = len(client.client_list())
    for _ in range(5):
        keyspace.sorted_sets([client])
    assert len(client.client_list()) <= before + 1
    assert client.keys() == [b"z"]
