"""A board over several sorted sets, on several servers, is forgotten as one: none before the last was proved (I1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
import redis

import archive.pacing
from archive.departures import remove_all
from archive.once import proof_factory
from archive.proof import ProofConnection
from archive.removal import Departure, Fence, KeyChangedError
from archive.snapshot import Source, take
from archive.store import open_store
from leaderboard.keys import helper_key, shard_keys
from tests.archive.boards import BOUNDS, KEY, attempt, board, staged_rows
from tests.archive.test_removal import Hooked
from tests.support.servers import ServerFactory, running

FIRST, SECOND = shard_keys(KEY, 2)
Connect = Callable[[str], ProofConnection]


@pytest.fixture
def clients(redis_url: str, server_factory: ServerFactory) -> Iterator[dict[str, redis.Redis]]:
    """Two servers, one for each of two shards."""
    with (
        running(server_factory.redis()) as server,
        redis.Redis.from_url(redis_url) as here,
        redis.Redis.from_url(server.url) as there,
    ):
        yield {FIRST: here, SECOND: there}


@pytest.fixture
def forget(clients: dict[str, redis.Redis], store_url: str) -> Callable[[Connect], Any]:
    """Two shards of 30 players as a snapshot found them, and the call that is to forget them."""
    for number, (key, client) in enumerate(clients.items()):
        client.zadd(key, {f"p{number}{at:02}": at for at in range(30)})
        client.set(helper_key(key, "fence"), 7)
    store = open_store(store_url, {})
    of = board(shards={"by": "player", "count": 2}, ledger="none")
    taken = take(plain(clients), Source(of, BOUNDS, KEY, (FIRST, SECOND)), store, attempt=attempt)
    departures = [Departure(key, Fence(helper_key(key.key, "fence"), 7), []) for key in taken.facts.keys]
    rows = staged_rows(store, taken)

    def call(connect: Connect, proved: Callable[[Sequence[str]], None] = pytest.fail) -> Any:
        return remove_all(connect, departures, descending=True, archived=rows.to_batches, proved=proved, page_rows=10)

    return call


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as made:
        yield made


def plain(clients: dict[str, redis.Redis]) -> Connect:
    return lambda key: ProofConnection(proof_factory(clients[key]))


def hooked(clients: dict[str, redis.Redis], key: str, act: Callable[[], Any]) -> Connect:
    """Return what connects, but ``act``s once between the pages of ``key``."""
    return lambda name: Hooked(clients[name], "ZRANGE", act if name == key else lambda: None, nth=2)


@pytest.mark.parametrize(("rows", "size"), [(8 * 150, 2**30), (10**9, 8 * 6_000)])
def test_many_shards_are_forgotten_in_pages_as_small_as_they_were_read_in(
    client: redis.Redis, store_url: str, monkeypatch: pytest.MonkeyPatch, rows: int, size: int
) -> None:
    """However many shards there are, their pages of a clean have together no more rows and bytes than a snapshot's."""
    monkeypatch.setattr(archive.pacing, "HELD_ROWS", rows)
    monkeypatch.setattr(archive.pacing, "HELD_BYTES", size)
    names = shard_keys(KEY, 8)
    for number, name in enumerate(names):
        client.zadd(name, {f"p{number}{at:04}": at for at in range(2_000)})
        client.set(helper_key(name, "fence"), 7)
    asked: list[int] = []

    class Told(ProofConnection):
        def send(self, *args: Any) -> None:
            if args[0] == "ZRANGE" and args[3] != args[2]:
                asked.append(int(args[3]) - int(args[2]) + 1)
            super().send(*args)

    def connect(_: str) -> ProofConnection:
        return Told(proof_factory(client))

    of = board(shards={"by": "player", "count": 8}, ledger="none")
    budget = timedelta(hours=1)  # only the bounds count
    store = open_store(store_url, {})
    taken = take(connect, Source(of, BOUNDS, KEY, names), store, attempt=attempt, page_budget=budget)
    read = max(asked)
    asked.clear()
    departures = [Departure(key, Fence(helper_key(key.key, "fence"), 7), []) for key in taken.facts.keys]
    remove_all(connect, departures, descending=True, archived=list, proved=lambda _: None, page_budget=budget)
    assert max(asked) <= read <= 500
    assert not client.exists(*names)


def test_a_shard_that_differs_is_told_with_its_players(clients: dict[str, redis.Redis], forget: Any) -> None:
    """I1: one that differs keeps both, and who differs is told of all of them."""
    clients[FIRST].zincrby(FIRST, 0.5, "p003")
    with pytest.raises(KeyChangedError, match=f"{FIRST} differs") as held:
        forget(plain(clients))
    assert held.value.detail == "30 rows live, 30 sealed; 0 only live, 0 only archived, 1 different: " + (
        "'p003' live 3.5, archived 3.0"
    )
    assert [client.zcard(key) for key, client in clients.items()] == [30, 30]


@pytest.mark.parametrize(("changed", "written"), [(FIRST, SECOND), (SECOND, FIRST)])
def test_a_shard_that_differs_is_a_hold_while_another_is_written_to(
    clients: dict[str, redis.Redis], forget: Any, changed: str, written: str
) -> None:
    """I1: a write to the other shard, in the middle of its proof, hides neither the hold nor whose it is."""
    clients[changed].zincrby(changed, 0.5, clients[changed].zrange(changed, 3, 3)[0])
    lowest = clients[written].zrange(written, 0, 0)[0]
    with pytest.raises(KeyChangedError, match=f"{changed} differs") as held:
        forget(hooked(clients, written, lambda: clients[written].zincrby(written, 99, lowest)))
    assert "who differs is not told, since other shards are being written to" in str(held.value.detail)
    assert [client.zcard(key) for key, client in clients.items()] == [30, 30]


@pytest.mark.parametrize(("changed", "lost"), [(FIRST, SECOND), (SECOND, FIRST)])
def test_a_shard_that_differs_is_a_hold_though_another_does_not_answer(
    clients: dict[str, redis.Redis], forget: Any, changed: str, lost: str
) -> None:
    """I1: a connection lost in the middle of the other's proof passes by itself; what differs does not."""
    clients[changed].zincrby(changed, 0.5, clients[changed].zrange(changed, 3, 3)[0])
    act = lambda: clients[lost].client_kill_filter(_type="normal", skipme=True)  # noqa: E731  one use
    with pytest.raises(KeyChangedError, match=f"{changed} differs") as held:
        forget(hooked(clients, lost, act))
    assert "did not answer" in str(held.value.detail)


def test_a_shard_that_cannot_be_read_again_is_a_hold(clients: dict[str, redis.Redis], forget: Any) -> None:
    """I1: both were read and one differs; that the other is away when who differs is to be told takes nothing back."""
    clients[FIRST].zincrby(FIRST, 0.5, "p003")
    left = iter([*"123", ""])  # the pages of its proof, then the first of the telling

    class Lost(ProofConnection):
        def send(self, *args: Any) -> None:
            if args[:2] == ("ZRANGE", SECOND) and not next(left):
                self.close()
            super().send(*args)

    with pytest.raises(KeyChangedError, match=f"{FIRST} differs") as held:
        forget(lambda key: Lost(proof_factory(clients[key])))
    assert "did not answer" in str(held.value.detail)
