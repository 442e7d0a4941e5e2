"""Staged standings against the ledger's totals, every player, in one join with bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import duckdb
import pyarrow as pa

from leaderboard.errors import FinaleError

SHOWN = 20  #: players named in a report of this size; all are counted
_STANDINGS = pa.schema([("player_id", pa.binary()), ("points", pa.int64()), ("reached_at", pa.int64())])
_CLASSES = ("only_redis", "only_ledger", "points_differ", "reached_at_differs")

# A match is looked for, not a NULL: `is distinct from` tells a missing row from a missing value. The times are compared
# at the codec's unit, floored from the season's start as the score has them.
_JOIN = """
create temp table joined as
select s.player_id as redis_player, l.player_id as ledger_player,
       s.points as redis_points, l.points as ledger_points,
       s.reached_at as redis_reached_at, l.reached_at as ledger_reached_at,
       case when l.player_id is null then 'only_redis'
            when s.player_id is null then 'only_ledger'
            when s.points is distinct from l.points then 'points_differ'
            when $compare_times and s.reached_at is distinct from l.reached_at then 'reached_at_differs'
       end as class
from standings s full outer join ledger l on s.player_id = l.player_id
"""
_FLOORED = """
select player_id, points,
       ($epoch + ((epoch_us(reached_at) - $epoch) // $unit) * $unit)::bigint as reached_at
from totals
"""


@dataclass(frozen=True, slots=True)
class Drift:
    """One player whose snapshot and ledger differ; None where the player is missing. Times in microseconds."""

    kind: str
    player_id: bytes
    redis_points: int | None
    ledger_points: int | None
    redis_reached_at: int | None
    ledger_reached_at: int | None

    def __str__(self) -> str:
        name = self.player_id.decode(errors="backslashreplace")
        if self.kind == "reached_at_differs":
            return f"{name}: {self.redis_points} points, reached at another time"
        here = "missing" if self.redis_points is None else self.redis_points
        there = "missing" if self.ledger_points is None else self.ledger_points
        return f"{name}: Redis {here}, ledger {there}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Counts of every class, and the sums of both sides; the classes add up to both totals."""

    equal: int
    only_redis: int
    only_ledger: int
    points_differ: int
    reached_at_differs: int
    redis_points: int
    ledger_points: int
    examples: tuple[Drift, ...]

    @property
    def drift(self) -> int:
        """How many players differ in any way."""
        return self.only_redis + self.only_ledger + self.points_differ + self.reached_at_differs

    @property
    def players_in_redis(self) -> int:
        return self.equal + self.only_redis + self.points_differ + self.reached_at_differs

    @property
    def players_in_ledger(self) -> int:
        return self.equal + self.only_ledger + self.points_differ + self.reached_at_differs

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as plain JSON values, as the seal keeps it."""
        values = asdict(self)
        del values["examples"]
        return {**values, "drift": self.drift, "compared": "every player"}

    def report(self) -> dict[str, Any]:
        """Return counts and the first drifting players, as a report file holds them."""
        return {
            **self.to_json(),
            "players": [
                {**asdict(drift), "player_id": drift.player_id.decode(errors="backslashreplace")}
                for drift in self.examples
            ],
        }


@dataclass(frozen=True, slots=True)
class Unit:
    """How times are floored before they are compared: microseconds of the season's start, and of the unit."""

    epoch: int
    size: int


def compare(standings: Iterable[pa.RecordBatch], totals: pa.RecordBatchReader, unit: Unit | None) -> Comparison:
    """Compare ``standings`` (columns player_id, points, reached_at) with the ledger's ``totals`` (the same columns).

    ``unit`` is None on boards whose scores know no time; times are then not compared. Whole numbers, no tolerance.
    Raises what reading either of them raises.
    """
    failures: list[FinaleError] = []
    try:
        return _compared(_kept(standings, failures), _kept_reader(totals, failures), unit)
    except duckdb.Error:
        if failures:
            raise failures[0] from None
        raise


def _kept(batches: Iterable[pa.RecordBatch], failures: list[FinaleError]) -> Iterator[pa.RecordBatch]:
    """Yield the batches; keep what reading them raises: DuckDB, which asks for them, makes it an error of its own."""
    try:
        yield from batches
    except FinaleError as error:
        failures.append(error)
        raise


def _kept_reader(totals: pa.RecordBatchReader, failures: list[FinaleError]) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(totals.schema, _kept(totals, failures))


def _compared(standings: Iterator[pa.RecordBatch], totals: pa.RecordBatchReader, unit: Unit | None) -> Comparison:
    with duckdb.connect() as connection:
        connection.register("totals", totals)
        connection.execute("set threads = 2; set preserve_insertion_order = false")
        size = unit or Unit(0, 1)
        connection.execute(f"create temp table ledger as {_FLOORED}", {"epoch": size.epoch, "unit": size.size})
        connection.register("standings", pa.RecordBatchReader.from_batches(_STANDINGS, _narrow(standings)))
        connection.execute(_JOIN, {"compare_times": unit is not None})
        counts = dict(connection.execute("select coalesce(class, 'equal'), count(*) from joined group by 1").fetchall())
        sums = connection.execute(
            "select sum(redis_points::hugeint), sum(ledger_points::hugeint) from joined"
        ).fetchone()
        examples = connection.execute(
            "select class, coalesce(redis_player, ledger_player), redis_points, ledger_points, redis_reached_at,"
            " ledger_reached_at from joined where class is not null"
            " order by greatest(redis_points, ledger_points) desc, 2 limit $shown",
            {"shown": SHOWN},
        ).fetchall()
    redis_points, ledger_points = sums or (None, None)
    return Comparison(
        equal=counts.get("equal", 0),
        **{name: counts.get(name, 0) for name in _CLASSES},
        redis_points=int(redis_points or 0),
        ledger_points=int(ledger_points or 0),
        examples=tuple(Drift(row[0], bytes(row[1]), *row[2:]) for row in examples),
    )


def _narrow(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = [
            batch.column("player_id").cast(pa.binary()),
            batch.column("points"),
            batch.column("reached_at").cast(pa.int64()),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=_STANDINGS)
