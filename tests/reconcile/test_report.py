"""The Parquet files of a drift report: every player's numbers and causes, in memory that the drift does not fill."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reconcile import report
from reconcile.drift import SCHEMA, Drift, Listed, Row
from reconcile.explain import Cause, Explained, Match

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MICROSECONDS = 1_767_268_800_000_000
MATCH = Match("m1", 5, NOON, NOON + timedelta(seconds=3))
DRIFT = (
    Drift("only_ledger", None, None, 3, None, MICROSECONDS),
    Drift("only_ledger", b"ann", None, 5, None, MICROSECONDS),
    Drift("only_redis", b"bob", -7, None, None, None),
    Drift("points_differ", b"cid", 9, 4, MICROSECONDS, MICROSECONDS),
    Drift("no_score", b"dan", None, 6, None, None, (Row("key:1", "inf"),)),
    Drift("several_shards", b"eve", 8, 6, None, None, (Row("key:1", "8.0"), Row("key:2", "6.0"))),
    Drift("reached_at_differs", b"fay", 1, 1, MICROSECONDS, MICROSECONDS + 1),
)


def read(files: Iterator[bytes]) -> list[list[dict[str, Any]]]:
    return [pq.read_table(BytesIO(data)).to_pylist() for data in files]


def test_a_row_says_all_that_is_known_of_its_player() -> None:
    """Of each class both numbers, the difference, raw rows, the explanation of the first ones; null is what is not."""
    told = [
        None,
        Explained(DRIFT[1], Cause.NEVER_APPLIED, NOON, "", (MATCH,)),
        Explained(DRIFT[2], Cause.FOREIGN, None, "", ()),
    ]
    files = read(report.files(Listed(DRIFT[::-1]).batches(), report.told(told), 3))
    assert [len(rows) for rows in files] == [3, 3, 1]
    rows = [row for file in files for row in file]
    assert [(row["player_id"], row["class"]) for row in rows] == [(one.player_id, one.kind) for one in DRIFT]
    assert [row["difference"] for row in rows] == [one.difference for one in DRIFT] == [-3, -5, -7, 5, None, 2, 0]
    assert [(row["redis_points"], row["ledger_points"]) for row in rows] == [
        (one.redis_points, one.ledger_points) for one in DRIFT
    ]
    assert [row["redis_rows"] for row in rows[:5]] == [None] * 4 + [[{"key": "key:1", "score": "inf"}]]
    assert rows[3]["redis_reached_at"] == NOON and rows[6]["ledger_reached_at"] == NOON + timedelta(microseconds=1)
    assert [row["cause"] for row in rows] == [None, "never applied", "written by someone else", None, None, None, None]
    assert (rows[1]["since"], rows[2]["since"], rows[2]["last_matches"], rows[3]["last_matches"]) == (
        NOON,
        None,
        [],
        None,
    )
    assert rows[1]["last_matches"] == [
        {"match_id": "m1", "points": 5, "played_at": NOON, "recorded_at": NOON + timedelta(seconds=3)}
    ]


def many(players: int) -> Iterator[pa.RecordBatch]:
    """Make batches of drifting players, one after the other."""
    for start in range(0, players, 50_000):
        numbers = np.arange(start, min(start + 50_000, players))
        points, time = pa.array(numbers), pa.array(np.full(numbers.size, MICROSECONDS))
        kinds = pa.array(["points_differ"] * numbers.size)
        ids = pa.array([b"player %09d" % number for number in numbers], pa.binary())
        rows = pa.nulls(numbers.size, SCHEMA.field("redis_rows").type)
        yield pa.record_batch([ids, kinds, points, pa.array(numbers + 1), time, time, rows], schema=SCHEMA)


def test_no_row_of_the_files_becomes_an_object() -> None:
    """A whole file of 500,000 players is made of columns: less than a tenth of what their dicts would need."""
    told = report.told([Explained(DRIFT[1], Cause.NEVER_APPLIED, NOON, "", (MATCH,))] * 5_000)
    tracemalloc.start()
    try:
        (data,) = report.files(many(500_000), told, 500_000)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 30_000_000
    found = pq.ParquetFile(BytesIO(data))
    assert found.metadata.num_rows == 500_000 and found.metadata.metadata[b"finale.drift"] == b"1"
    assert found.read(["cause"])["cause"].null_count == 495_000
