"""Drift of a whole board, gathered as it is found, in bounded memory that spills to disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from reconcile.compare import Rule, room, settings_of
from reconcile.drift import SCHEMA, Drift, Found, batch_of, by_points, rows_of

_ROWS = 50_000
_TABLE = """
create table drift (
    turn int, player_id blob, class varchar, redis_points bigint, ledger_points bigint,
    redis_reached_at bigint, ledger_reached_at bigint, redis_rows struct(key varchar, score varchar)[]
)
"""
_TOP = """
select * exclude (turn) from drift
where player_id in (
    select player_id from drift group by player_id
    order by arg_max(coalesce(greatest(redis_points, ledger_points), 0), turn) desc, player_id limit $limit
)
order by player_id, turn
"""


class Gathered(Found):
    """Drifting players, added in any order; of one who is met again, what was found last counts."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, rule: Rule) -> None:
        self._connection, self._rule = connection, rule
        self._turn = 0
        connection.execute(_TABLE)

    def add(self, drift: Sequence[Drift]) -> None:
        """Take more of them, no player twice among these. Raises UnavailableError where there is no room left."""
        if not drift:
            return
        self._turn += 1
        self._connection.register("chunk", pa.Table.from_batches([batch_of(drift)]))
        with room(self._rule):
            self._connection.execute("insert into drift select $turn, * from chunk", {"turn": self._turn})
        self._connection.unregister("chunk")

    def batches(self) -> Iterator[pa.RecordBatch]:
        with room(self._rule):
            found: Any = self._connection.sql("select * exclude (turn) from drift order by player_id, turn")
            yield from _last_of_each(batch.cast(SCHEMA) for batch in found.to_arrow_reader(_ROWS))

    def rows(self, limit: int) -> list[Drift]:
        with room(self._rule):
            found: Any = self._connection.sql(_TOP, params={"limit": limit}).to_arrow_table()
        last = _last_of_each(found.cast(SCHEMA).to_batches())
        return sorted(rows_of(last), key=by_points)


@contextmanager
def gathering(rule: Rule) -> Iterator[Gathered]:
    """Yield what takes drift, within the rule's memory and folder; it can be read until the block ends."""
    with duckdb.connect(config=settings_of(rule)) as connection:
        yield Gathered(connection, rule)


def _last_of_each(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows without those that another of the same player follows."""
    waiting: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        ids = batch.column("player_id")
        if waiting is not None and waiting.column("player_id")[0] != ids[0]:
            yield waiting
        last = batch.num_rows - 1
        yield batch.slice(0, last).filter(pc.not_equal(ids.slice(0, last), ids.slice(1)))
        waiting = batch.slice(last)
    if waiting is not None:
        yield waiting
