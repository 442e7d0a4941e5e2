"""Seasons that results need before they can be counted: created from the calendars, and fixed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from leaderboard.board import Board
from leaderboard.calendar import seasons_from
from leaderboard.season import Bounds
from leaderboard.states import State
from ledger import opening, seasons, source_seasons
from ledger.database import Database


def prepare(
    database: Database, source: str, boards: Sequence[Board], instants: Iterable[datetime], now: datetime, *, who: str
) -> tuple[tuple[datetime, datetime] | None, set[str]]:
    """Create and fix the seasons in which the ``instants`` lie.

    Returns the first and last instant, if there are any, and the names of the seasons that this call created.

    Stored bounds win over the calendars of ``boards``. Raises ConfigError for a new season that overlaps a stored one.
    """
    ordered = sorted(set(instants))
    if not ordered:
        return None, set()
    created = set()
    first, last = ordered[0], ordered[-1]
    for board in boards:
        stored = source_seasons.stored_bounds(database, board.name, first, last)
        for bounds in _needed(board, _outside(ordered, stored)):
            if any(other.id == bounds.id for other in stored):
                continue
            if seasons.create(database, board, bounds, now, who=who, state=State.OPEN):
                created.add(f"{board.name}/{bounds.id}")
    configured = {board.name: board for board in boards}
    for season in source_seasons.unfixed(database, source, configured, first, last):
        opening.fix(database, season.key, season.board)
    return (first, last), created


def _outside(ordered: Sequence[datetime], stored: Sequence[Bounds]) -> list[datetime]:
    """Return the instants, in order, that lie in none of the seasons, which are in order too and do not overlap."""
    outside: list[datetime] = []
    position = 0
    for bounds in stored:
        outside += ordered[position : bisect_left(ordered, bounds.starts_at)]
        position = bisect_left(ordered, bounds.ends_at)
    return outside + list(ordered[position:])


def _needed(board: Board, ordered: Sequence[datetime]) -> Iterator[Bounds]:
    """Yield the seasons of the board's calendar in which any of the instants lies; none where it opens none."""
    position = 0
    while board.calendar.opens and position < len(ordered):
        season = next(seasons_from(board.calendar, ordered[position]), None)
        if season is None:
            return
        if ordered[position] in season:
            yield season
            position = bisect_left(ordered, season.ends_at)
        else:
            position = bisect_left(ordered, season.starts_at)
