"""The first positions of several boards together, against sorting everything."""

from __future__ import annotations

from random import Random

import pytest

from leaderboard import merged
from leaderboard.board import Board
from leaderboard.standing import Standing


def _ranked(rows: list[tuple[float, bytes]], board: Board) -> list[Standing]:
    ordered = sorted(rows, reverse=board.descending)
    found: list[Standing] = []
    for position, (score, player) in enumerate(ordered, 1):
        better = sum((other > score) if board.descending else (other < score) for other, _ in rows)
        rank = position if board.ties.by == "member" else better + 1
        found.append(Standing(position, rank, player, int(score), None, score))
    return found


@pytest.mark.parametrize("order", ["high", "low"])
@pytest.mark.parametrize("ties", ["shared", "member"])
def test_top_of_several_boards_equals_sorting_them_all(order: str, ties: str) -> None:
    """Exact for every order and rule of ties, boards of any length, ranks and positions among them."""
    chance = Random(7)
    board = Board.model_validate({"name": "b", "calendar": {"every": "year"}, "order": order, "ties": ties})
    for _ in range(300):
        k = chance.randint(0, 12)
        boards = [
            [(float(chance.randint(-2, 4)), b"p%d" % (10 * n + segment)) for n in range(chance.randint(0, 9))]
            for segment in range(chance.randint(1, 4))
        ]
        expected = _ranked([row for rows in boards for row in rows], board)[:k]
        assert merged.top([_ranked(rows, board)[:k] for rows in boards], board, k) == expected
