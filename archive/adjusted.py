"""Sealed standings with some players' points changed, in board order again: what a correction is computed from.

The sealed files never change. A correction after voided matches says, player by player, what is right instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archive.parts import standings_schema
from leaderboard.board import Board
from leaderboard.codec import codec_for
from leaderboard.ranking import Ranker
from leaderboard.season import Bounds

_SCORED = pa.schema(
    [pa.field("player_id", pa.binary(), nullable=False), pa.field("score", pa.float64(), nullable=False)]
)


def changes_schema(binary: bool) -> Any:
    """Return the columns of changes: without points, a player is not on the board any more."""
    return pa.schema(
        [
            pa.field("player_id", pa.binary() if binary else pa.string(), nullable=False),
            pa.field("points", pa.int64(), nullable=True),
            pa.field("reached_at", pa.timestamp("us", tz="UTC"), nullable=True),
        ]
    )


def adjusted(batches: Iterable[Any], changes: Any, board: Board, bounds: Bounds) -> Iterator[Any]:
    """Yield standings that come in board order, with ``changes`` made: in board order, with new positions and ranks.

    ``changes`` is a table of ``changes_schema``. Players who are not in the standings come in. Memory holds a batch and
    the changes. Raises InputError for points that the board's scores cannot hold.
    """
    schema = standings_schema(board.member == "binary", board.points == "fraction")
    ids = changes["player_id"].cast(pa.binary()).combine_chunks()
    moved = _moved(changes, board, bounds)
    ranker = Ranker(shared=board.ties.by != "member")
    at = 0
    for batch in batches:
        mask = pc.is_in(batch.column("player_id").cast(pa.binary()), value_set=ids)
        kept = _scored(batch.filter(pc.invert(mask)))
        if not kept.num_rows:
            continue
        last = kept.slice(kept.num_rows - 1)
        upto = at
        while upto < moved.num_rows and _before(moved.slice(upto, 1), last, board):
            upto += 1
        if upto > at:
            kept = _sorted(pa.concat_tables([kept, moved.slice(at, upto - at)]), board)
            at = upto
        yield _rows(kept, ranker, board, bounds, schema)
    if at < moved.num_rows:
        yield _rows(moved.slice(at), ranker, board, bounds, schema)


def _moved(changes: Any, board: Board, bounds: Bounds) -> Any:
    """Return the players who are still on the board with their new scores, in board order."""
    staying = changes.filter(pc.is_valid(changes["points"]))
    points = staying["points"].to_numpy()
    times = pc.fill_null(staying["reached_at"].cast(pa.int64()), 0).to_numpy()
    scores = codec_for(board, bounds).encode_array(points, times) if len(points) else np.empty(0)
    return _sorted(_scored({"player_id": staying["player_id"], "score": pa.array(scores, pa.float64())}), board)


def _scored(rows: Any) -> Any:
    """Return players with their scores in one schema, wherever they are from: tables of two cannot be put together."""
    return pa.table([rows["player_id"].cast(pa.binary()), rows["score"]], schema=_SCORED)


def _sorted(rows: Any, board: Board) -> Any:
    way = "descending" if board.descending else "ascending"
    return rows.take(pc.sort_indices(rows, sort_keys=[("score", way), ("player_id", way)])).combine_chunks()


def _before(one: Any, other: Any, board: Board) -> bool:
    first, second = ((rows["score"][0].as_py(), rows["player_id"][0].as_py()) for rows in (one, other))
    return bool(first > second if board.descending else first < second)


def _rows(kept: Any, ranker: Ranker, board: Board, bounds: Bounds, schema: Any) -> Any:
    scores = kept["score"].to_numpy()
    positions, ranks = ranker.add(scores)
    points, reached_at = codec_for(board, bounds).decode_array(scores)
    times = pa.nulls(scores.size, pa.int64()) if reached_at is None else pa.array(reached_at)
    columns = [
        pa.array(positions),
        pa.array(ranks),
        kept["player_id"].combine_chunks().cast(schema.field("player_id").type),
        pa.array(points),
        times.cast(schema.field("reached_at").type),
        pa.array(scores),
    ]
    return pa.record_batch(columns, schema=schema)
