"""Standings against the ledger's totals, every player, in one join with bounded memory that spills to disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from leaderboard.errors import FinaleError, InputError, UnavailableError
from leaderboard.sums import exact_sum
from reconcile.drift import CLASSES, SCHEMA, Comparison, Drift, Found
from reconcile.failures import kept, raised

SHOWN = 20  #: players named as examples; all are counted, and all stand in the report
MEMORY = "200MB"  #: what the join may hold; the rest goes to its folder. More made ten million players no faster
_ROWS = 50_000
#: What either side is made of.
SIDE = pa.schema([("player_id", pa.binary()), ("points", pa.int64()), ("reached_at", pa.int64())])

# A row is looked for, not a NULL: `is distinct from` tells a missing row from a missing value. Times are compared at
# the codec's unit, floored from the season's start as the score has them. The join builds its table of what stands on
# the right: the standings, which are there at once. The totals are looked up as their server sends them.
_DRIFT = """
create temp table drift as
select coalesce(s.player_id, l.player_id) as player_id,
       case when l.here is null then 'only_redis'
            when s.here is null then 'only_ledger'
            when s.points is distinct from l.points
                then case when abs(s.points::hugeint - l.points) <= $tolerance then 'tolerated' else 'points_differ' end
            else 'reached_at_differs'
       end as class,
       s.points as redis_points, l.points as ledger_points,
       s.reached_at as redis_reached_at, l.reached_at as ledger_reached_at
from (
    select player_id, points, true as here,
           -- Division rounds towards nought here, so what lies before the start is moved by a unit less one.
           $epoch + (reached_at - $epoch - (reached_at < $epoch)::bigint * ($unit - 1)) // $unit * $unit as reached_at
    from totals
) l
full outer join (select *, true as here from standings) s on s.player_id = l.player_id
where s.here is null or l.here is null or s.points is distinct from l.points
   or ($compare_times and s.reached_at is distinct from l.reached_at)
"""


@dataclass(frozen=True, slots=True)
class Unit:
    """How times are floored before they are compared: microseconds of the season's start, and of the unit."""

    epoch: int
    size: int


@dataclass(frozen=True, slots=True)
class Rule:
    """By which rule rows are compared. ``unit`` is None on boards whose scores know no time: times do not count then.

    ``folder`` is where the join may spill, beyond ``memory``; it must exist. None: no more than memory.
    """

    unit: Unit | None = None
    tolerance: int = 0
    folder: Path | None = None
    memory: str = MEMORY


@dataclass
class Compared(Found):
    """What a comparison found; its drift can be read until the block that made it ends."""

    counts: Comparison
    _connection: duckdb.DuckDBPyConnection

    def batches(self) -> Iterator[pa.RecordBatch]:
        found: Any = self._connection.sql("select * from drift where class <> 'tolerated' order by player_id, class")
        for batch in found.to_arrow_reader(_ROWS):
            rows = pa.nulls(batch.num_rows, SCHEMA.field("redis_rows").type)
            yield pa.RecordBatch.from_arrays([*batch.columns, rows], names=SCHEMA.names).cast(SCHEMA)

    def rows(self, limit: int) -> list[Drift]:
        return _examples(self._connection, limit)


@dataclass
class _Side:
    """Counts the rows of one side while the join reads them, exactly, and keeps what reading them raises.

    DuckDB, which asks for them, would make it an error of its own.
    """

    rows: int = 0
    points: int = 0
    null_ids: int = 0
    failures: list[FinaleError] = field(default_factory=list)

    def reader(self, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(SIDE, self._counted(batches))

    def _counted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in kept(batches, self.failures):
            rows = narrow(batch)
            ids, points, _ = rows.columns
            self.rows += rows.num_rows
            self.null_ids += ids.null_count
            self.points += exact_sum((points.fill_null(0) if points.null_count else points).to_numpy())
            yield rows


def compare(
    standings: Iterable[pa.RecordBatch], totals: Iterable[pa.RecordBatch], rule: Rule | None = None
) -> Comparison:
    """Return what ``compared`` finds, without its drift but for the examples."""
    with compared(standings, totals, rule) as found:
        return found.counts


@contextmanager
def compared(
    standings: Iterable[pa.RecordBatch], totals: Iterable[pa.RecordBatch], rule: Rule | None = None
) -> Iterator[Compared]:
    """Compare ``standings`` with the ledger's ``totals``, each of columns player_id, points and reached_at.

    Whole numbers; differences up to the rule's tolerance are counted as tolerated. Raises what reading either of them
    raises, and RepeatedPlayersError if one side has a player twice.
    """
    rule = rule or Rule()
    mine, theirs = _Side(), _Side()
    with duckdb.connect(config=settings_of(rule)) as connection:
        connection.register("standings", mine.reader(standings))
        connection.register("totals", theirs.reader(totals))
        unit = rule.unit or Unit(0, 1)
        values = {"compare_times": rule.unit is not None, "tolerance": rule.tolerance}
        with room(rule), raised(mine.failures, theirs.failures):
            connection.execute(_DRIFT, {**values, "epoch": unit.epoch, "unit": unit.size})
        yield Compared(_counts(connection, mine, theirs), connection)


class RepeatedPlayersError(InputError):
    """One side has a player more than once, so the classes do not add up to both totals."""


@contextmanager
def room(rule: Rule) -> Iterator[None]:
    """Raise UnavailableError where DuckDB has used up what the rule lets it have."""
    try:
        yield
    except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
        allowed = f"allowed: {rule.memory}, and {rule.folder or 'no folder'} to spill to"
        raise UnavailableError(
            "there is not enough room to compare every player",
            detail=f"{str(error).splitlines()[0]}; {allowed}",
            hint="free space there, then run the command again",
        ) from error


def settings_of(rule: Rule) -> dict[str, Any]:
    """Return the settings of a DuckDB that keeps to the rule's memory and folder."""
    spills = {"temp_directory": str(rule.folder)} if rule.folder else {"temp_directory": ""}
    return {"memory_limit": rule.memory, "threads": 2, "preserve_insertion_order": False, **spills}


def _counts(connection: duckdb.DuckDBPyConnection, mine: _Side, theirs: _Side) -> Comparison:
    found = dict(connection.execute("select class, count(*) from drift group by class").fetchall())
    both = found.get("points_differ", 0) + found.get("reached_at_differs", 0) + found.get("tolerated", 0)
    equal = mine.rows - both - found.get("only_redis", 0)
    equal_there = theirs.rows - both - found.get("only_ledger", 0)
    if equal != equal_there:
        raise RepeatedPlayersError(
            "a player stands more than once in the standings or in the ledger's totals",
            detail=f"{mine.rows:,} standings and {theirs.rows:,} totals leave {equal:,} and {equal_there:,} equal",
        )
    return Comparison(
        equal=equal,
        tolerated=found.get("tolerated", 0),
        **{name: found.get(name, 0) for name in CLASSES},
        redis_points=mine.points,
        ledger_points=theirs.points,
        null_ids=mine.null_ids + theirs.null_ids,
        examples=tuple(_examples(connection, SHOWN)),
    )


def _examples(connection: duckdb.DuckDBPyConnection, limit: int) -> list[Drift]:
    rows = connection.execute(
        "select class, player_id, redis_points, ledger_points, redis_reached_at, ledger_reached_at"
        " from drift where class <> 'tolerated'"
        " order by greatest(redis_points, ledger_points) desc, player_id limit $limit",
        {"limit": limit},
    ).fetchall()
    return [Drift(row[0], None if row[1] is None else bytes(row[1]), *row[2:]) for row in rows]


def narrow(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the three columns that are compared: bytes, int64 and microseconds."""
    columns = [
        batch.column("player_id").cast(pa.binary()),
        batch.column("points"),
        batch.column("reached_at").cast(pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SIDE)
