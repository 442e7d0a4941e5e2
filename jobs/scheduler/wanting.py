"""Which boards a tick has anything to do on: one look at the ledger for all of them, so that idle ones cost nothing.

What is found is not acted on: whoever ticks a board looks at it anew. A board too many costs a look, none is too few.
"""

from __future__ import annotations

from datetime import datetime

from jobs.boards.projection import behind
from jobs.checks import live_check
from jobs.scheduler.upcoming import following
from jobs.wiring import Outside
from leaderboard.board import Board
from leaderboard.season import Season
from ledger import agenda
from ledger.agenda import BoardAgenda, Played


def boards_wanting(outside: Outside, now: datetime) -> list[str]:
    """Return the names of the boards on which something may be due at ``now``, in the configuration's order.

    One that cannot be told is among them: its own tick says what is wrong with it.
    """
    boards = outside.boards
    ahead = {name: [season.id for season in following(board, now)] for name, board in boards.items()}
    looked = agenda.look(outside.database, boards, ahead)
    found, written = set[str](), list[Season]()
    for name, one in looked.items():
        try:
            played = [(each, each.season()) for each in one.played]
        except ValueError:
            found.add(name)
            continue
        if _wants(boards[name], one, now) or any(_wants_redis(each, season, now) for each, season in played):
            found.add(name)
        else:
            written += [season for each, season in played if each.written]
    found |= {season.board.name for season in behind(outside, written)}
    return [name for name in boards if name in found]


def _wants(board: Board, found: BoardAgenda, now: datetime) -> bool:
    if found.lacks or found.owes or board.current_key is not None:  # that key is asked for in Redis
        return True
    if found.last_end is not None and found.last_end < now and next(following(board, now, found.last_end), None):
        return True  # seasons may have been missed
    return any(one.is_due(now) for one in found.timings)


def _wants_redis(played: Played, season: Season, now: datetime) -> bool:
    return played.pending or live_check.is_due(season, played.checked_at, now)
