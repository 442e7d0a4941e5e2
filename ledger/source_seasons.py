"""Which seasons count a source, or are to: what results are counted by, and where none is there yet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from leaderboard.board import Board
from leaderboard.season import Bounds, Season
from ledger.database import Database
from ledger.seasons import from_row


def of_source(database: Database, source: str, first: datetime, last: datetime) -> list[tuple[Season, datetime | None]]:
    """Return the seasons that count ``source`` and touch ``[first, last]``, each with when it was fixed, if it is."""
    rows = database.rows("seasons.of_source", {"source": source, "first": first, "last": last})
    return [(from_row(row, None), row["fixed_at"]) for row in rows]


def closed_early(database: Database, source: str, first: datetime, last: datetime) -> list[tuple[Season, datetime]]:
    """Return the seasons that count ``source`` and were closed before results of ``[first, last]`` that they were to
    count, each with until when such results are late for it: its planned end, or the next season.
    """
    rows = database.rows("results.closed_early", {"source": source, "first": first, "last": last})
    return [(from_row(row, None), row["late_until"]) for row in rows]


def unfixed(
    database: Database, source: str, configured: Mapping[str, Board], first: datetime, last: datetime
) -> list[Season]:
    """Return the seasons that touch ``[first, last]``, are not fixed, and count ``source`` or are configured to."""
    values = {"source": source, "boards": list(configured), "first": first, "last": last}
    return [from_row(row, configured.get(row["board"])) for row in database.rows("seasons.unfixed", values)]


def stored_bounds(database: Database, board: str, first: datetime, last: datetime) -> list[Bounds]:
    """Return the bounds of the stored seasons that touch ``[first, last]``, in order."""
    rows = database.rows("seasons.bounds_between", {"board": board, "first": first, "last": last})
    return [Bounds(row["starts_at"], row["ends_at"], row["season"]) for row in rows]
