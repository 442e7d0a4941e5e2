"""All checks of finale doctor, one server after another; what one of them cannot tell hinders no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from config.settings import Settings
from jobs.doctor import host, outside, postgres, redis, store
from jobs.doctor.checks import Check
from jobs.endpoints import endpoints
from leaderboard.board import Board
from leaderboard.calendar import season_at, seasons_from
from leaderboard.keys import live_key
from leaderboard.season import Bounds

_EVER = datetime.min.replace(tzinfo=UTC)


def examine(settings: Settings, environ: Mapping[str, str], names: Sequence[str] = ()) -> list[Check]:
    """Return every check, for the named boards or all. Nothing stays behind: canaries are removed, or go by themselves.

    Raises UnknownNameError for a board that is not configured, EmbeddedError if embedded servers cannot be started.
    """
    boards = [settings.board(name) for name in names] or list(settings.boards.values())
    played = {board.name: bounds for board in boards if (bounds := present(board, datetime.now(UTC)))}
    keys = {board.name: key_of(board, played[board.name]) for board in boards if board.name in played}
    with endpoints(settings, environ) as urls:
        return [
            *host.look(settings),
            *postgres.look(settings, urls.postgres),
            *outside.look(settings, urls.postgres, environ, [(board, played.get(board.name)) for board in boards]),
            *redis.look(settings, urls.redis, keys),
            *store.look(settings, urls.postgres, environ, sorted(keys)),
        ]


def present(board: Board, now: datetime) -> Bounds | None:
    """Return the season that is played now, else comes next, else was last; None without seasons."""
    bounds = season_at(board.calendar, now) or next(iter(seasons_from(board.calendar, now)), None)
    if bounds is None:  # only a list of seasons ends
        bounds = next(reversed(list(seasons_from(board.calendar, _EVER))), None)
    return bounds


def key_of(board: Board, bounds: Bounds) -> str:
    """Return the live key of the board's season."""
    return live_key(board.key, board.name, bounds.id, bounds.starts_at, bounds.ends_at)
