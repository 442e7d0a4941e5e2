"""What the tests of the Redis half share: a client, a proof connection, scores, and what redis-py itself reads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import redis
from hypothesis import strategies as st

from archive.columns import Page
from archive.drain import pages
from archive.once import proof_factory
from archive.proof import ProofConnection
from archive.snapshot import Snapshot
from archive.store import Store
from leaderboard.board import Board
from leaderboard.season import Bounds

KEY = "leaderboard:goals:s2026"
ODD_MEMBERS = [b"", b"a", b"\r\n", b"a\r\nb", b"\x00", b"$5", b"*2", "🏆".encode(), b"\xff", b"\xff\xfe", b"p10", b"p9"]
ODD_SCORES = [0.0, -0.0, 1e17, 5e-324, float("inf"), float("-inf"), 2.0**53, 3.3, 1e16, 1.2345678901234568e17, -7.5]

members = st.one_of(st.sampled_from(ODD_MEMBERS), st.binary(max_size=40), st.text(max_size=10).map(str.encode))
scores = st.one_of(st.sampled_from(ODD_SCORES), st.floats(allow_nan=False), st.integers(-(2**53), 2**53).map(float))


def connector(client: redis.Redis) -> Callable[..., ProofConnection]:
    """Return what makes proof connections like ``client``'s, for whatever key."""
    factory = proof_factory(client)
    return lambda *_: ProofConnection(factory)


def fill(client: redis.Redis, key: str = KEY, rows: int = 25) -> Any:
    """Give ``key`` the players p000, p001, … with the scores 0, 0, 0, 1, 1, 1, …."""
    return client.zadd(key, {f"p{number:03d}": number // 3 for number in range(rows)})


def drained(
    proof: ProofConnection, key: str = KEY, *, descending: bool = True, page_rows: int = 10
) -> list[tuple[bytes, float]]:
    """Return all rows that the pages of a watched ``key`` give."""
    return rows_of(pages(proof, key, descending=descending, page_rows=page_rows))


def rows_of(read: Iterable[Page]) -> list[tuple[bytes, float]]:
    """Return the rows of ``read`` as pairs of member and score."""
    return [row for page in read for row in zip(page.members.to_pylist(), page.scores.tolist(), strict=True)]


def plain_rows(client: redis.Redis, key: str = KEY, *, descending: bool = True) -> list[tuple[bytes, float]]:
    """Return all rows of ``key`` as redis-py reads them in one command."""
    found: Any = client.zrange(key, 0, -1, desc=descending, withscores=True)
    return [(member, score) for member, score in found]


BOUNDS = Bounds(datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC), "s2026")


def board(**changes: Any) -> Board:
    """Return the board ``goals``: plain scores, whole points, text, high first, unless ``changes`` say otherwise."""
    return Board(**{"name": "goals", "ties": "shared", "calendar": {"every": "year"}} | changes)


def attempt(number: int) -> str:
    return f"try-{number}"


def staged(store: Store) -> list[str]:
    """Return the paths of everything staged in ``store``."""
    return [found.path for found in store.list("staging")]


def staged_rows(store: Store, snapshot: Snapshot) -> Any:
    """Return the rows of a snapshot's parts as one Arrow table, each part checked against the facts."""
    tables = []
    for part in snapshot.facts.parts:
        data = store.get(f"staging/goals/s2026/{snapshot.facts.attempt}/{part.name}")
        assert (len(data), hashlib.sha256(data).hexdigest()) == (part.size, part.sha256)
        table = pq.read_table(pa.BufferReader(data))
        assert table.num_rows == part.rows
        tables.append(table)
    return pa.concat_tables(tables)
