"""Whatever a board holds comes out of Parquet as redis-py reads it, bit for bit, or a hold says why not."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any, Literal

import numpy as np
import pytest
import redis
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from archive.snapshot import Source, take
from archive.standing import ForeignMemberError
from archive.store import Store, open_store
from tests.archive.boards import BOUNDS, KEY, attempt, board, members, plain_rows, scores, staged, staged_rows
from tests.archive.boards import connector as connector_of

LONG = b"x" * 65_536
PLAIN = {b"ann": 3.0, b"bob": 2.0**53 - 1, b"eve": -7.0, b"": 0.0}
#: Scores as they are on boards of whole points more often than chance has it.
whole = st.integers(-(2**53) + 1, 2**53 - 1).map(float)
rows_of_any_board = st.one_of(
    st.dictionaries(st.one_of(members, st.just(LONG)), st.one_of(scores, st.just(float("inf"))), max_size=20),
    st.dictionaries(st.text(max_size=10).map(str.encode), whole, max_size=20),
    st.dictionaries(st.one_of(members, st.just(LONG)), whole, max_size=20),
    st.dictionaries(st.text(max_size=10).map(str.encode), scores.filter(isfinite), max_size=20),
)


@pytest.fixture(scope="module")
def clients(shared_redis: Any) -> Iterator[dict[int | None, redis.Redis]]:
    """A client of each protocol."""
    made: dict[int | None, redis.Redis] = {None: redis.Redis.from_url(shared_redis.url)}
    for protocol in (2, 3):
        made[protocol] = redis.Redis.from_url(shared_redis.url, protocol=protocol)
    yield made
    for client in made.values():
        client.close()


@pytest.fixture
def store() -> Store:
    return open_store("memory://", {})


def fits(rows: dict[bytes, float], member: str, points: str) -> bool:
    """Return whether a board of that kind can have written all of them."""
    return all(member == "binary" or is_text(name) for name in rows) and all(
        isfinite(score) and (points == "fraction" or (score.is_integer() and abs(score) < 2**53))
        for score in rows.values()
    )


def is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=rows_of_any_board,
    member=st.sampled_from(["text", "binary"]),
    points=st.sampled_from(["integer", "fraction"]),
    order=st.sampled_from(["high", "low"]),
    protocol=st.sampled_from([None, 2, 3]),
)
@example(rows=PLAIN, member="text", points="integer", order="high", protocol=None)
@example(
    rows={**PLAIN, LONG: 5e-324, b"\r\n$5\r\n\x00": 3.3}, member="text", points="fraction", order="low", protocol=2
)
@example(rows={**PLAIN, b"\xff\xfe": -0.0}, member="binary", points="integer", order="high", protocol=3)
@example(rows={**PLAIN, b"\xff": 1.0}, member="text", points="integer", order="high", protocol=3)
@example(rows={**PLAIN, b"big": 2.0**53}, member="text", points="integer", order="low", protocol=2)
@example(rows={**PLAIN, b"endless": float("inf")}, member="binary", points="fraction", order="high", protocol=None)
@example(rows={**PLAIN, b"huge": 1e17}, member="text", points="fraction", order="high", protocol=3)
def test_c01_c04_c05_c07_c10_i3_any_board_on_any_kind_of_board(
    clients: dict[int | None, redis.Redis],
    store: Store,
    rows: dict[bytes, float],
    member: str,
    points: str,
    order: Literal["high", "low"],
    protocol: int | None,
) -> None:
    """I3, C01, C04, C05, C07, C10: text and binary, whole and fractional points, each protocol and order."""
    client = clients[protocol]
    client.unlink(KEY)
    if rows:
        client.zadd(KEY, rows)
    for path in staged(store):
        store.delete(path)
    of = board(member=member, points=points, order=order, ledger="none")

    def snapshot() -> Any:
        source = Source(of, BOUNDS, KEY)
        return take(connector_of(client), source, store, attempt=attempt, page_rows=7, part_rows=5)

    if not fits(rows, member, points):
        with pytest.raises(ForeignMemberError, match=r"member '.*' at position \d+ \(score ") as held:
            snapshot()
        assert held.value.hint
        assert staged(store) == []
        return
    table = staged_rows(store, snapshot())
    expected = plain_rows(clients[None], descending=order == "high")
    found = [name.encode() if isinstance(name, str) else name for name in table["player_id"].to_pylist()]
    assert found == [name for name, _ in expected]
    assert table["score"].to_numpy().tobytes() == np.array([score for _, score in expected], np.float64).tobytes()
    assert table["points"].to_pylist() == [score if points == "fraction" else int(score) for _, score in expected]
