"""What is known of each row of the standings before anything is granted: a few bytes a player, in board order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from leaderboard.errors import FinaleError, InputError
from rewards.facts import Facts
from rewards.rule import span
from rewards.table import RewardTable

_MOST_LEAGUES = 1_000
_MEMORY = "256MB"  # of a join of players with facts; what is more goes to disk
Interval = tuple[int, int]  #: positions, both inclusive; empty if the first is greater


@dataclass(frozen=True, slots=True)
class Marks:
    """One entry a row, the row of position p at p - 1.

    ``starts``: whether the row is the first of those with its rank. ``gone``: not eligible, or excluded; None if nobody
    is. ``league``: 0 for none, else one more than the place in ``leagues``; None without leagues. ``previous``: bit i
    is set if the i-th of the table's ranges of previous ranks holds the player's; None without. ``points``: for each
    rule that asks for points, the positions that have them. ``absent``: the rows of the fact ``excluded`` whose player
    is not on the board, in their order; None without that fact.
    """

    starts: NDArray[np.bool_]
    gone: NDArray[np.bool_] | None
    league: NDArray[np.uint16] | None
    leagues: tuple[str, ...]
    previous: NDArray[np.uint8] | None
    points: dict[str, Interval]
    absent: pa.Table | None = None

    @property
    def rows(self) -> int:
        return self.starts.size


def previous_ranges(table: RewardTable) -> list[str]:
    """Return the table's different ranges of previous ranks, in order."""
    return list(dict.fromkeys(rule.previous for rule in table.rule if rule.previous is not None))


def mark(batches: Iterable[pa.RecordBatch], table: RewardTable, facts: Facts) -> Marks:
    """Return the marks of standings that come in board order, read once.

    ``batches`` have ``position``, ``rank``, ``player_id`` and, if the table asks for points, ``points``. Raises
    InputError if facts are missing, there are too many leagues, or the positions are not 1, 2, 3, …
    """
    facts.check(table)
    reading = _Reading(table)
    if not facts.tables:
        for batch in batches:
            reading.add(batch)
        return reading.marks(None, None, (), None, None)
    leagues = _leagues(facts)
    joined = _Joined(table, facts, leagues)
    try:
        joined.read(reading, batches)
        gone, league, previous = joined.found(reading.rows)
        absent = joined.absent()
    finally:
        joined.close()
    return reading.marks(gone, league, leagues, previous, absent)


def _leagues(facts: Facts) -> tuple[str, ...]:
    found = facts.get("leagues")
    if found is None:
        return ()
    names = sorted(found["league"].unique().to_pylist())
    if len(names) > _MOST_LEAGUES:
        raise InputError(
            f"players are in {len(names):,} leagues; at most {_MOST_LEAGUES:,} can be rewarded",
            hint="see that the column league holds the league and not the player",
        )
    return tuple(names)


class _Reading:
    """Folds the standings themselves: where ties begin, whose points are too few, which positions have the points."""

    def __init__(self, table: RewardTable) -> None:
        self._table = table
        self._starts: list[NDArray[np.bool_]] = []
        self._few: list[NDArray[np.bool_]] = []
        self._points: dict[str, Interval] = {
            rule.name: (1, 0) for rule in table.rule if rule.at_least is not None or rule.at_most is not None
        }
        self._least = table.eligible.min_points if table.eligible else None
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        positions, ranks = (batch.column(name).to_numpy() for name in ("position", "rank"))
        if positions.size and (positions[0] != self.rows + 1 or positions[-1] != self.rows + positions.size):
            raise InputError(f"the standings are not in board order: position {positions[0]:,} after {self.rows:,}")
        self.rows += positions.size
        self._starts.append(positions == ranks)
        if self._points or self._least is not None:
            self._add_points(positions, batch.column("points").to_numpy())

    def _add_points(self, positions: NDArray[np.int64], points: NDArray[Any]) -> None:
        if self._least is not None:
            self._few.append(points < self._least)
        for rule in self._table.rule:
            if rule.name not in self._points or not positions.size:
                continue
            has = np.ones(points.size, bool)
            if rule.at_least is not None:
                has &= points >= rule.at_least
            if rule.at_most is not None:
                has &= points <= rule.at_most
            if has.any():
                # Points never rise again along a board, so those who have enough stand together.
                known, _ = self._points[rule.name]
                first = int(positions[has.argmax()]) if self._points[rule.name] == (1, 0) else known
                self._points[rule.name] = (first, int(positions[-1 - has[::-1].argmax()]))

    def marks(
        self,
        gone: NDArray[np.bool_] | None,
        league: NDArray[np.uint16] | None,
        leagues: tuple[str, ...],
        previous: NDArray[np.uint8] | None,
        absent: pa.Table | None,
    ) -> Marks:
        if self._few:
            few = np.concatenate(self._few)
            gone = few if gone is None else gone | few
        starts = np.concatenate(self._starts) if self._starts else np.empty(0, bool)
        return Marks(starts, gone, league, leagues, previous, dict(self._points), absent)


_JOIN = """
select s.position,
       ({gone}) as gone,
       {league} as league,
       ({previous})::utinyint as previous,
       case when s.listed then s.player_id end as excluded
from (select *, {listed} as listed from standings) s {joins}
"""


class _Joined:
    """Joins the standings with all facts at once, as they are read, in DuckDB, which spills what is too much."""

    def __init__(self, table: RewardTable, facts: Facts, leagues: tuple[str, ...]) -> None:
        import duckdb

        self._table, self._facts, self._leagues = table, facts, leagues
        self._folder = TemporaryDirectory(prefix="finale-facts-")
        self._connection = duckdb.connect(
            config={
                "memory_limit": _MEMORY,
                "preserve_insertion_order": "false",
                "temp_directory": self._folder.name,
            }
        )
        self._gone = np.zeros(0, bool)
        self._league = np.zeros(0, np.uint16)
        self._previous = np.zeros(0, np.uint8)
        self._counted = 0
        self._excluded: list[pa.Array] = []  # ids of excluded players who are on the board
        for name, known in facts.tables.items():
            self._connection.register(name, known.set_column(0, "player_id", known["player_id"].cast(pa.binary())))
        if leagues:
            numbers = pa.array(range(1, len(leagues) + 1), pa.uint16())
            self._connection.register("numbers", pa.table({"league": pa.array(leagues), "number": numbers}))

    def close(self) -> None:
        self._connection.close()
        self._folder.cleanup()

    def read(self, reading: _Reading, batches: Iterable[pa.RecordBatch]) -> None:
        failed: list[BaseException] = []
        kind = pa.schema([("position", pa.int64()), ("player_id", pa.binary())])

        def rows() -> Iterator[pa.RecordBatch]:
            try:
                for batch in batches:
                    reading.add(batch)
                    columns = [batch.column("position"), batch.column("player_id").cast(pa.binary())]
                    yield pa.record_batch(columns, schema=kind)
            except BaseException as error:  # DuckDB would tell its text only
                failed.append(error)
                raise

        self._connection.register("standings", pa.RecordBatchReader.from_batches(kind, rows()))
        try:
            for part in self._connection.sql(self._query()).to_arrow_reader(65_536):
                self._note(part, reading.rows)
        except Exception as error:
            if failed:
                raise failed[0] from None
            raise FinaleError("players could not be joined with the facts about them", detail=str(error)) from error

    def _query(self) -> str:
        known = self._facts.tables
        table = self._table
        gone = []
        if "excluded" in known:
            gone.append("s.listed")
        if "eligible" in known and table.eligible is not None and table.eligible.given:
            gone.append("s.player_id not in (select player_id from eligible)")
        if "matches" in known and table.eligible is not None and table.eligible.min_matches is not None:
            enough = f"select player_id from matches where matches >= {table.eligible.min_matches:d}"  # noqa: S608 - a number
            gone.append(f"s.player_id not in ({enough})")
        joins = ""
        if self._leagues:
            joins += " left join leagues l on l.player_id = s.player_id left join numbers n on n.league = l.league"
        bits = []
        for bit, places in enumerate(previous_ranges(table)):
            first, last = span(places)
            within = f"p.rank >= {first}" + (f" and p.rank <= {last}" if last is not None else "")
            bits.append(f"case when {within} then {1 << bit} else 0 end")
        if bits:
            joins += " left join previous p on p.player_id = s.player_id"
        return _JOIN.format(
            listed="player_id in (select player_id from excluded)" if "excluded" in known else "false",
            gone=" or ".join(gone) or "false",
            league="coalesce(n.number, 0)::usmallint" if self._leagues else "0::usmallint",
            previous=" + ".join(bits) or "0",
            joins=joins,
        )

    def _note(self, part: pa.RecordBatch, rows: int) -> None:
        """Put the joined rows, which come in any order, where their positions are; ``rows`` were read so far."""
        if rows > self._gone.size:
            more = max(rows, 2 * self._gone.size)
            for name in ("_gone", "_league", "_previous"):
                known = getattr(self, name)
                grown = np.zeros(more, known.dtype)
                grown[: known.size] = known
                setattr(self, name, grown)
        at = part.column("position").to_numpy() - 1
        self._gone[at] = part.column("gone").to_numpy(zero_copy_only=False)
        self._league[at] = part.column("league").to_numpy()
        self._previous[at] = part.column("previous").to_numpy()
        self._counted += at.size
        if len(excluded := part.column("excluded").drop_null()):
            self._excluded.append(excluded)

    def found(self, rows: int) -> tuple[NDArray[np.bool_] | None, NDArray[np.uint16] | None, NDArray[np.uint8] | None]:
        """Return who is gone, leagues and previous ranks of ``rows`` rows, as ``Marks`` has them."""
        if self._counted != rows:
            raise InputError(
                "the facts tell of a player twice", detail=f"{self._counted:,} rows came of {rows:,} players"
            )
        return (
            self._gone[:rows] if self._gone[:rows].any() else None,
            self._league[:rows] if self._leagues else None,
            self._previous[:rows] if previous_ranges(self._table) else None,
        )

    def absent(self) -> pa.Table | None:
        """Return which excluded players were on no row, as ``Marks`` has them."""
        known = self._facts.get("excluded")
        if known is None:
            return None
        there = pa.chunked_array(self._excluded, pa.binary()).combine_chunks()
        return known.filter(pc.invert(pc.is_in(known["player_id"].cast(pa.binary()), value_set=there)))
