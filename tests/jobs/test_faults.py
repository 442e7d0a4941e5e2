"""I1, I2, I3: what happens to Redis in the middle of a snapshot or a clean ends in a right archive or a clear refusal.

Each fault comes after the second of four pages, at the command line, on a board without a ledger: nothing but the
archive's own proofs stands between the fault and a wrong archive, or a key removed that was not proved.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
import pytest
import redis

from archive.proof import ProofConnection
from tests.support.cli import Answer, World, finale

KEY, AWAY = "leaderboard:cup:one", "somewhere else"
CONFIG = """
[runner]
page_rows = 10
[board.cup]
ties = "shared"
ledger = "none"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
ROWS = {f"p{number:02d}": float(number) for number in range(35)}
AGAIN = frozenset({10, 14, 21})  # exit codes that say: nothing was changed, run again


@dataclass(frozen=True)
class Struck:
    """What a fault may strike: the server, by a client of its own, and the connection that reads."""

    redis: redis.Redis
    proof: ProofConnection


@dataclass(frozen=True)
class Fault:
    """A fault, and what it comes to.

    ``archived``: whether the snapshot is taken again and sealed, else the season is held or refused. ``cleaned``:
    whether the next clean after the struck one removes the key, else it is held. ``gone``: the fault takes the key.
    """

    strike: Callable[[Struck], Any]
    archived: bool = True
    cleaned: bool = True
    gone: bool = False


def there_and_back(struck: Struck) -> None:
    struck.redis.zincrby(KEY, 1, "p00")
    struck.redis.zincrby(KEY, -1, "p00")


def again(struck: Struck) -> None:
    struck.redis.unlink(KEY)
    struck.redis.zadd(KEY, ROWS)


def run_out(struck: Struck) -> None:
    """Let the key expire, and look until it has."""
    struck.redis.pexpire(KEY, 1)
    while struck.redis.exists(KEY):
        pass


def evicted(policy: str) -> Callable[[Struck], None]:
    """Return what lets the server run out of memory under a policy that drops boards."""

    def strike(struck: Struck) -> None:
        struck.redis.expire(KEY, 100_000)
        struck.redis.config_set("maxmemory-policy", policy)
        struck.redis.config_set("maxmemory", 1)
        try:
            while struck.redis.exists(KEY):
                with suppress(redis.exceptions.OutOfMemoryError):
                    struck.redis.set("one more", 1)
        finally:
            struck.redis.config_set("maxmemory", 0)
            struck.redis.config_set("maxmemory-policy", "noeviction")

    return strike


def cut(struck: Struck) -> None:
    """Cut the connection at the server."""
    struck.redis.client_kill_filter(_id=str(struck.proof.watched.identity.client_id))


def reconnecting(struck: Struck) -> None:
    """Let the client lose its socket, as redis-py does when a health check fails, to open a new one unasked."""
    struck.proof._connection.disconnect()


def of_another_type(struck: Struck) -> None:
    struck.redis.rename(KEY, AWAY)
    struck.redis.set(KEY, "text")


def copied_over(struck: Struck) -> None:
    dump = struck.redis.dump(KEY)
    assert isinstance(dump, bytes)
    struck.redis.restore(KEY, 0, dump, replace=True)


FAULTS: dict[str, Fault] = {
    "a row is written": Fault(lambda struck: struck.redis.zadd(KEY, {"p00": 99}), cleaned=False),
    "a row comes": Fault(lambda struck: struck.redis.zadd(KEY, {"new": 3}), cleaned=False),
    "a row goes": Fault(lambda struck: struck.redis.zrem(KEY, "p34"), cleaned=False),
    "a row is written and put back": Fault(there_and_back),
    "a script writes": Fault(
        lambda struck: struck.redis.eval("return redis.call('ZINCRBY', KEYS[1], 1, 'p00')", 1, KEY), cleaned=False
    ),
    "a time to live": Fault(lambda struck: struck.redis.expire(KEY, 100_000)),
    "expiry": Fault(run_out, archived=False, gone=True),
    "eviction, allkeys-lru": Fault(evicted("allkeys-lru"), archived=False, gone=True),
    "eviction, volatile-ttl": Fault(evicted("volatile-ttl"), archived=False, gone=True),
    "renamed": Fault(lambda struck: struck.redis.rename(KEY, AWAY), archived=False, gone=True),
    "renamed and back": Fault(lambda struck: (struck.redis.rename(KEY, AWAY), struck.redis.rename(AWAY, KEY))),
    "removed and written again alike": Fault(again),
    "restored over itself": Fault(copied_over),
    "stored over": Fault(lambda struck: struck.redis.zunionstore(KEY, [KEY])),
    "flushed": Fault(lambda struck: struck.redis.flushall(), archived=False, gone=True),
    "databases exchanged": Fault(lambda struck: struck.redis.swapdb(0, 1), archived=False, gone=True),
    "a string in its place": Fault(of_another_type, archived=False, cleaned=False),
    "the connection cut": Fault(cut),
    "a silent reconnect": Fault(reconnecting),
}


#: Struck in every run; the others are of the same kinds.
FAST = (
    *("a row is written", "a row is written and put back", "expiry", "eviction, allkeys-lru", "renamed"),
    *("removed and written again alike", "a string in its place", "the connection cut", "a silent reconnect"),
)
NAMES = [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in FAULTS]


@pytest.fixture
def cup(world: World) -> World:
    """A finished season whose key was written by somebody else; its key is read in four pages."""
    world.configure(CONFIG)
    world.redis.zadd(KEY, ROWS)
    return world


def struck_once(patch: pytest.MonkeyPatch, world: World, fault: Fault) -> list[int]:
    """Let the fault come after the second page that is read from now on; return a list that has 1 once it came."""
    page, pages, came = ProofConnection.page, [0], []

    def paged(self: ProofConnection, rows: int) -> Any:
        found = page(self, rows)
        pages[0] += 1
        if pages[0] == 2:
            came.append(1)
            fault.strike(Struck(world.redis, self))
        return found

    patch.setattr(ProofConnection, "page", paged)
    patch.setattr("tenacity.nap.time.sleep", lambda _: None)
    return came


def archived(world: World) -> dict[str, float]:
    (part,) = (world.store / "standings").rglob("*.parquet")
    rows = pq.read_table(part, columns=["player_id", "score"], partitioning=None).to_pylist()
    return {row["player_id"]: row["score"] for row in rows}


def live(world: World) -> dict[str, float]:
    if world.redis.type(KEY) != b"zset":
        return {}
    found: Any = world.redis.zrange(KEY, 0, -1, withscores=True)
    return {member.decode(): score for member, score in found}


def ended_well_or_may_be_repeated(answer: Answer) -> Answer:
    """Return the answer of a command, run again if it said so."""
    if answer.code in AGAIN:
        answer.refused(answer.code)
        return finale("close", "cup", "one", "--until", "seal")
    return answer


@pytest.mark.parametrize("name", NAMES)
def test_i3_a_fault_in_the_middle_of_the_snapshot(cup: World, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """I3: what is sealed is the board at one instant after the fault; a board that is gone is told, never sealed."""
    fault = FAULTS[name]
    came = struck_once(monkeypatch, cup, fault)
    answer = ended_well_or_may_be_repeated(finale("close", "cup", "one", "--until", "seal"))
    assert came
    if fault.archived:
        answer.ok()
        assert archived(cup) == live(cup) != {}
        finale("archive", "verify", "cup", "one").ok()
    else:
        answer.refused(22 if fault.gone else 4, KEY)
        assert cup.files("seals") == cup.files("standings") == []
    cup.redis.swapdb(0, 1)
    cup.redis.flushall()


@pytest.mark.parametrize("name", NAMES)
def test_i1_a_fault_in_the_middle_of_the_clean(cup: World, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """I1: the struck clean removes nothing; the next removes what is again equal to the archive, and nothing else."""
    fault = FAULTS[name]
    finale("close", "cup", "one").ok()
    sealed = archived(cup)
    assert sealed == ROWS
    came = struck_once(monkeypatch, cup, fault)
    struck = finale("clean", "cup", "one", "--now", "--as", "ana")
    assert came
    assert struck.code in {*AGAIN, 22}
    struck.refused(struck.code)
    left = live(cup)
    assert bool(left) is not (fault.gone or name == "a string in its place")
    second = finale("clean", "cup", "one", "--as", "ana")
    if fault.cleaned:
        second.ok()
        assert not cup.redis.exists(KEY)
    else:
        assert second.code in (4, 22)
        assert live(cup) == left
        assert cup.redis.exists(KEY)
    finale("archive", "verify", "cup", "one").ok()
    assert archived(cup) == sealed
    cup.redis.flushall()
