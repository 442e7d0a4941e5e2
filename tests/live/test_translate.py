"""What a server refuses or leaves unanswered is told as Finale's errors, without secrets."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from redis import exceptions as driver

from jobs.embedded.redis_server import RedisServer
from leaderboard.errors import AccessError, FinaleError, UnavailableError
from leaderboard.keys import helper_key
from live.apply import apply, claim, written
from live.fence import raise_fence, read_current
from live.scripts import load, run
from live.translate import address, translated
from tests.live.boards import KEY, connected, content, live, write

SECRET = "hunter2-of-all-secrets"


def apply_first(client: Redis) -> None:
    """Apply batch 1 of bucket 0."""
    apply(client, KEY, bucket=0, fence=1, number=1, members=[b"a"], scores=[1.0], removed=[])


CALLS: dict[str, Any] = {
    "top": lambda client: live(client).top(1),
    "count": lambda client: live(client).count(),
    "claim": lambda client: claim(client, KEY, 0, 1),
    "apply": apply_first,
    "fence": lambda client: raise_fence(client, KEY, 1),
    "current": lambda client: read_current(client, "current"),
    "written": lambda client: written(client, KEY, [0]),
}
WRITES = {name: CALLS[name] for name in ("claim", "apply", "fence")}


@pytest.fixture
def admin(redis_server: RedisServer) -> Iterator[Redis]:
    """A client of this test's own server, allowed everything."""
    with connected(redis_server.url) as client:
        yield client


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_server(private_dir: Path, call: Any) -> None:
    """Nothing listens there: unavailable, and the message says where."""
    socket = private_dir / "none.sock"
    with (
        connected(f"unix://{socket}") as client,
        pytest.raises(UnavailableError, match=f"Redis at {socket} did not"),
    ):
        call(client)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_silent_server_is_given_up(private_dir: Path, call: Any) -> None:
    """A server that takes the command and says nothing is unavailable once the client's timeout has passed."""
    path = str(private_dir / "silent.sock")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(path)
        silent.listen()
        with (
            connected(f"unix://{path}", socket_timeout=0.1) as client,
            pytest.raises(UnavailableError, match="did not answer"),
        ):
            call(client)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_wrong_password(admin: Redis, redis_server: RedisServer, call: Any) -> None:
    """A refused login is an access error that shows no password, in its text or its causes."""
    admin.acl_setuser("finale", enabled=True, passwords=["+right"], categories=["+@all"], keys=["*"])
    with (
        connected(redis_server.url, username="finale", password=SECRET) as client,
        pytest.raises(AccessError, match="refused the login") as caught,
    ):
        call(client)
    assert SECRET not in f"{caught.value} {caught.value!r} {caught.value.__cause__!r}"


def test_no_password_at_all(admin: Redis, redis_server: RedisServer) -> None:
    """A server that wants a login says so."""
    admin.config_set("requirepass", SECRET)
    with connected(redis_server.url) as client, pytest.raises(AccessError, match="refused the login"):
        live(client).top(1)
    redis_server.kill()


@pytest.mark.parametrize("call", WRITES.values(), ids=WRITES)
def test_a_user_who_may_only_read(admin: Redis, redis_server: RedisServer, call: Any) -> None:
    """A right that is missing inside a script is an access error too; reading works."""
    admin.acl_setuser("reader", enabled=True, nopass=True, categories=["+@read", "+@scripting"], keys=["*"])
    admin.zadd(KEY, {"a": 1})
    admin.hset(helper_key(KEY, "applied"), "f0", 1)
    with connected(redis_server.url, username="reader", password="any") as client:
        assert live(client, ties="shared").top(1)[0].player_id == b"a"
        with pytest.raises(AccessError, match="does not allow this user"):
            call(client)


def test_a_user_without_scripts(admin: Redis, redis_server: RedisServer) -> None:
    """So is the right to run scripts."""
    admin.acl_setuser("plain", enabled=True, nopass=True, categories=["+@read"], keys=["*"])
    with (
        connected(redis_server.url, username="plain", password="any") as client,
        pytest.raises(AccessError, match=r"does not allow this user.*\+@scripting"),
    ):
        live(client).around(b"a", 1)


def test_full_memory_changes_nothing(admin: Redis) -> None:
    """A server at maxmemory refuses the batch whole, reads go on, and the batch succeeds once there is room."""
    claim(admin, KEY, 0, 1)
    admin.config_set("maxmemory", 1)
    with pytest.raises(UnavailableError, match=r"\(OOM\).*maxmemory"):
        apply_first(admin)
    assert live(admin, ties="shared").top(1) == []
    admin.config_set("maxmemory", 0)
    apply_first(admin)
    assert content(admin) == [(b"a", 1)]


@pytest.mark.parametrize("call", WRITES.values(), ids=WRITES)
def test_c18_a_replica_refuses_writes(admin: Redis, call: Any) -> None:
    """C18: a server that has become a replica answers reads, and the error for a write names the remedy."""
    write(admin, {b"a": 1}, fence=1)
    admin.delete(helper_key(KEY, "fence"))
    admin.hset(helper_key(KEY, "applied"), "n0", 0)
    admin.replicaof("127.0.0.1", "1")
    assert live(admin, ties="shared").count() == 1
    assert live(admin, ties="shared").top(1)[0].player_id == b"a"
    with pytest.raises(UnavailableError, match=r"\(READONLY\).*name the primary"):
        call(admin)


@pytest.mark.parametrize(
    ("error", "expected", "text"),
    [
        (driver.BusyLoadingError("Redis is loading the dataset in memory"), UnavailableError, "LOADING"),
        (driver.MasterDownError("Link with MASTER is down"), UnavailableError, "MASTERDOWN"),
        (driver.ClusterDownError("CLUSTERDOWN The cluster is down"), UnavailableError, "CLUSTERDOWN"),
        (driver.ResponseError("NOREPLICAS Not enough good replicas to write."), UnavailableError, "NOREPLICAS"),
        (driver.ResponseError("MISCONF Redis is configured to save RDB snapshots"), UnavailableError, "MISCONF"),
        (driver.ResponseError("BUSY Redis is busy running a script"), UnavailableError, "BUSY"),
        (
            driver.ResponseError("Error running script: -OOM command not allowed"),
            UnavailableError,
            "OOM",
        ),
        (driver.ResponseError("The user executing the script can't run this command"), AccessError, "does not allow"),
        (driver.ResponseError("unknown command 'EVALSHA'"), AccessError, "unknown command"),
        (driver.RedisClusterException("no nodes"), UnavailableError, "no nodes"),
        (ConnectionResetError(104, "Connection reset by peer"), UnavailableError, "reset by peer"),
    ],
)
def test_rarer_refusals(client: Redis, error: Exception, expected: type[FinaleError], text: str) -> None:
    """What is hard to bring about, and what old servers word otherwise inside scripts, is told the same way."""
    with pytest.raises(expected, match=text), translated(client, {KEY: "zset"}):
        raise error


def test_addresses_hold_no_secret() -> None:
    """A server is named by host and port or socket."""
    for url, name in {
        f"redis://user:{SECRET}@example.test:7000/3": "Redis at example.test:7000",
        f"unix://user:{SECRET}@/run/redis.sock?db=1": "Redis at /run/redis.sock",
    }.items():
        assert address(Redis.from_url(url)) == name


def test_scripts_are_sent_once(client: Redis) -> None:
    """A server that does not know a script is given it, and knows it from then on."""
    assert client.script_exists(load("fence").digest) == [False]
    run(client, "fence", {helper_key(KEY, "fence"): "string"}, 1)
    assert client.script_exists(load("fence").digest) == [True]
    assert client.info("commandstats")["cmdstat_eval"]["calls"] >= 1
    before = client.info("commandstats")["cmdstat_eval"]["calls"]
    run(client, "fence", {helper_key(KEY, "fence"): "string"}, 2)
    assert client.info("commandstats")["cmdstat_eval"]["calls"] == before
