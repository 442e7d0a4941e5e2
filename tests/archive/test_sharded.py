"""A standing of several sorted sets: what a single key would have given, bit for bit, of one instant, or nothing."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import archive.ahead
import archive.instant
import archive.merge
import archive.snapshot
from archive.digest import StandingDigest
from archive.duplicates import DoublePlayerError
from archive.once import proof_factory
from archive.plan import Span
from archive.proof import ProofConnection
from archive.snapshot import Snapshot, SnapshotDisturbedError, Source, take
from archive.standing import ForeignMemberError
from archive.store import FolderStore, Store, open_store
from leaderboard.board import Board
from leaderboard.keys import shard_keys
from tests.archive.boards import BOUNDS, KEY, attempt, board, connector, members, scores, staged, staged_rows

SINGLE = "leaderboard:single:s2026"


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as made:
        yield made


@pytest.fixture
def store(store_url: str) -> Store:
    return open_store(store_url, {})


def no_pause(seconds: float) -> None:
    """Do not wait between tries."""


def of_players(count: int = 3, **changes: Any) -> Board:
    return board(shards={"by": "player", "count": count}, **changes)


def of_bands(*cuts: float, **changes: Any) -> Board:
    return board(shards={"by": "score", "cuts": cuts}, **changes)


@pytest.fixture
def in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read long before it is merged, and merged long before it is told."""
    monkeypatch.setattr(archive.ahead, "AHEAD_BYTES", 1)
    monkeypatch.setattr(archive.instant, "TASK_ROWS", 10)


def names(of: Board) -> tuple[str, ...]:
    return shard_keys(KEY, of.shards.number)


def put(client: redis.Redis, of: Board, rows: dict[bytes, float]) -> None:
    """Put each row into its shard, and all of them into one sorted set beside them."""
    for member, score in rows.items():
        client.zadd(names(of)[of.layout.shard(member, score + 0.0)], {member: score})
        client.zadd(SINGLE, {member: score})


def sharded(client: redis.Redis, store: Store, of: Board, **options: Any) -> Snapshot:
    defaults: dict[str, Any] = {"attempt": attempt, "page_rows": 10, "part_rows": 7, "pause": no_pause}
    return take(connector(client), Source(of, BOUNDS, KEY, names(of)), store, **defaults | options)


def numbered(rows: int, distinct: int = 10**9) -> dict[bytes, float]:
    return {b"p%05d" % number: float(number % distinct) for number in range(rows)}


class Once:
    """A progress hook that acts once, when ``rows`` have been read."""

    def __init__(self, rows: int, act: Callable[[], Any]) -> None:
        self._rows, self._act = rows, act

    def __call__(self, rows: int, total: int) -> None:
        if rows >= self._rows >= 0:
            self._rows = -1
            self._act()


@st.composite
def layouts(draw: Any) -> Board:
    order = draw(st.sampled_from(["high", "low"]))
    fields = {"order": order, "member": "binary", "points": "fraction", "ledger": "none"}
    if draw(st.booleans()):
        return of_players(draw(st.integers(2, 5)), **fields)
    finite = st.floats(allow_nan=False, allow_infinity=False)
    cuts = draw(st.lists(st.sampled_from([0.0, 3.3, -7.5, 1e17, 5e-324]) | finite, min_size=1, max_size=3))
    return of_bands(*sorted({cut + 0.0 for cut in cuts}), **fields)


finite_scores = scores.filter(lambda score: abs(score) != float("inf"))


@given(
    layouts(),
    st.dictionaries(members, finite_scores | st.sampled_from([1.0, 2.0]), max_size=60),
    st.integers(1, 30),
    st.sampled_from([1, 400, 2**25]),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_i3_a_sharded_standing_is_that_of_a_single_key_bit_for_bit(
    client: redis.Redis, store: Store, of: Board, rows: dict[bytes, float], task_rows: int, ahead: int
) -> None:
    """I3: positions, ranks, scores, digest, sums and the parts' very bytes do not tell how the board was sharded."""
    client.flushall()
    put(client, of, rows)
    whole = of.model_copy(update={"shards": board().shards})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive.instant, "TASK_ROWS", task_rows)
        patch.setattr(archive.ahead, "AHEAD_BYTES", ahead)
        patch.setattr(archive.merge, "HELD_BYTES", ahead)
        found = sharded(client, store, of, attempt=lambda number: f"sharded-{number}")
    single = take(
        connector(client),
        Source(whole, BOUNDS, SINGLE),
        store,
        attempt=lambda n: f"single-{n}",
        page_rows=10,
        part_rows=7,
    )
    assert staged_rows(store, found).equals(staged_rows(store, single))
    assert found.facts.parts == single.facts.parts
    assert found.facts.digest == single.facts.digest
    assert (found.facts.first_score, found.facts.last_score) == (single.facts.first_score, single.facts.last_score)
    for fact, key in zip(found.facts.keys, names(of), strict=True):
        assert (fact.key, fact.rows, fact.digest) == (key, *_digest(client, key, of.descending))
    for path in staged(store):
        store.delete(path)


def _digest(client: redis.Redis, key: str, descending: bool) -> tuple[int, str]:
    """Return rows and digest of one sorted set as redis-py reads it."""
    read: Any = client.zrange(key, 0, -1, desc=descending, withscores=True)
    digest = StandingDigest()
    digest.update(pa.array([m for m, _ in read], pa.binary()), np.array([s for _, s in read], np.float64))
    return digest.rows, digest.hexdigest()


def test_millions_of_one_score_need_one_page_of_each_shard(client: redis.Redis, store: Store) -> None:
    """However many rows have one score, they are merged by member from pages; here 800 in pages of 10."""
    of = of_players(4)
    put(client, of, numbered(800, distinct=1))
    held: list[int] = []
    merged = archive.instant.merged

    def watched(*args: Any, **named: Any) -> Iterator[Any]:
        for block in merged(*args, **named):
            held.append(len(block))
            yield block

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive.instant, "merged", watched)
        patch.setattr(archive.merge, "HELD_BYTES", 1)
        found = sharded(client, store, of, part_rows=1_000)
    rows = staged_rows(store, found)
    assert rows["player_id"].to_pylist() == sorted((f"p{n:05d}" for n in range(800)), reverse=True)
    assert set(rows["rank"].to_pylist()) == {1}
    assert max(held) <= 4 * 10


def test_empty_shards_and_empty_boards_are_told(client: redis.Redis, store: Store) -> None:
    """C39: a shard nobody plays in is a key of no rows; with none at all the season is one part of none."""
    of = of_bands(100, 1000)
    client.zadd(names(of)[1], {"p1": 500})
    found = sharded(client, store, of)
    assert [fact.rows for fact in found.facts.keys] == [0, 1, 0]
    client.flushall()
    found = sharded(client, store, of, attempt=lambda number: f"empty-{number}")
    assert (found.facts.rows, len(found.facts.parts)) == (0, 1)


@pytest.mark.usefixtures("in_step")
@pytest.mark.parametrize("shard", [0, 1, 2])
def test_i3_a_write_to_any_shard_starts_the_snapshot_over(client: redis.Redis, store: Store, shard: int) -> None:
    """I3: one shard written to, before or after it was read, and what was read of all of them is thrown away."""
    of = of_bands(100, 200)
    put(client, of, numbered(300))
    found = sharded(client, store, of, progress=Once(150, lambda: client.zincrby(names(of)[shard], 1, f"p{shard}0050")))
    assert found.restarts == 1
    assert staged_rows(store, found).num_rows == found.facts.rows
    assert {path.split("/")[3] for path in staged(store)} == {"try-2"}


@pytest.mark.usefixtures("in_step")
def test_i3_a_shard_that_comes_to_be_starts_it_over(client: redis.Redis, store: Store) -> None:
    """I3: the key that did not exist is watched too."""
    of = of_bands(100, 200)
    client.zadd(names(of)[0], {b"p%03d" % n: n / 1 for n in range(90)})
    found = sharded(client, store, of, progress=Once(20, lambda: client.zadd(names(of)[2], {"late": 500})))
    assert (found.restarts, found.facts.rows) == (1, 91)


@pytest.mark.usefixtures("in_step")
def test_i3_a_player_who_moves_between_shards_meanwhile_is_never_in_both(client: redis.Redis, store: Store) -> None:
    """I3: added above before removed below, as an applier does it, in the middle of a snapshot."""
    of = of_bands(100)
    put(client, of, numbered(200))

    def move() -> None:
        client.zadd(names(of)[1], {"p00007": 150.0})
        client.zrem(names(of)[0], "p00007")

    found = sharded(client, store, of, progress=Once(100, move))
    assert (found.restarts, found.facts.rows) == (1, 200)


@pytest.mark.usefixtures("in_step")
def test_writers_that_never_stop_end_in_a_hold(client: redis.Redis, store: Store) -> None:
    of = of_players(2)
    put(client, of, numbered(50))
    with pytest.raises(SnapshotDisturbedError, match="in each of 3 tries"):
        sharded(client, store, of, tries=3, progress=lambda *_: client.zincrby(names(of)[0], 1, "p00000"))
    assert staged(store) == []


@pytest.mark.parametrize("most", [archive.instant.MOST_ROWS, 5])
@pytest.mark.parametrize("of", [of_players(3), of_bands(10, 20)])
def test_a_player_in_two_shards_is_a_hold_that_names_both(
    client: redis.Redis, store: Store, monkeypatch: pytest.MonkeyPatch, of: Board, most: int
) -> None:
    """Half moved: not archived twice, and nobody guesses which points are right; fingerprints or none."""
    monkeypatch.setattr(archive.instant, "MOST_ROWS", most)
    put(client, of, numbered(30))
    right = names(of)[of.layout.shard(b"p00005", 5.0)]
    wrong = next(name for name in names(of) if name != right)
    client.zadd(wrong, {"p00005": 99.5 if of.points == "fraction" else 99})
    with pytest.raises(DoublePlayerError, match="1 player stands in more than one shard") as told:
        sharded(client, store, of)
    assert "'p00005'" in told.value.detail
    assert right in told.value.detail
    assert f"{wrong} (99.0)" in told.value.detail
    assert staged(store) == []


def test_ids_are_read_again_only_if_two_may_be_one(
    client: redis.Redis, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fingerprints that differ are proof enough; equal ones of different players are a reason to look, not a fault."""
    looked: list[int] = []
    check = archive.snapshot.check_once
    monkeypatch.setattr(archive.snapshot, "check_once", lambda *given: (looked.append(1), check(*given)))
    put(client, of_players(3), numbered(30))
    sharded(client, store, of_players(3))
    assert looked == []
    monkeypatch.setattr(archive.ahead, "fingerprints", lambda page: np.zeros(len(page), np.uint64))
    found = sharded(client, store, of_players(3), attempt=lambda number: f"again-{number}")
    assert (looked, found.facts.rows) == ([1], 30)


def test_a_row_in_the_band_of_another_is_archived_where_its_score_stands(client: redis.Redis, store: Store) -> None:
    """A writer of one's own may cut a little differently; the order is that of the scores all the same."""
    of = of_bands(100)
    client.zadd(names(of)[0], {"a": 5, "b": 100, "c": 700})
    client.zadd(names(of)[1], {"d": 99, "e": 600})
    assert staged_rows(store, sharded(client, store, of))["player_id"].to_pylist() == ["c", "e", "b", "d", "a"]


def test_a_row_that_the_board_cannot_have_written_is_named_with_its_shard(client: redis.Redis, store: Store) -> None:
    of = of_players(3)
    put(client, of, numbered(30))
    client.zadd(names(of)[2], {"odd": 3.5})
    with pytest.raises(ForeignMemberError, match=f"{names(of)[2]}: member 'odd'"):
        sharded(client, store, of)


@pytest.mark.usefixtures("in_step")
def test_every_watch_is_answered_before_anything_is_read_and_every_exec_follows_at_once(
    client: redis.Redis, store: Store
) -> None:
    """I3: the last WATCH comes before the first page, the first EXEC after the last, and nothing is put in between."""
    of = of_players(3)
    put(client, of, numbered(100))
    said: list[str] = []

    class Told(ProofConnection):
        def send(self, *args: Any) -> None:
            said.append(str(args[0]))
            super().send(*args)

        def _execute(self, **named: Any) -> Any:
            said.append("EXEC")
            return super()._execute(**named)

    take(
        lambda _: Told(proof_factory(client)), Source(of, BOUNDS, KEY, names(of)), store, attempt=attempt, page_rows=10
    )
    last_watch = len(said) - 1 - said[::-1].index("WATCH")
    assert last_watch < min(said.index("ZCOUNT"), said.index("ZRANGE"))
    last_page = len(said) - 1 - said[::-1].index("ZRANGE")
    assert said[: said.index("EXEC")].count("ZRANGE") == said.count("ZRANGE")
    assert said[last_page:].count("EXEC") == 3


class Held(FolderStore):
    """A store that takes no second part before ``done``; ``third`` is set when it is handed one more."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.puts = 0
        self.done, self.third = threading.Event(), threading.Event()

    def put_new(self, path: str, data: bytes) -> None:
        self.puts += 1
        if self.puts == 2:
            assert self.done.wait(20)
        elif self.puts == 3:
            self.third.set()
        super().put_new(path, data)


@pytest.mark.parametrize("disturbed", [False, True])
def test_i3_every_exec_follows_the_last_page_though_the_store_stands_still(
    client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disturbed: bool
) -> None:
    """I3: who waits for the store proves meanwhile, and starts over if the proof says so.

    The store takes no second part before the last EXEC was sent, and most pages come only while it is waited for.
    """
    monkeypatch.setattr(archive.instant, "TASK_ROWS", 10)
    monkeypatch.setattr(archive.snapshot, "_BLOCK_ROWS", 10)
    of, store = of_players(3), Held(tmp_path)
    put(client, of, numbered(900))
    asked, executed = itertools.count(1), itertools.count(1)

    class Waiting(ProofConnection):
        def send(self, *args: Any) -> None:
            if args[0] == "ZRANGE" and args[2] != args[3] and next(asked) == 50:  # a page, not one row for the plan
                assert store.third.wait(20)
            super().send(*args)

        def _execute(self, **named: Any) -> Any:
            number = next(executed)
            if number == (1 if disturbed else 3):
                if disturbed:
                    client.zincrby(names(of)[of.layout.of_player(b"p00001")], 1, "p00001")
                store.done.set()
            return super()._execute(**named)

    found = take(
        lambda _: Waiting(proof_factory(client)),
        Source(of, BOUNDS, KEY, names(of)),
        store,
        attempt=attempt,
        page_rows=10,
        part_rows=7,
        pause=no_pause,
    )
    assert found.restarts == disturbed
    assert {path.split("/")[3] for path in staged(store)} == {f"try-{1 + disturbed}"}


@pytest.mark.parametrize(
    ("span", "told"),
    [
        (Span(), ("-inf", "inf")),
        (Span(-0.0, 5e-324, high_open=True), ("0.0", "(5e-324")),
        (Span(0.1, 1e17, low_open=True), ("(0.1", "1e+17")),
    ],
)
def test_c04_ends_of_ranges_are_told_exactly(client: redis.Redis, span: Span, told: Sequence[str]) -> None:
    """C04: the server reads the text of an end as the very double, so a row is in one range, not in its neighbour."""
    assert (span.minimum, span.maximum) == tuple(told)
    before, after = float(np.nextafter(span.high, -np.inf)), float(np.nextafter(span.low, np.inf))
    client.zadd(KEY, {"low": span.low, "high": span.high, "before": before, "after": after})
    expected = [score in span for score in (span.low, span.high, before, after)]
    assert client.zcount(KEY, span.minimum, span.maximum) == sum(expected)
