"""Seasons of keys that Finale never opened: a row that begins frozen, so nothing is ever written to the key."""

from __future__ import annotations

from leaderboard.board import Board
from leaderboard.errors import WrongStateError
from leaderboard.season import Bounds, Season
from leaderboard.states import State
from ledger import journal, leases, opening, seasons
from ledger.database import Database
from ledger.leases import Lease


def adopt(database: Database, board: Board, bounds: Bounds, live_key: str, *, who: str, because: str = "") -> None:
    """Create the season of a key that others have filled: frozen, a backfill, the results that the ledger has counted.

    Results of it that come later are late, as in any frozen season. Raises WrongStateError if the key is a season's
    already, or the season exists, ConfigError as ``seasons.insert`` does.
    """
    with database.transaction():
        _check_unused(database, live_key)
        key = seasons.insert(database, board, bounds, State.OPEN, live_key, backfill=True)
        if key is None:
            raise WrongStateError(f"season {board.name}/{bounds.id} exists already")
        _count(database, key, board, live_key)
        detail = {"because": because, "live_key": live_key, "ledger": board.ledger_kind}
        journal.write(database, key, "adopted", who=who, detail=detail)


def adopt_again(
    database: Database, lease: Lease, season: Season, board: Board, bounds: Bounds, *, who: str, because: str = ""
) -> None:
    """Begin an adopted season anew, with the board and bounds as they are now; a hold ends with it.

    Raises WrongStateError once a seal is committed, LeaseLostError, and ConfigError as ``seasons.insert`` does.
    """
    with database.transaction():
        leases.check(database, lease)
        seasons.lock_board(database, board.name)
        seasons.check_free(database, board.name, bounds)
        values = {"starts_at": bounds.starts_at, "ends_at": bounds.ends_at, "closes_at": bounds.ends_at + board.grace}
        if database.row("adoption.begin_anew", {"key": lease.key, **values}) is None:
            raise WrongStateError(
                f"the seal of {season.name} is committed, with the board and the bounds as they were",
                hint=f"go on with: finale close {board.name} {bounds.id}",
            )
        database.rows("adoption.forget_totals", {"key": lease.key})
        _count(database, lease.key, board, season.live_key)
        detail = {
            "because": because,
            "ledger": board.ledger_kind,
            "released": season.hold.reason if season.hold else None,
        }
        journal.write(database, lease.key, "adopted again", who=who, fence=lease.fence, detail=detail)


def _check_unused(database: Database, live_key: str) -> None:
    if found := database.row("adoption.of_key", {"live_key": live_key}):
        name = f"{found['board']} {found['season']}"
        raise WrongStateError(
            f"the key {live_key!r} is the live key of {found['board']}/{found['season']}, which is {found['state']}",
            hint=f"finale season show {name} tells what happens next; finale close {name} closes it",
        )


def _count(database: Database, key: int, board: Board, live_key: str) -> None:
    """Fix what the season counts and count it, but let no total wait to be written to the key."""
    opening.fix(database, key, board, live_key)
    database.rows("adoption.forget_pending", {"key": key})
    database.rows("adoption.freeze", {"key": key})
