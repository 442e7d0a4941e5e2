"""All checks of finale doctor, one server after another; what one of them cannot tell hinders no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from config.settings import Settings
from jobs.doctor import host, postgres, redis, store
from jobs.doctor.checks import Check
from jobs.endpoints import endpoints
from leaderboard.board import Board
from leaderboard.calendar import season_at, seasons_from
from leaderboard.keys import live_key

_EVER = datetime.min.replace(tzinfo=UTC)


def examine(settings: Settings, environ: Mapping[str, str], names: Sequence[str] = ()) -> list[Check]:
    """Return every check, for the named boards or all. Nothing stays behind: canaries are removed, or go by themselves.

    Raises UnknownNameError for a board that is not configured, EmbeddedError if embedded servers cannot be started.
    """
    boards = [settings.board(name) for name in names] or list(settings.boards.values())
    keys = {board.name: key for board in boards if (key := present_key(board, datetime.now(UTC)))}
    with endpoints(settings, environ) as urls:
        return [
            *host.look(settings),
            *postgres.look(settings, urls.postgres),
            *redis.look(settings, urls.redis, keys),
            *store.look(settings, environ, sorted(keys)),
        ]


def present_key(board: Board, now: datetime) -> str | None:
    """Return the live key of the season that is played now, else comes next, else was last; None without seasons."""
    bounds = season_at(board.calendar, now) or next(iter(seasons_from(board.calendar, now)), None)
    if bounds is None:  # only a list of seasons ends
        bounds = next(reversed(list(seasons_from(board.calendar, _EVER))), None)
    if bounds is None:
        return None
    return live_key(board.key, board.name, bounds.id, bounds.starts_at, bounds.ends_at)
