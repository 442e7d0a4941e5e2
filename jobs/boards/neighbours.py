"""Why one player stands above another: points, then time, then the rule for ties."""

from __future__ import annotations

from datetime import timedelta

from leaderboard.board import Board
from leaderboard.standing import Standing


def because(board: Board, player: Standing, above: Standing) -> str:
    """Return in words why ``above`` stands before ``player``."""
    if above.points != player.points:
        more = above.points > player.points
        return f"{abs(above.points - player.points):,} {'more' if more else 'fewer'} points"
    if above.reached_at is not None and player.reached_at is not None and above.reached_at != player.reached_at:
        return f"the same points, reached {_length(player.reached_at - above.reached_at)} earlier"
    order = "descending" if board.descending else "ascending"
    if board.ties.by == "member":
        return f"the same points; ties go by the bytes of the ids, {order}"
    unit = f" within the same {board.ties.unit}" if board.packed else ""
    return f"the same points{unit}: both have rank {player.rank:,}; they are listed by the bytes of their ids, {order}"


def _length(length: timedelta) -> str:
    """Return a length in its two largest units."""
    seconds = int(length.total_seconds())
    if seconds < 1:
        return f"{length // timedelta(milliseconds=1)} ms"
    parts = [(seconds // 86_400, "d"), (seconds // 3_600 % 24, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")]
    shown = [f"{number} {unit}" for number, unit in parts if number]
    return " ".join(shown[:2])
