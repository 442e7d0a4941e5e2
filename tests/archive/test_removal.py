"""A live key is forgotten only in the transaction that proved it equal to its seal, under our own fence (I1, I9)."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
import redis

from archive.changes import NAMED, compare
from archive.drain import pages
from archive.once import proof_factory
from archive.proof import DisturbedError, ProofConnection
from archive.removal import Expiry, Fence, KeyChangedError, Removal, behind, remove
from archive.seal import KeyFacts
from archive.snapshot import Source, take
from archive.store import open_store
from jobs.embedded.redis_server import RedisServer
from jobs.embedded.server import wait_until
from leaderboard.errors import LeaseLostError, OutcomeUnknownError, SeasonHeldError, UnavailableError
from leaderboard.keys import helper_key
from tests.archive.boards import BOUNDS, KEY, attempt, board, connector, fill, plain_rows, staged_rows
from tests.support.servers import ServerFactory, running

FENCE = helper_key(KEY, "fence")
APPLIED = helper_key(KEY, "applied")
EXPIRING = helper_key(KEY, "expiring")
EXPIRY = Expiry(EXPIRING, timedelta(days=2))


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as made:
        yield made


class Sealed:
    """A season of 50 players as a snapshot found it, with helper keys beside its live key, under the fence 7."""

    def __init__(self, client: redis.Redis, store_url: str, *, order: str = "high") -> None:
        fill(client, rows=50)
        client.set(FENCE, 7)
        client.hset(APPLIED, "n0", 1)
        store = open_store(store_url, {})
        of = board(order=order)
        taken = take(connector(client), Source(of, BOUNDS, KEY), store, attempt=attempt)
        self.facts: KeyFacts = taken.facts.keys[0]
        self.descending = of.descending
        self.rows = staged_rows(store, taken)

    def remove(
        self, client: redis.Redis, connect: Callable[[], ProofConnection] | None = None, **options: Any
    ) -> Removal:
        defaults: dict[str, Any] = {
            "descending": self.descending,
            "helper_keys": [FENCE, APPLIED],
            "archived": self.rows.to_batches,
            "page_rows": 10,
        }
        return remove(connect or connector(client), self.facts, Fence(FENCE, 7), **defaults | options)


@pytest.fixture
def sealed(client: redis.Redis, store_url: str) -> Sealed:
    return Sealed(client, store_url)


class Hooked(ProofConnection):
    """A proof connection that acts once, before the command ``name`` is sent for the ``nth`` time."""

    def __init__(self, client: redis.Redis, name: str, act: Callable[[], Any], nth: int = 1) -> None:
        super().__init__(proof_factory(client))
        self._name, self._act, self._left = name, act, nth

    def send(self, *args: Any) -> None:
        if args[0] == self._name:
            self._left -= 1
            if not self._left:
                self._act()
        super().send(*args)


def test_i1_an_equal_key_is_removed_with_its_helpers(client: redis.Redis, sealed: Sealed) -> None:
    """I1, C17: a key equal to its seal goes, its helpers with it, in one transaction of one key a command."""
    assert sealed.remove(client) == Removal("removed", 50, 0, 0)
    assert client.dbsize() == 0


def test_i1_a_low_board_is_removed_in_its_own_order(client: redis.Redis, store_url: str) -> None:
    """I1: digests are over board order, on low boards ascending."""
    assert Sealed(client, store_url, order="low").remove(client).outcome == "removed"


def test_i8_c21_a_second_removal_finds_it_absent(client: redis.Redis, sealed: Sealed) -> None:
    """I8, C21: repeated, the removal finds nothing to do, and removes helpers that were left."""
    sealed.remove(client)
    client.hset(APPLIED, "n0", 1)
    assert sealed.remove(client).outcome == "absent"
    assert client.dbsize() == 0


def test_c13_expire_gives_the_key_away_to_a_private_name(client: redis.Redis, sealed: Sealed) -> None:
    """C13: with expiry the content moves, whole, to a private name with a time to live; the live name is free."""
    client.expire(KEY, 10)
    before = plain_rows(client)
    assert sealed.remove(client, expiry=EXPIRY).outcome == "expiring"
    assert plain_rows(client, EXPIRING) == before
    assert 0 < client.ttl(EXPIRING) <= 2 * 86_400
    assert client.ttl(EXPIRING) > 86_400
    assert client.keys() == [EXPIRING.encode()]


def test_c13_a_private_name_that_is_taken_loses_nothing(client: redis.Redis, sealed: Sealed) -> None:
    """C13: something under the private name stops the removal; both keys stay as they were, without a time to live."""
    client.zadd(EXPIRING, {"old": 1})
    with pytest.raises(SeasonHeldError, match=f"{EXPIRING}.*taken"):
        sealed.remove(client, expiry=EXPIRY)
    assert client.zcard(KEY) == 50
    assert plain_rows(client, EXPIRING) == [(b"old", 1.0)]
    assert client.ttl(EXPIRING) == -1


def test_c13_a_private_name_taken_meanwhile_loses_nothing(client: redis.Redis, sealed: Sealed) -> None:
    """C13: a key that appears under the private name while the live key is read stops the removal."""
    connect = lambda: Hooked(client, "ZRANGE", lambda: client.zadd(EXPIRING, {"new": 1}), nth=3)  # noqa: E731  one use
    with pytest.raises(DisturbedError):
        sealed.remove(client, connect, expiry=EXPIRY)
    assert client.zcard(KEY) == 50
    assert client.ttl(EXPIRING) == -1


WRITES: dict[str, tuple[Callable[[redis.Redis], Any], str]] = {
    "a score": (lambda client: client.zadd(KEY, {"p003": 99}), r"1 different: 'p003' live 99\.0, archived 1\.0"),
    "a new player": (
        lambda client: client.zadd(KEY, {"late": 3}),
        r"1 only live, .*'late' live 3\.0, archived missing",
    ),
    "a player gone": (
        lambda client: client.zrem(KEY, "p049"),
        r"1 only archived, .*'p049' live missing, archived 16\.0",
    ),
    "two exchanged": (
        lambda client: client.zadd(KEY, {"p000": 16, "p049": 0}),
        "0 only live, 0 only archived, 2 different",
    ),
}


@pytest.mark.parametrize(("act", "told"), WRITES.values(), ids=WRITES)
def test_i1_a_write_after_the_seal_keeps_the_key(
    client: redis.Redis, sealed: Sealed, act: Callable[[redis.Redis], Any], told: str
) -> None:
    """I1: a key that differs from its seal stays, helpers too; the players that differ are named with both scores."""
    act(client)
    before = plain_rows(client)
    with pytest.raises(KeyChangedError, match=told) as held:
        sealed.remove(client)
    assert held.value.exit_code == 22
    assert plain_rows(client) == before
    assert client.exists(FENCE, APPLIED) == 2


def test_i1_at_most_20_players_are_named(client: redis.Redis, sealed: Sealed) -> None:
    """I1: all that differ are counted, the first 20 named."""
    client.zadd(KEY, {f"p{n:03d}": -1 for n in range(30)} | {f"new{n}": 1 for n in range(7)})
    with pytest.raises(KeyChangedError, match="7 only live, 0 only archived, 30 different") as held:
        sealed.remove(client)
    assert str(held.value).count(" archived ") == NAMED


@pytest.mark.parametrize("page", [2, 5])
def test_i1_a_write_while_it_is_compared_keeps_the_key(client: redis.Redis, sealed: Sealed, page: int) -> None:
    """I1: a write after its own page was read, even of a pair that cancels out, stops the removal."""

    def there_and_back() -> None:
        client.zincrby(KEY, 1, "p049")
        client.zincrby(KEY, -1, "p049")

    with pytest.raises(DisturbedError):
        sealed.remove(client, lambda: Hooked(client, "ZRANGE", there_and_back, nth=page))
    assert client.zcard(KEY) == 50


def test_i1_a_write_just_before_exec_keeps_the_key(client: redis.Redis, sealed: Sealed) -> None:
    """I1: the last moment before EXEC is guarded by the WATCH, not by the comparison."""
    with pytest.raises(DisturbedError):
        sealed.remove(client, lambda: Hooked(client, "UNLINK", lambda: client.zincrby(KEY, 1, "p000")))
    assert client.zcard(KEY) == 50
    assert client.exists(FENCE, APPLIED) == 2


@pytest.mark.parametrize("found", [6, 8, "text", None])
def test_i9_another_fence_removes_nothing(client: redis.Redis, sealed: Sealed, found: Any) -> None:
    """I9: a fence that is not exactly ours, or is missing beside a live key, stops the removal and is told."""
    client.unlink(FENCE)
    if found is not None:
        client.set(FENCE, found)
    with pytest.raises(LeaseLostError, match=f"fence.*{'missing' if found is None else found}"):
        sealed.remove(client)
    assert client.zcard(KEY) == 50


@pytest.mark.parametrize("command", ["ZRANGE", "MULTI", "UNLINK"])
def test_i9_a_fence_raised_meanwhile_removes_nothing(client: redis.Redis, sealed: Sealed, command: str) -> None:
    """I9: a runner that takes over while we read or queue stops us, in the same transaction."""
    with pytest.raises(LeaseLostError, match="is 8, this runner's is 7"):
        sealed.remove(client, lambda: Hooked(client, command, lambda: client.set(FENCE, 8)))
    assert client.zcard(KEY) == 50
    assert client.exists(FENCE, APPLIED) == 2


def test_i9_helpers_of_another_runner_stay_where_the_key_is_gone(client: redis.Redis, sealed: Sealed) -> None:
    """I9: with the live key gone, helpers under a newer fence are not ours to remove."""
    client.unlink(KEY)
    client.set(FENCE, 8)
    with pytest.raises(LeaseLostError):
        sealed.remove(client)
    assert client.exists(FENCE, APPLIED) == 2


@pytest.mark.parametrize("nth", [1, 4])
def test_i1_a_connection_killed_while_comparing_removes_nothing(client: redis.Redis, sealed: Sealed, nth: int) -> None:
    """I1: a connection that dies is an error; no new one is opened to execute without the WATCH."""
    made: list[Hooked] = []

    def kill() -> None:
        client.client_kill_filter(_id=str(made[0].watched.identity.client_id))

    def connect() -> Hooked:
        made.append(Hooked(client, "ZRANGE", kill, nth))
        return made[-1]

    with pytest.raises(UnavailableError):
        sealed.remove(client, connect)
    assert len(made) == 1
    assert client.zcard(KEY) == 50


class AnswerLost(ProofConnection):
    """A proof connection whose server executes, but whose answer to EXEC never comes, or never went out."""

    def __init__(self, client: redis.Redis, *, sent: bool) -> None:
        super().__init__(proof_factory(client))
        connection = self._connection
        pack, write = connection.pack_command, connection.send_packed_command

        def send(packed: Sequence[bytes], check_health: bool = True) -> None:
            if packed == pack("EXEC"):
                if sent:
                    write(packed, check_health=check_health)
                    connection.read_response()
                connection.disconnect()
                raise redis.TimeoutError("Timeout reading from socket")
            write(packed, check_health=check_health)

        connection.send_packed_command = send


@pytest.mark.parametrize("executed", [True, False])
def test_i8_a_lost_answer_to_exec_is_an_unknown_outcome(client: redis.Redis, sealed: Sealed, executed: bool) -> None:
    """I8, C21: when the answer to EXEC is lost the outcome is unknown; the next call looks and ends the same."""
    with pytest.raises(OutcomeUnknownError, match="run again"):
        sealed.remove(client, lambda: AnswerLost(client, sent=executed))
    assert bool(client.exists(KEY)) is not executed
    assert sealed.remove(client).outcome == ("absent" if executed else "removed")
    assert client.dbsize() == 0


def test_i1_a_server_killed_while_comparing_keeps_the_key(redis_server: RedisServer, store_url: str) -> None:
    """I1, I8: after kill -9 of the server in the middle and a restart, the key is there and the removal works."""
    with redis.Redis.from_url(redis_server.url) as client:
        sealed = Sealed(client, store_url)
        with pytest.raises(UnavailableError):
            sealed.remove(client, lambda: Hooked(client, "ZRANGE", redis_server.kill, nth=3))
        redis_server.start()
        assert client.zcard(KEY) == 50
        assert sealed.remove(client).outcome == "removed"


@pytest.mark.parametrize("following", [0, 1])
def test_c19_replicas_that_follow_confirm_the_removal(
    server_factory: ServerFactory, store_url: str, following: int
) -> None:
    """C19: WAIT follows a removal on the same connection, and how many replicas confirmed it is told."""
    port = free_port()
    with ExitStack() as stack:
        server = stack.enter_context(
            running(server_factory.redis("--port", str(port), "--bind", "127.0.0.1", *AT_ONCE))
        )
        primary = stack.enter_context(redis.Redis.from_url(server.url))
        for _ in range(following):
            stack.enter_context(running(server_factory.redis("--replicaof", "127.0.0.1", str(port), *ON_NO_DISK)))
        assert wait_until(lambda: str(primary.info("replication")).count("online") == following, 20)
        done = Sealed(primary, store_url).remove(primary)
    assert (done.outcome, done.replicas, done.acknowledged) == ("removed", following, following)


@pytest.mark.parametrize("confirmed", [0, 1, 2, None])
def test_c19_replicas_that_do_not_confirm_are_told(client: redis.Redis, sealed: Sealed, confirmed: int | None) -> None:
    """C19: how many follow is known from ROLE also where WAIT fails, which is no reason to say that there are none."""

    class Followed(ProofConnection):
        def command(self, *args: Any) -> Any:
            if args[0] == "ROLE":
                return [b"master", 0, [[b"replica", b"6379", b"0"]] * 2]
            if args[0] == "WAIT" and confirmed is None:
                self.close()
                raise UnavailableError("Redis did not answer")
            return confirmed if args[0] == "WAIT" else super().command(*args)

    done = sealed.remove(client, lambda: Followed(proof_factory(client)))
    assert done == Removal("removed", 50, 2, confirmed)
    told = behind(done.replicas, done.acknowledged)
    if confirmed == 2:
        assert told == ""
    else:
        assert "2 replicas follow this Redis" in told
        assert ("nobody said how many" if confirmed is None else f"{confirmed} of them confirmed") in told


def test_c19_a_server_without_replicas_has_none_behind() -> None:
    assert behind(0, 0) == behind(0, None) == ""
    assert "1 replica follows" in behind(1, 0)


AT_ONCE = ("--repl-diskless-sync-delay", "0")
ON_NO_DISK = ("--appendonly", "no")  # a replica of older versions cannot be stopped while it writes its first file


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_merging_finds_exactly_the_differences(client: redis.Redis) -> None:
    """The comparison equals one of sets, in both orders, with text or bytes on the archive's side."""
    live = {f"p{n:03d}".encode(): float(n % 7) for n in range(100)}
    archived = {
        member: score + (member.endswith(b"5")) for member, score in live.items() if not member.endswith(b"3")
    } | {b"gone": 2.0}
    client.zadd(KEY, live)
    for descending in (True, False):
        ordered = sorted(((score, member) for member, score in archived.items()), reverse=descending)
        for kind in (pa.string(), pa.binary()):
            members = pa.array([member for _, member in ordered], pa.binary()).cast(kind)
            batch = pa.record_batch([members, pa.array([score for score, _ in ordered])], ["player_id", "score"])
            with connector(client)() as proof:
                proof.watch(KEY)
                read = pages(proof, KEY, descending=descending, page_rows=9)
                changes = compare(read, [batch.slice(0, 40), batch.slice(40)], descending=descending)
            assert (changes.only_live, changes.only_archived, changes.different) == (10, 1, 10)
            assert changes.complete
            for change in changes.named:
                assert (change.live, change.archived) == (live.get(change.member), archived.get(change.member))


def test_equal_rows_with_another_digest_are_told_as_that(client: redis.Redis, sealed: Sealed) -> None:
    """Where no row differs but the digest does, the seal and its parts are what disagrees."""
    sealed.facts = KeyFacts(KEY, 50, "0" * 64)
    with pytest.raises(KeyChangedError, match="the seal and its parts disagree"):
        sealed.remove(client)
    assert client.zcard(KEY) == 50
