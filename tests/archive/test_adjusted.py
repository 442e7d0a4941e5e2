"""Standings with some players' points changed: what sorting everything anew would give, in any batches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archive.adjusted import adjusted, changes_schema
from archive.parts import standings_schema
from leaderboard.board import Board
from leaderboard.codec import codec_for, to_microseconds
from leaderboard.season import Bounds

START = datetime(2026, 1, 1, tzinfo=UTC)
BOUNDS = Bounds(START, START + timedelta(days=30), "s1")
PLAYER = st.sampled_from([f"p{number}" for number in range(12)])
HELD = st.tuples(st.integers(0, 4), st.integers(0, 3))  # points, minutes
#: As sealed parts have them: never null.
SEALED = pa.schema([standings_schema().field(name) for name in ("player_id", "score")])
BOARDS = [
    {"order": order, "ties": ties} for order in ("high", "low") for ties in ("shared", "member", "first_to_reach")
]


def made(board: Board, held: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    """Sort everything in plain Python."""
    codec = codec_for(board, BOUNDS)
    rows = []
    for player, (points, minutes) in held.items():
        score = codec.encode(points, to_microseconds(START + timedelta(minutes=minutes)))
        rows.append({"player_id": player, "points": points, "score": score})
    rows.sort(key=lambda row: (row["score"], row["player_id"].encode()), reverse=board.descending)
    for position, row in enumerate(rows, 1):
        tied = position > 1 and board.ties.by != "member" and rows[position - 2]["score"] == row["score"]
        row |= {"position": position, "rank": rows[position - 2]["rank"] if tied else position}
    return rows


@settings(max_examples=80, deadline=None)
@given(
    board=st.sampled_from(BOARDS),
    held=st.dictionaries(PLAYER, HELD),
    changed=st.dictionaries(PLAYER, st.none() | HELD),
    size=st.integers(1, 5),
)
def test_as_if_everything_were_sorted_anew(
    board: dict[str, str], held: dict[str, Any], changed: dict[str, Any], size: int
) -> None:
    """I10: moved up, down, out or in: rows, positions and ranks are those of the board that is right."""
    kind = Board.model_validate({"name": "cup", "calendar": {"every": "month"}, **board})
    table = pa.Table.from_pylist(made(kind, held), SEALED)
    changes = pa.Table.from_pylist(
        [
            {
                "player_id": player,
                "points": None if now is None else now[0],
                "reached_at": None if now is None else START + timedelta(minutes=now[1]),
            }
            for player, now in changed.items()
        ],
        changes_schema(False),
    )
    batches = table.to_batches(max_chunksize=size)
    found = [row for batch in adjusted(batches, changes, kind, BOUNDS) for row in batch.to_pylist()]
    right = {player: now for player, now in (held | changed).items() if now is not None}
    names = ("player_id", "points", "score", "position", "rank")
    assert [{name: row[name] for name in names} for row in found] == [
        {name: row[name] for name in names} for row in made(kind, right)
    ]


@pytest.mark.parametrize("points", [2**53, -1])
def test_points_that_no_score_can_hold_are_refused(points: int) -> None:
    """They would be rounded, or not be told apart."""
    kind = Board.model_validate({"name": "cup", "calendar": {"every": "month"}})
    row = {"player_id": "p", "points": points, "reached_at": START}
    with pytest.raises(Exception, match="cannot be told apart exactly"):
        list(adjusted([], pa.Table.from_pylist([row], changes_schema(False)), kind, BOUNDS))
