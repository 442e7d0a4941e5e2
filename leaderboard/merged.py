"""The first positions of several boards together, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import merge
from itertools import islice

from leaderboard.board import Board
from leaderboard.standing import Standing


def top(boards: Iterable[Sequence[Standing]], board: Board, k: int) -> list[Standing]:
    """Return the first ``k`` rows of all ``boards`` together, each given by its own first ``k`` rows in board order.

    Exact, since whoever is among the first ``k`` of all is among the first ``k`` of his own. ``board`` is any of them:
    they have one order, one rule for ties and seasons that begin together, so their scores compare. A player who is on
    several boards has a row for each.
    """
    ordered: Iterable[Standing]
    if board.descending:
        ordered = merge(*boards, key=lambda row: (row.score, row.player_id), reverse=True)
    else:
        ordered = merge(*boards, key=lambda row: (row.score, row.player_id))
    rows: list[Standing] = []
    for position, row in enumerate(islice(ordered, k), 1):
        shares = board.ties.by != "member" and rows and rows[-1].score == row.score
        rank = rows[-1].rank if shares else position
        rows.append(Standing(position, rank, row.player_id, row.points, row.reached_at, row.score))
    return rows
