"""Grants computed from standings: pure, streaming, the same whatever the size of the batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rewards.ids import GrantIds, line_key
from rewards.plan import Plan
from rewards.split import Paid

_THREADS = 2  # which hash ids; hashing, taking and joining release the interpreter's lock
_SLICE = 65_536  # rows taken at a time, so that memory stays flat however large the batches are


def grants_schema(binary: bool) -> pa.Schema:
    """Return the columns of grants, none of them null; ``player_id`` is binary on boards with ``member = "binary"``."""
    columns = (
        ("grant_id", pa.string()),
        ("player_id", pa.binary() if binary else pa.string()),
        ("rule", pa.string()),
        ("item", pa.string()),
        ("amount", pa.int64()),
        ("position", pa.int64()),
        ("rank", pa.int64()),
    )
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns])


GRANTS_SCHEMA = grants_schema(binary=False)


def grants(batches: Iterable[pa.RecordBatch], plan: Plan, board: str, season: str) -> Iterator[pa.RecordBatch]:
    """Yield the grants that ``plan`` makes of the standings it was made from, in columns ``grants_schema``.

    ``batches`` come in board order and have the columns ``position int64``, ``rank int64`` and ``player_id`` (string
    or binary), and any others. The grants are ordered by position, then by rule, then by item, both as the table has
    them. No batch is empty; a player's grants are never split over two. ``position`` and ``rank`` are those of the
    standings, whoever has moved up.
    """
    cells = _Cells.of(plan, board, season)
    slices = (batch.slice(start, _SLICE) for batch in batches for start in range(0, batch.num_rows, _SLICE))
    with GrantIds(cells.keys) as ids, ThreadPoolExecutor(_THREADS, thread_name_prefix="finale-grants") as pool:
        under_way: deque[Future[pa.RecordBatch]] = deque()
        for each in slices:
            under_way.append(pool.submit(_granted, each, plan, cells, ids))
            if len(under_way) > 2 * _THREADS:
                yield from _if_any(under_way.popleft().result())
        while under_way:
            yield from _if_any(under_way.popleft().result())


def _if_any(granted: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if granted.num_rows:
        yield granted


@dataclass(frozen=True, slots=True)
class _Cells:
    """The plan as arrays. A cell is a stretch of a league with given bits of previous ranks; cell 0 grants nothing.

    ``first_line`` and ``lines`` say which of the ``keys``, ``rules``, ``items`` and ``amounts`` a cell grants; of each
    league, ``stretches`` are the positions at which the next begins, and ``bases`` the cell of its first.
    """

    first_line: NDArray[np.intp]
    lines: NDArray[np.intp]
    keys: list[bytes]
    rules: pa.Array
    items: pa.Array
    amounts: NDArray[np.int64]
    stretches: tuple[NDArray[np.int64], ...]
    bases: tuple[int, ...]
    bits: int

    @classmethod
    def of(cls, plan: Plan, board: str, season: str) -> _Cells:
        paid: list[tuple[Paid, ...]] = [()]
        bases = []
        for stretches in plan.stretches:
            bases.append(len(paid))
            paid += [each.paid[bits] for each in stretches for bits in range(len(each.paid))]
        flat = [one for cell in paid for one in cell]
        counts = [len(cell) for cell in paid]
        return cls(
            first_line=np.cumsum([0, *counts[:-1]]),
            lines=np.array(counts),
            keys=[line_key(board, season, one.rule, one.item) for one in flat],
            rules=pa.array([one.rule for one in flat], pa.string()),
            items=pa.array([one.item for one in flat], pa.string()),
            amounts=np.array([one.amount for one in flat], dtype=np.int64),
            stretches=tuple(np.array([each.first for each in stretches]) for stretches in plan.stretches),
            bases=tuple(bases),
            bits=len(plan.stretches[0][0].paid),
        )


def _cell_of_each(positions: NDArray[np.int64], plan: Plan, cells: _Cells) -> NDArray[np.intp]:
    """Return the cell of each row, given its position."""
    marks, at = plan.marks, positions - 1
    league = None if marks.league is None else marks.league[at]
    cell = np.zeros(positions.size, np.intp)
    for number in (0,) if league is None else np.unique(league).tolist():
        chosen = slice(None) if league is None else league == number
        stretch = np.searchsorted(cells.stretches[number], positions[chosen], side="right") - 1
        cell[chosen] = cells.bases[number] + stretch * cells.bits
    if marks.previous is not None:
        cell += marks.previous[at]
    if marks.gone is not None:
        cell[marks.gone[at]] = 0
    return cell


def _granted(batch: pa.RecordBatch, plan: Plan, cells: _Cells, ids: GrantIds) -> pa.RecordBatch:
    positions, ranks = (batch.column(name).to_numpy() for name in ("position", "rank"))
    cell = _cell_of_each(positions, plan, cells)
    counts = cells.lines[cell]
    rows = np.repeat(np.arange(counts.size), counts)
    within = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
    lines = cells.first_line[cell[rows]] + within
    players = batch.column("player_id").take(pa.array(rows))
    schema = grants_schema(pa.types.is_binary(players.type) or pa.types.is_large_binary(players.type))
    picked = pa.array(lines)
    columns = [
        ids.of(players.cast(pa.binary()), lines),
        players.cast(schema.field("player_id").type),
        cells.rules.take(picked),
        cells.items.take(picked),
        pa.array(cells.amounts[lines]),
        pa.array(positions[rows]),
        pa.array(ranks[rows]),
    ]
    return pa.record_batch(columns, schema=schema)
