"""A snapshot is the board at one instant (I3), staged once, or nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis

from archive.columns import Page
from archive.digest import StandingDigest
from archive.drain import DrainError
from archive.once import proof_factory
from archive.proof import ProofConnection
from archive.snapshot import Snapshot, SnapshotDisturbedError, Source, take
from archive.standing import ForeignMemberError
from archive.store import Store, open_store
from jobs.embedded.redis_server import RedisServer
from leaderboard.board import Board
from leaderboard.codec import codec_for, to_microseconds
from leaderboard.errors import UnavailableError
from tests.archive.boards import (
    BOUNDS,
    KEY,
    ODD_MEMBERS,
    attempt,
    board,
    connector,
    fill,
    plain_rows,
    staged,
    staged_rows,
)


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as made:
        yield made


@pytest.fixture
def store(store_url: str) -> Store:
    return open_store(store_url, {})


def no_pause(seconds: float) -> None:
    """Do not wait between tries."""


def snapshot(client: redis.Redis, store: Store, of: Board | None = None, **options: Any) -> Snapshot:
    defaults: dict[str, Any] = {"attempt": attempt, "page_rows": 10, "part_rows": 7, "pause": no_pause}
    return take(connector(client), Source(of or board(), BOUNDS, KEY), store, **defaults | options)


class Once:
    """A progress hook that acts once, when ``rows`` have been read."""

    def __init__(self, rows: int, act: Callable[[], Any]) -> None:
        self._rows, self._act = rows, act

    def __call__(self, rows: int, total: int) -> None:
        if rows == self._rows:
            self._rows = -1
            self._act()


def test_a_snapshot_is_what_redis_py_reads(client: redis.Redis, store: Store) -> None:
    """Rows, positions, shared ranks and facts are the board's, cut into parts of the asked size."""
    fill(client)
    taken = snapshot(client, store)
    rows = staged_rows(store, taken)
    expected = plain_rows(client)
    found = list(zip(rows["player_id"].to_pylist(), rows["score"].to_pylist(), strict=True))
    assert found == [(member.decode(), score) for member, score in expected]
    assert rows["position"].to_pylist() == list(range(1, 26))
    assert rows["rank"].to_pylist() == [1 + sum(other > score for _, other in expected) for _, score in expected]
    assert rows["points"].to_pylist() == [int(score) for _, score in expected]
    assert rows["reached_at"].null_count == 25
    facts = taken.facts
    digest = StandingDigest()
    digest.update(pa.array([member for member, _ in expected]), np.array([score for _, score in expected]))
    assert (facts.rows, facts.digest) == (25, digest.hexdigest())
    assert facts.keys[0].key == KEY
    assert facts.keys[0].digest == facts.digest
    assert facts.points_sum == sum(int(score) for _, score in expected)
    assert (facts.first_score, facts.last_score) == (8.0, 0.0)
    assert [part.rows for part in facts.parts] == [7, 7, 7, 4]
    assert (taken.restarts, facts.attempt) == (0, "try-1")


def test_packed_scores_give_points_and_the_time_they_were_reached(client: redis.Redis, store: Store) -> None:
    """On a first_to_reach board the score is taken apart into points and reached_at, at the unit of the codec."""
    of = board(ties={"by": "first_to_reach", "unit": "minute"})
    codec = codec_for(of, BOUNDS)
    start = to_microseconds(BOUNDS.starts_at)
    client.zadd(KEY, {f"p{n}": codec.encode(n // 2, start + n * 60_000_000) for n in range(9)})
    rows = staged_rows(store, snapshot(client, store, of))
    assert rows["player_id"].to_pylist() == ["p8", "p6", "p7", "p4", "p5", "p2", "p3", "p0", "p1"]
    assert rows["points"].to_pylist() == [4, 3, 3, 2, 2, 1, 1, 0, 0]
    assert rows["reached_at"][1].as_py() == BOUNDS.starts_at + timedelta(minutes=6)


def test_c74_low_boards_and_member_ties(client: redis.Redis, store: Store) -> None:
    """C74: on a low board the smallest stands first; ties = "member" gives each its own rank, in the bytes' order."""
    client.zadd(KEY, {"b": 2, "a": 2, "c": 1})
    rows = staged_rows(store, snapshot(client, store, board(order="low", ties="member")))
    assert rows["player_id"].to_pylist() == ["c", "a", "b"]
    assert rows["rank"].to_pylist() == [1, 2, 3]


@pytest.mark.parametrize(("page_rows", "part_rows"), [(1, 100), (3, 4), (1000, 25)])
def test_i3_facts_do_not_depend_on_pages_or_parts(
    client: redis.Redis, store: Store, page_rows: int, part_rows: int
) -> None:
    """I3: rows and digest are the same however they were paged and cut."""
    fill(client)
    first = snapshot(client, store)
    second = snapshot(client, store, attempt=lambda n: f"other-{n}", page_rows=page_rows, part_rows=part_rows)
    assert second.facts.digest == first.facts.digest
    assert staged_rows(store, second).equals(staged_rows(store, first))


@pytest.mark.parametrize("exists", [True, False])
def test_c39_no_rows_are_one_part(client: redis.Redis, store: Store, exists: bool) -> None:
    """C39, C24: a key without rows is one that does not exist, and gives one part without rows."""
    if exists:
        client.zadd(KEY, {"p": 1})
    taken = snapshot(client, store)
    assert [part.rows for part in taken.facts.parts] == [int(exists)]
    assert (taken.facts.first_score is None) is not exists


@pytest.mark.parametrize("rows", [10, 20, 50])
def test_i3_a_write_while_it_is_read_starts_over(client: redis.Redis, store: Store, rows: int) -> None:
    """I3: a write between any two pages, or before EXEC, starts over; the result is the new state, the old is gone."""
    fill(client, rows=50)
    taken = snapshot(client, store, progress=Once(rows, lambda: client.zadd(KEY, {"p001": 999})))
    table = staged_rows(store, taken)
    assert (taken.restarts, taken.facts.attempt) == (1, "try-2")
    assert (table["player_id"][0].as_py(), table["points"][0].as_py()) == ("p001", 999)
    assert {path.split("/")[3] for path in staged(store)} == {"try-2"}


DISTURBANCES: dict[str, Callable[[redis.Redis], Any]] = {
    "EXPIRE": lambda client: client.expire(KEY, 1000),
    "RENAME and back": lambda client: (client.rename(KEY, "away"), client.rename("away", KEY)),
    "UNLINK and an identical key": lambda client: (client.unlink(KEY), fill(client, rows=50)),
    "FLUSHALL and an identical key": lambda client: (client.flushall(), fill(client, rows=50)),
    "rows removed": lambda client: client.zremrangebyrank(KEY, 0, 20),
    "rows added": lambda client: client.zadd(KEY, {f"q{n}": n for n in range(30)}),
}


@pytest.mark.parametrize("act", DISTURBANCES.values(), ids=DISTURBANCES)
def test_i3_every_disturbance_starts_over(client: redis.Redis, store: Store, act: Callable[[redis.Redis], Any]) -> None:
    """I3: whatever disturbs the key between pages, the snapshot is taken again and equals the board after it."""
    fill(client, rows=50)
    taken = snapshot(client, store, progress=Once(20, lambda: act(client)))
    assert taken.restarts == 1
    found = staged_rows(store, taken)
    assert found["player_id"].to_pylist() == [member.decode() for member, _ in plain_rows(client)]


def test_i3_a_key_that_appears_meanwhile_starts_over(client: redis.Redis, store: Store) -> None:
    """I3: a missing key is proved missing at one instant too; one that appears before EXEC is archived, not lost."""

    class Appearing(ProofConnection):
        def send(self, *args: Any) -> None:
            if args[0] == "MULTI" and not client.exists(KEY):
                fill(client)
            super().send(*args)

    taken = take(
        lambda _: Appearing(proof_factory(client)),
        Source(board(), BOUNDS, KEY),
        store,
        attempt=attempt,
        pause=no_pause,
    )
    assert (taken.restarts, taken.facts.rows) == (1, 25)


def test_i3_the_same_value_again_is_no_disturbance(client: redis.Redis, store: Store) -> None:
    """I3: a ZADD of the value that is there changes nothing, and nothing starts over."""
    fill(client, rows=50)
    assert snapshot(client, store, progress=Once(20, lambda: client.zadd(KEY, {"p003": 1}))).restarts == 0


def test_i3_a_writer_that_never_stops_holds_the_season(client: redis.Redis, store: Store) -> None:
    """I3: after the last try the season is held, the message tells what to do, and nothing stays staged."""
    fill(client, rows=50)
    pauses: list[float] = []
    with pytest.raises(SnapshotDisturbedError, match=f"in each of 3 tries.*{KEY}.*stop what writes") as held:
        snapshot(
            client, store, tries=3, pause=pauses.append, progress=lambda rows, total: client.zincrby(KEY, 1, "p001")
        )
    assert held.value.exit_code == 22
    assert len(pauses) == 2
    assert staged(store) == []


def test_i1_a_killed_connection_ends_the_snapshot(client: redis.Redis, store: Store) -> None:
    """I1, I3: a connection that dies while paging is an error, not a silent reconnect; its staging is swept."""
    fill(client, rows=50)
    made: list[ProofConnection] = []

    def connect(_: str) -> ProofConnection:
        made.append(connector(client)())
        return made[-1]

    def kill() -> None:
        client.client_kill_filter(_id=str(made[0].watched.identity.client_id))

    with pytest.raises(UnavailableError, match="did not answer"):
        take(
            connect,
            Source(board(), BOUNDS, KEY),
            store,
            attempt=attempt,
            page_rows=10,
            part_rows=7,
            progress=Once(20, kill),
        )
    assert len(made) == 1
    assert staged(store) == []


def test_a_server_killed_in_the_middle_is_unavailable(redis_server: RedisServer, store: Store) -> None:
    """A server that is killed while it is read is unavailable; what was staged is swept."""
    with redis.Redis.from_url(redis_server.url) as client:
        fill(client, rows=50)
        with pytest.raises(UnavailableError):
            snapshot(client, store, progress=Once(30, redis_server.kill))
    assert staged(store) == []


def test_c10_a_member_that_is_not_utf8_is_named_on_a_text_board(client: redis.Redis, store: Store) -> None:
    """C10: a member that is not text holds a text board by name and position, and goes through on a binary one."""
    fill(client)
    client.zadd(KEY, {b"a\xffb": 4.5})
    place = 1 + sum(score > 4.5 for _, score in plain_rows(client))
    with pytest.raises(ForeignMemberError, match=rf"a\\xffb.*position {place} .*not UTF-8"):
        snapshot(client, store, board(points="fraction", ledger="none"))
    assert staged(store) == []
    of = board(points="fraction", ledger="none", member="binary")
    rows = staged_rows(store, snapshot(client, store, of, attempt=lambda n: f"binary-{n}"))
    assert rows["player_id"].to_pylist() == [member for member, _ in plain_rows(client)]


@pytest.mark.parametrize("score", [1.5, 2.0**53, float("inf"), 1e17])
def test_c01_c02_a_score_that_the_codec_cannot_have_written_is_named(
    client: redis.Redis, store: Store, score: float
) -> None:
    """C01, C02, C05: a fraction, an infinity or a score past 2^53 holds the season by member, score and key."""
    fill(client)
    client.zadd(KEY, {"strange": score})
    with pytest.raises(ForeignMemberError) as held:
        snapshot(client, store)
    assert "'strange'" in str(held.value)
    assert KEY in str(held.value)
    assert f"(score {score!r})" in str(held.value)
    assert staged(store) == []


def test_sums_of_points_past_2_63_are_exact(client: redis.Redis, store: Store) -> None:
    """The sum of points is exact even where it passes 64 bits."""
    client.zadd(KEY, {f"p{n}": 2**53 - 1 for n in range(2000)})
    assert snapshot(client, store, page_rows=2000, part_rows=2000).facts.points_sum == 2000 * (2**53 - 1)


class SlowStore:
    """A store that holds every put until two are under way, or the reading has ended."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.most = self.now = 0
        self._lock = threading.Condition()
        self.read_to_the_end = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_new(self, path: str, data: bytes) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self._lock.notify_all()
            assert self._lock.wait_for(lambda: self.most >= 2 or self.read_to_the_end, timeout=30)
        self._store.put_new(path, data)
        with self._lock:
            self.now -= 1

    def ended(self, rows: int, total: int) -> None:
        if rows == total:
            with self._lock:
                self.read_to_the_end = True
                self._lock.notify_all()


def test_parts_are_put_side_by_side_but_few_at_a_time(client: redis.Redis, store: Store) -> None:
    """Puts run while Redis is read, at most two at a time, so that memory stays flat."""
    fill(client, rows=90)
    slow = SlowStore(store)
    taken = snapshot(client, slow, progress=slow.ended)
    assert slow.most == 2
    assert staged_rows(store, taken).num_rows == 90


class BrokenStore(SlowStore):
    """A store that fails from the second put on."""

    def put_new(self, path: str, data: bytes) -> None:
        if not path.endswith("part-00000.parquet"):
            raise UnavailableError("the store did not answer")
        self._store.put_new(path, data)


def test_a_failing_store_ends_the_snapshot_and_leaves_nothing(client: redis.Redis, store: Store) -> None:
    """A put that fails ends the snapshot with the store's error; the attempt's own parts are swept, nothing else."""
    fill(client, rows=90)
    theirs = ["staging/goals/s2026/somebody-else/part-00000.parquet", "staging/goals/s2026/try-1/notes.txt"]
    for path in theirs:
        store.put_new(path, b"theirs")
    with pytest.raises(UnavailableError, match="the store"):
        snapshot(client, BrokenStore(store))
    assert staged(store) == theirs


def test_odd_members_survive_on_a_binary_board(client: redis.Redis, store: Store) -> None:
    """Empty members, line breaks, NUL, protocol bytes and invalid UTF-8 are archived as they are."""
    client.zadd(KEY, dict.fromkeys(ODD_MEMBERS, 1))
    rows = staged_rows(store, snapshot(client, store, board(member="binary")))
    assert rows["player_id"].to_pylist() == sorted(ODD_MEMBERS, reverse=True)


def test_a_page_that_does_not_fit_ends_the_snapshot(client: redis.Redis, store: Store) -> None:
    """A page that does not fit although nobody wrote stops at once; it is not tried again."""
    fill(client, rows=50)

    class Shortened(ProofConnection):
        def page(self, rows: int) -> Any:
            page = super().page(rows)
            return Page(page.members[:-1], page.scores[:-1])

    made = []

    def connect(_: str) -> ProofConnection:
        made.append(Shortened(proof_factory(client)))
        return made[-1]

    with pytest.raises(DrainError, match="9 came"):
        take(connect, Source(board(), BOUNDS, KEY), store, attempt=attempt, page_rows=10, part_rows=7)
    assert len(made) == 1
    assert staged(store) == []
