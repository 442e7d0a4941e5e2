"""Cutting the score bands of a season's shards anew, before its freeze."""

from __future__ import annotations

from psycopg.types.json import Jsonb

from leaderboard.board import Board
from leaderboard.errors import WrongStateError
from ledger import leases
from ledger.database import Database
from ledger.leases import Lease


def cut_anew(database: Database, lease: Lease, definition: Board) -> None:
    """Fix the season's definition again, with other cuts; in the transaction of the caller, if there is one.

    Raises LeaseLostError for a lease that is the season's no more, WrongStateError for a season that is frozen.
    """
    with database.transaction():
        leases.check(database, lease)
        values = {"key": lease.key, "definition": Jsonb(definition.definition())}
        if database.row("rebalance.cut_anew", values) is None:
            raise WrongStateError("the season has been frozen, or nothing has fixed it yet; its bands stay as they are")
