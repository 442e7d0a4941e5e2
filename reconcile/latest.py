"""Rows of a board that is being played: each player as last seen, kept so that they can be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from leaderboard.errors import FinaleError
from reconcile.compare import SIDE, Rule, narrow, room, settings_of
from reconcile.failures import kept, raised

_ROWS = 50_000
_SEEN = SIDE.append(pa.field("batch", pa.int64()))
_LATEST = """
create temp table latest as
select player_id, max_by(points, batch) as points, max_by(reached_at, batch) as reached_at from seen group by player_id
"""


@contextmanager
def latest(batches: Iterable[pa.RecordBatch], rule: Rule) -> Iterator[Callable[[], Iterator[pa.RecordBatch]]]:
    """Read all ``batches``, and yield what gives each player once, as the last batch has her, as often as it is asked.

    What is more than the rule's memory goes to its folder. Raises what reading the batches raises.
    """
    failures: list[FinaleError] = []
    with duckdb.connect(config=settings_of(rule)) as connection:
        seen = _numbered(kept(batches, failures))
        connection.register("seen", pa.RecordBatchReader.from_batches(_SEEN, seen))
        with room(rule), raised(failures):
            connection.execute(_LATEST)

        def rows() -> Iterator[pa.RecordBatch]:
            found: Any = connection.sql("select * from latest")
            yield from found.to_arrow_reader(_ROWS)

        yield rows


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number, batch in enumerate(batches):
        columns = [*narrow(batch).columns, pa.array([number] * batch.num_rows, pa.int64())]
        yield pa.RecordBatch.from_arrays(columns, schema=_SEEN)
