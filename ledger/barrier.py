"""Barriers between those who count results and whoever ends that: transaction-wide advisory locks in PostgreSQL.

Who counts takes the shared side and then, in a statement of its own, reads what is still open; row locks in its place
starve the other side. The exclusive side asks with a short timeout, again and again, so that newcomers who queue behind
it wait no longer than that.
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import errors

from leaderboard.errors import UnavailableError
from ledger.database import Database

#: First numbers of the locks; the second is the season's or the source's own.
SEASONS = 0x46494E41
SOURCES = 0x46494E42
PRUNES = 0x46494E43

LOCK_TIMEOUT = "250ms"
TRIES = 240


def enter(database: Database, space: int, keys: Sequence[int]) -> None:
    """Take the shared side of every key until the transaction ends; read what is open only after that."""
    database.rows("barrier.shared", {"space": space, "keys": sorted(keys)})


def close(database: Database, space: int, key: int, what: str) -> None:
    """Wait for everyone on the shared side, and keep it closed until the transaction ends.

    Raises UnavailableError, naming ``what``, if some transaction does not end within a minute.
    """
    for _ in range(TRIES):
        if _closed(database, space, key):
            return
    raise UnavailableError(
        f"a transaction that counts results for {what} does not end",
        hint="look for it in pg_stat_activity, end it, and run the command again",
    )


def _closed(database: Database, space: int, key: int) -> bool:
    """Return whether the exclusive lock was had within its timeout."""
    try:
        with database.transaction():
            before = database.row("barrier.lock_timeout", {"timeout": LOCK_TIMEOUT})
            assert before is not None
            database.rows("barrier.exclusive", {"space": space, "key": key})
            database.rows("barrier.lock_timeout", {"timeout": before["before"]})
    except UnavailableError as error:
        if isinstance(error.__cause__, errors.LockNotAvailable):
            return False
        raise
    return True
