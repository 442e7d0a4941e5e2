"""The connection that holds a WATCH: it notices every change, never comes back by itself, and says what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.sentinel import SentinelManagedConnection

from archive.once import proof_factory
from archive.proof import DisturbedError, ProofConnection
from archive.refusals import WrongTypeError, refused_hello
from leaderboard.errors import AccessError, UnavailableError
from tests.archive.boards import KEY, connector, drained, fill


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as made:
        yield made


@pytest.fixture
def proof(client: redis.Redis) -> Iterator[ProofConnection]:
    with connector(client)() as made:
        yield made


def test_watch_records_identity_and_rows(client: redis.Redis, proof: ProofConnection) -> None:
    """At WATCH the connection's number, the role, the run id and the rows of the live keys that exist are recorded."""
    fill(client)
    watched = proof.watch(KEY, "missing")
    assert watched.identity.client_id in {int(known["id"]) for known in client.client_list()}
    assert watched.identity.role == "master"
    assert watched.identity.run_id == client.info("server")["run_id"]
    assert watched.rows == {KEY: 25}


def test_untouched_keys_execute(client: redis.Redis, proof: ProofConnection) -> None:
    """With nothing changed, the commands are executed and their replies alone returned."""
    fill(client)
    proof.watch(KEY)
    assert proof.exec(("SET", "a", 1), ("GET", "a")) == [b"OK", b"1"]


UNCHANGING: dict[str, Callable[[redis.Redis], Any]] = {
    "ZADD of the same score": lambda client: client.zadd(KEY, {"p003": 1}),
    "reading": lambda client: client.zrange(KEY, 0, -1),
    "another key": lambda client: client.zadd("other", {"p003": 9}),
}
CHANGING: dict[str, Callable[[redis.Redis], Any]] = {
    "ZADD": lambda client: client.zadd(KEY, {"p003": 5}),
    "ZADD there and back": lambda client: (client.zadd(KEY, {"p003": 5}), client.zadd(KEY, {"p003": 1})),
    "ZINCRBY": lambda client: client.zincrby(KEY, 1, "p003"),
    "ZREM": lambda client: client.zrem(KEY, "p003"),
    "EXPIRE": lambda client: client.expire(KEY, 1000),
    "RENAME": lambda client: client.rename(KEY, "elsewhere"),
    "COPY onto it": lambda client: (fill(client, "twin"), client.copy("twin", KEY, replace=True)),
    "UNLINK": lambda client: client.unlink(KEY),
    "UNLINK, then an identical key": lambda client: (client.unlink(KEY), fill(client)),
    "FLUSHALL": lambda client: client.flushall(),
    "FLUSHDB and an identical key": lambda client: (client.flushdb(), fill(client)),
    "SWAPDB": lambda client: client.swapdb(0, 1),
    "a script": lambda client: client.eval("redis.call('ZADD', KEYS[1], 9, 'p003')", 1, KEY),
    "a string in its place": lambda client: client.set(KEY, "text"),
    "ZUNIONSTORE": lambda client: client.zunionstore(KEY, [KEY, "other"]),
}


@pytest.mark.parametrize("act", UNCHANGING.values(), ids=UNCHANGING)
def test_i3_what_changes_nothing_passes(client: redis.Redis, act: Callable[[redis.Redis], Any]) -> None:
    """I3: a command that leaves the watched key as it was does not stop the EXEC."""
    fill(client)
    with connector(client)() as proof:
        proof.watch(KEY)
        act(client)
        assert proof.exec(("SET", "done", 1)) == [b"OK"]


@pytest.mark.parametrize("act", CHANGING.values(), ids=CHANGING)
def test_i1_i3_every_change_is_noticed(client: redis.Redis, act: Callable[[redis.Redis], Any]) -> None:
    """I1, I3: after any change of the watched key nothing of the transaction is executed."""
    fill(client)
    with connector(client)() as proof:
        proof.watch(KEY)
        act(client)
        with pytest.raises(DisturbedError, match="not one instant"):
            proof.exec(("SET", "done", 1))
    assert not client.exists("done")


def test_i3_a_missing_key_is_watched_too(client: redis.Redis, proof: ProofConnection) -> None:
    """I3: a key that appears after WATCH found it missing is noticed."""
    assert proof.watch(KEY).rows == {}
    fill(client)
    with pytest.raises(DisturbedError):
        proof.exec()


def test_i1_a_killed_connection_never_comes_back(client: redis.Redis, proof: ProofConnection) -> None:
    """I1: a connection that broke has lost its WATCH; it says so and opens no other, however often it is asked."""
    fill(client)
    watched = proof.watch(KEY)
    client.client_kill_filter(_id=str(watched.identity.client_id))
    with pytest.raises(UnavailableError, match="did not answer"):
        proof.exec(("UNLINK", KEY))
    with pytest.raises(UnavailableError, match="never opened again"):
        proof.command("PING")
    assert client.exists(KEY)


@pytest.mark.parametrize(
    "options", [{"health_check_interval": 1}, {"retry_on_timeout": True}, {"decode_responses": True}]
)
def test_i1_the_clients_reconnecting_settings_are_not_taken(redis_url: str, options: dict[str, Any]) -> None:
    """I1: health checks and retries of the user's client do not reach the connection that holds the WATCH."""
    with redis.Redis.from_url(redis_url, **options) as client:
        fill(client)
        connection = proof_factory(client)()
        assert connection.health_check_interval == 0
        assert connection.retry.get_retries() == 0
        with connector(client)() as proof:
            proof.watch(KEY)
            assert len(drained(proof)) == 25


@pytest.mark.parametrize("kind", ["string", "hash", "list", "set"])
def test_a_key_that_is_not_a_sorted_set_is_named_with_its_type(
    client: redis.Redis, proof: ProofConnection, kind: str
) -> None:
    """A wrong type is an error that names key and type."""
    make: dict[str, Callable[[], Any]] = {
        "string": lambda: client.set(KEY, "1"),
        "hash": lambda: client.hset(KEY, "a", "1"),
        "list": lambda: client.rpush(KEY, "1"),
        "set": lambda: client.sadd(KEY, "1"),
    }
    make[kind]()
    with pytest.raises(WrongTypeError, match=f"{KEY}.*not a sorted set.*{kind}"):
        proof.watch(KEY)


def test_a_replica_is_refused(client: redis.Redis, proof: ProofConnection) -> None:
    """Final standings are read from the primary; another role is named."""
    client.replicaof("127.0.0.1", "1")
    try:
        with pytest.raises(UnavailableError, match="role is slave"):
            proof.watch(KEY)
    finally:
        client.replicaof("NO", "ONE")


def test_i1_a_role_that_changes_after_watch_is_noticed(client: redis.Redis, proof: ProofConnection) -> None:
    """I1: a server that became a replica after WATCH is not given the commands."""
    fill(client)
    proof.watch(KEY)
    client.replicaof("127.0.0.1", "1")
    try:
        with pytest.raises(DisturbedError, match="another"):
            proof.exec(("UNLINK", KEY))
        assert client.exists(KEY)
    finally:
        client.replicaof("NO", "ONE")


def test_no_server_is_unavailable(tmp_path: Any) -> None:
    """A server that is not there is named by its address."""
    client = redis.Redis(unix_socket_path=str(tmp_path / "none.sock"))
    with client, pytest.raises(UnavailableError, match=r"none\.sock did not answer"):
        connector(client)()


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_wrong_password_is_refused_and_not_repeated(client: redis.Redis, redis_url: str, protocol: int) -> None:
    """A refused login is an AccessError without the password."""
    client.acl_setuser("eve", enabled=True, passwords=["+right"], keys=["*"], commands=["+@all"])
    try:
        wrong = redis.Redis.from_url(redis_url, username="eve", password="hunter2", protocol=protocol)
        with wrong, pytest.raises(AccessError) as refused:
            connector(wrong)()
    finally:
        client.acl_deluser("eve")
    assert "hunter2" not in str(refused.value)
    assert "user name or password" in str(refused.value)


def test_an_old_server_that_repeats_the_password_is_not_quoted() -> None:
    """A server without HELLO repeats its arguments in the error; none of them is told."""
    reply = "unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 'hunter2' "
    told = str(refused_hello(redis.ResponseError(reply), "redis.example:6379"))
    assert "hunter2" not in told
    assert "redis.example:6379" in told


def test_a_missing_right_is_named(client: redis.Redis, redis_url: str) -> None:
    """A user without a needed command is told which, and nothing is executed."""
    client.acl_setuser("eve", enabled=True, passwords=["+right"], keys=["*"], commands=["+@all", "-unlink"])
    fill(client)
    try:
        limited = redis.Redis.from_url(redis_url, username="eve", password="right")
        with limited, connector(limited)() as proof:
            proof.watch(KEY)
            with pytest.raises(AccessError, match="does not allow this user the command UNLINK"):
                proof.exec(("SET", "done", 1), ("UNLINK", KEY))
    finally:
        client.acl_deluser("eve")
    assert client.exists(KEY)
    assert not client.exists("done")


def test_a_full_server_refuses_in_words(client: redis.Redis, proof: ProofConnection) -> None:
    """At maxmemory Redis refuses the transaction; nothing is executed and the remedy is told."""
    fill(client)
    proof.watch(KEY)
    client.config_set("maxmemory", 1)
    try:
        with pytest.raises(UnavailableError, match="maxmemory"):
            proof.exec(("SET", "done", 1))
    finally:
        client.config_set("maxmemory", 0)
    assert client.exists(KEY)


def test_a_server_that_stalls_is_unavailable(client: redis.Redis, redis_url: str) -> None:
    """A timeout before EXEC was sent is no unknown outcome: nothing was executed, and the connection is closed."""
    fill(client)
    hasty = redis.Redis.from_url(redis_url, socket_timeout=0.2)
    with hasty, connector(hasty)() as proof:
        proof.watch(KEY)
        client.client_pause(60_000, all=False)
        try:
            with pytest.raises(UnavailableError, match="did not answer"):
                proof.exec(("UNLINK", KEY))
        finally:
            client.client_unpause()
        with pytest.raises(UnavailableError, match="never opened again"):
            proof.command("PING")
    assert client.exists(KEY)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("redis://:secret@redis.example:6380/3", Connection),
        ("rediss://:secret@redis.example:6380/3?ssl_cert_reqs=none", SSLConnection),
        ("unix:///run/redis.sock?db=3", UnixDomainSocketConnection),
    ],
)
def test_every_kind_of_connection_keeps_its_class_and_settings(url: str, kind: type) -> None:
    """TCP, TLS and Unix sockets: class, address, database and credentials of the client are kept, and never shown."""
    with redis.Redis.from_url(url) as client:
        made = proof_factory(client)()
        assert isinstance(made, kind)
        assert made.db == 3  # type: ignore[attr-defined]  # the class is a parameter
        assert getattr(made, "password", None) == client.connection_pool.connection_kwargs.get("password")
        assert "secret" not in repr(made)


def test_sentinel_connections_are_guarded_too() -> None:
    """A client whose primary a Sentinel names gives proof connections that ask the Sentinel, once."""
    sentinel: Any = redis.Sentinel
    client = sentinel([("sentinel.example", 26379)]).master_for("boards", db=3)
    with client:
        made: Any = proof_factory(client)()
        assert isinstance(made, SentinelManagedConnection)
        assert made.db == 3


def test_commands_wait_for_the_replies_before_them(client: redis.Redis, proof: ProofConnection) -> None:
    """A command between a request and its reply is a mistake of the caller, not a mixed-up reply."""
    proof.send("PING")
    with pytest.raises(RuntimeError, match="PING"):
        proof.command("PING")
    assert proof.read() == b"PONG"
