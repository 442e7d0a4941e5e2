"""Comparing by buckets: counts and checksums on both sides first, rows only of the buckets that differ.

For a ledger that is far away or huge. The checksums are those of ``ledger.bucketed``, which says how they are made;
equal ones stand for equal rows as surely as 64 bits of SHA-256 a row do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Protocol

import duckdb
import numpy as np
import pyarrow as pa

from leaderboard.errors import FinaleError
from reconcile.compare import Compared, Rule, compared, narrow, room, settings_of
from reconcile.failures import kept, raised

_SINCE_2000 = 946_684_800_000_000  #: microseconds from 1970 to 2000
_HASHED = pa.schema(
    [("player_id", pa.binary()), ("points", pa.int64()), ("reached_at", pa.int64()), ("tail", pa.binary())]
)
_BUCKET = "('0x' || substr(sha256(player_id), 1, 4))::int"
_TALLY = f"""
select {_BUCKET} as bucket, count(*) as players, coalesce(sum(points::hugeint), 0)::varchar as points,
       sum(('0x' || substr(sha256(player_id || tail), 1, 16))::ubigint::hugeint)::varchar as checksum
from side group by 1
"""  # noqa: S608 - no value in it
#: Of a bucket: how many players, the sum of their points, and the sum of their checksums modulo 2^64.
Tally = tuple[int, int, int]


class Bucketed(Protocol):
    """A ledger that gives counts and checksums of buckets, and the rows of some, all of one state."""

    def tallies(self) -> pa.Table: ...
    def rows(self, buckets: Sequence[int], /) -> AbstractContextManager[Iterable[pa.RecordBatch]]: ...


@contextmanager
def compared_by_buckets(
    standings: Callable[[], Iterable[pa.RecordBatch]], ledger: Bucketed, rule: Rule | None = None
) -> Iterator[Compared]:
    """Compare as ``compared`` does, with the same result; ``standings`` are read twice.

    Raises what reading either side raises, and RepeatedPlayersError.
    """
    rule = rule or Rule()
    theirs = _by_bucket(ledger.tallies())
    failures: list[FinaleError] = []
    # Rows must come out in the order in which they went in.
    settings = {**settings_of(rule), "preserve_insertion_order": True}
    with duckdb.connect(config=settings) as connection, room(rule), raised(failures):
        mine = _by_bucket(_tallied(connection, kept(standings(), failures), rule))
        differ = {bucket for bucket in mine.keys() | theirs.keys() if mine.get(bucket) != theirs.get(bucket)}
        chosen = _chosen(connection, kept(standings(), failures), differ)
        with ledger.rows(sorted(differ)) as rows, compared(chosen, rows, rule) as found:
            alike = [tally for bucket, tally in mine.items() if bucket not in differ]
            counts = found.counts
            found.counts = replace(
                counts,
                equal=counts.equal + sum(players for players, _, _ in alike),
                redis_points=counts.redis_points + sum(points for _, points, _ in alike),
                ledger_points=counts.ledger_points + sum(points for _, points, _ in alike),
            )
            yield found


def _by_bucket(table: pa.Table) -> dict[int, Tally]:
    return {
        row["bucket"]: (row["players"], int(row["points"] or 0), int(row["checksum"] or 0) % 2**64)
        for row in table.to_pylist()
    }


def _tallied(connection: duckdb.DuckDBPyConnection, batches: Iterable[pa.RecordBatch], rule: Rule) -> pa.Table:
    hashed = (_with_tail(narrow(batch), rule) for batch in batches)
    connection.register("side", pa.RecordBatchReader.from_batches(_HASHED, hashed))
    try:
        found: Any = connection.sql(_TALLY)
        return found.to_arrow_table()
    finally:
        connection.unregister("side")


def _with_tail(batch: pa.RecordBatch, rule: Rule) -> pa.RecordBatch:
    """Return the rows with what follows the id in their checksums: points, and the time where it is compared."""
    points, times = (batch.column(name) for name in ("points", "reached_at"))
    numbers = [points.fill_null(0).to_numpy(zero_copy_only=False)]
    if rule.unit is not None:
        numbers.append(times.fill_null(0).to_numpy(zero_copy_only=False) - _SINCE_2000)
    data = np.stack(numbers, axis=1).astype(">i8").tobytes()
    width = 8 * len(numbers)
    offsets = np.arange(0, len(data) + 1, width, dtype=np.int32)
    tail = pa.Array.from_buffers(pa.binary(), batch.num_rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return pa.RecordBatch.from_arrays([*batch.columns, tail], schema=_HASHED)


def _chosen(
    connection: duckdb.DuckDBPyConnection, batches: Iterable[pa.RecordBatch], buckets: Collection[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these buckets."""
    if not buckets:
        return
    wanted = np.zeros(65_536, dtype=bool)
    wanted[list(buckets)] = True
    for batch in batches:
        rows = narrow(batch)
        connection.register("rows_of_batch", pa.Table.from_batches([rows]))
        found: Any = connection.sql(f"select {_BUCKET} as bucket from rows_of_batch")  # noqa: S608 - no value in it
        numbers = found.to_arrow_table()["bucket"].to_numpy()
        yield rows.filter(pa.array(wanted[numbers]))
