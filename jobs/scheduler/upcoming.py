"""Keeps the next seasons of a board in the ledger, and ``current_key`` at the one that is open."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from jobs.wiring import Outside
from leaderboard import keys
from leaderboard.board import Board
from leaderboard.calendar import fitted, seasons_from
from leaderboard.season import Bounds
from leaderboard.states import TAKES_RESULTS
from ledger import agenda, seasons
from live.fence import read_current, set_current

#: After a long sleep the seasons that were missed are made in portions, a portion a tick.
MOST_AT_ONCE = 500


def create_ahead(outside: Outside, board: Board, now: datetime, *, who: str) -> list[str]:
    """Create the rows of the present season and the next ``board.ahead`` ones; return the ids that were new.

    So too those that ended while nothing ran, since the last one that the board has. Stored seasons win: one that a
    lever has moved is not made again, and a new one is fitted to its stored neighbours.
    """
    created = []
    last = agenda.last_end(outside.database, board.name)
    before: Bounds | None = None
    wanted = list(following(board, now, since=min(last, now) if last else now))
    known = agenda.known(outside.database, board.name, [bounds.id for bounds in wanted])
    for bounds in wanted:
        if bounds.id not in known:
            new = fitted(bounds, before, agenda.around(outside.database, board.name, bounds))
            missed = bounds.ends_at <= now
            if new and seasons.create(outside.database, board, new, now, who=who, missed=missed):
                created.append(new.id)
        before = bounds
    return created


def following(board: Board, now: datetime, since: datetime | None = None) -> Iterator[Bounds]:
    """Yield the seasons that the board should have at ``now``: the present one and the next ``board.ahead``.

    With ``since``, those from then on come first, ``MOST_AT_ONCE`` at most. None where its calendar opens none.
    """
    if not board.calendar.opens:
        return
    to_come = 0
    for bounds in islice(seasons_from(board.calendar, since or now), MOST_AT_ONCE):
        to_come += bounds.ends_at > now
        if to_come > board.ahead + 1:
            return
        yield bounds


def point_current_key(outside: Outside, board: Board, now: datetime) -> bool:
    """Let the board's ``current_key`` name the live key of the season of ``now``; return whether it changed.

    A ``now`` that was read a while ago is not believed: that season may have ended since, and another be named already.
    Of a board with shards it names what all of them are called, with ``<shard>`` for the number.
    """
    if board.current_key is None:
        return False
    name = board.current_key.replace("<board>", board.name)
    # Read before the clock is: what a later look than this one has written since is then seen, or refuses this write.
    seen = read_current(outside.redis, name)
    now = max(now, outside.database.now())
    for season in seasons.unfinished(outside.database, board.name, board):
        if now in season.bounds and season.state in TAKES_RESULTS:
            key = keys.with_shard(season.live_key) if season.sharded else season.live_key
            return set_current(outside.redis, name, key, seen=seen)
    return False
