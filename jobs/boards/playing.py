"""Which season of a board is read: one by name, or the one that is played now; also where no ledger has it."""

from __future__ import annotations

from jobs.seasons.closing import find
from jobs.wiring import Outside
from leaderboard.board import Board
from leaderboard.calendar import season_at, season_called
from leaderboard.errors import UnknownNameError
from leaderboard.season import Bounds, Season, unstored
from leaderboard.states import State
from ledger import seasons


def season_to_read(outside: Outside, board: str, season: str | None = None) -> Season:
    """Return the season called ``season``, or the one that is played now; else the last that began.

    Of a board without a ledger also one that only the calendar knows, whose key others have filled: it has no row, so
    nothing but reading can be done with it. Raises UnknownNameError.
    """
    known = outside.boards.get(board)
    if season is None:
        return _now(outside, board, known)
    if bounds := _unrecorded(outside, known, season):
        assert known is not None
        return unstored(known, bounds, State.OPEN)
    return find(outside, board, season)


def _unrecorded(outside: Outside, board: Board | None, season: str) -> Bounds | None:
    if board is None or board.ledger == "own":
        return None
    if any(one.id == season for one in seasons.of_board(outside.database, board.name)):
        return None
    return season_called(board.calendar, season)


def _now(outside: Outside, board: str, known: Board | None) -> Season:
    now = outside.database.now()
    stored = [one for one in seasons.of_board(outside.database, board, known) if one.state is not State.CANCELLED]
    begun = [one for one in stored if one.bounds.starts_at <= now]
    running = [one for one in begun if now in one.bounds]
    if (
        not running
        and known is not None
        and known.ledger != "own"
        and known.calendar.opens
        and (bounds := season_at(known.calendar, now))
    ):
        return unstored(known, bounds, State.OPEN)
    if running or begun:
        return max(running or begun, key=lambda one: one.bounds)
    outside.settings.board(board)
    raise UnknownNameError(
        f"no season of board {board} has begun, as far as the ledger knows",
        hint=f"see: finale calendar {board}; finale tick creates the seasons that are running",
    )
