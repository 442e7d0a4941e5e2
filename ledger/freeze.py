"""The freeze: a barrier in PostgreSQL after which no result counts for the season any more."""

from __future__ import annotations

from datetime import datetime

from leaderboard.season import Season
from ledger import barrier
from ledger.database import Database
from ledger.leases import Lease, lost


def freeze(database: Database, lease: Lease, season: Season) -> datetime:
    """Mark the season frozen, then wait for everyone who is still counting a result; return when it was marked.

    The mark is committed first, so whoever passes the barrier later reads it; the barrier waits for whoever read the
    season before. Call it outside a transaction. Safe to repeat. Raises LeaseLostError, or UnavailableError if some
    transaction never ends.
    """
    row = database.row("seasons.mark_frozen", lease.params)
    if row is None:
        raise lost(lease)
    with database.transaction():
        barrier.close(database, barrier.SEASONS, season.key, season.name)
    frozen_at: datetime = row["frozen_at"]
    return frozen_at
