"""Ledgers of the user's own: whether each board's SQL can be asked, and gives the columns that are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from config.settings import Settings
from jobs.checks.reconciling import ledger_url
from jobs.doctor.checks import Check, Checks
from leaderboard.board import Board
from leaderboard.season import Bounds
from leaderboard.truth import OutsideLedger
from ledger.outside import Source, checked


def look(
    settings: Settings, url: str, environ: Mapping[str, str], boards: Iterable[tuple[Board, Bounds | None]]
) -> list[Check]:
    """Return a check for each board with a ledger of its own, asked for no row, in a transaction that only reads.

    ``url`` is where Finale's own tables are; a board's bounds are those of the season whose parameters are bound.
    """
    checks = Checks("ledger")
    for board, bounds in boards:
        if not isinstance(board.ledger, OutsideLedger) or bounds is None:
            continue
        timeout = settings.runner.statement_timeout.total_seconds()
        with checks.trying(board.name):
            place = ledger_url(environ, board.name, board.ledger, url)
            checked(Source(place, board.ledger, board, bounds, timeout))
            checks.add(board.name, "ok", "its SQL is read, with player_id, points and reached_at")
    return checks.found
