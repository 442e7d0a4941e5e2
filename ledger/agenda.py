"""When there is something to do: the stored instants to come, and how far a board has been run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from leaderboard.season import Bounds
from leaderboard.states import State
from ledger.database import Database


def last_end(database: Database, board: str) -> datetime | None:
    """Return when the last season ends that the board has by its calendar, not as a backfill; None if it has none."""
    row = database.row("agenda.last_end", {"board": board})
    return row["ends_at"] if row else None


def around(database: Database, board: str, bounds: Bounds) -> list[tuple[Bounds, State]]:
    """Return the stored seasons that touch ``bounds`` or end up to a week before, in order, each with its state."""
    values = {"board": board, "first": bounds.starts_at - timedelta(days=7), "last": bounds.ends_at}
    rows = database.rows("seasons.bounds_between", values)
    return [(Bounds(row["starts_at"], row["ends_at"], row["season"]), State(row["state"])) for row in rows]


def wake_ups(database: Database, boards: Iterable[str], within: timedelta) -> list[datetime]:
    """Return the stored instants to come at which something may become due, in order, none twice."""
    rows = database.rows("agenda.wake_ups", {"boards": list(boards), "within": within})
    return [row["at"] for row in rows]
