"""The results of one season, row by row: to be exported, or to be moved into the archive and removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from leaderboard.season import Season
from ledger import barrier, leases
from ledger.database import Database
from ledger.leases import Lease, lost
from ledger.result_files import as_text

ROWS = 20_000  #: read, or removed, at a time


def read(database: Database, season: Season) -> Iterator[list[DictRow]]:
    """Yield every result in the season's bounds and filter, by time, match and player, in portions.

    Columns: ``match_id, player_id, points, played_at, recorded_at, attributes`` and ``state``, which is counted, late
    or voided, with its ``reason``. One statement, so one state of the ledger.
    """
    return database.stream("match_rows.of_season", _of(database, season), ROWS)


def attribute_names(database: Database, season: Season) -> list[str]:
    """Return the names of all attributes that the season's results have."""
    return [row["name"] for row in database.rows("match_rows.attributes", _of(database, season))]


def shares(database: Database, season: Season, other: Season) -> bool:
    """Return whether both seasons take one and the same result."""
    values = {
        **_of(database, season),
        "other_starts_at": other.bounds.starts_at,
        "other_ends_at": other.bounds.ends_at,
        "other_wanted": Jsonb(as_text(other.board.where)),
    }
    row = database.row("match_rows.shared", values)
    assert row is not None
    return bool(row["shared"])


def removable(database: Database, season: Season) -> int:
    """Return how many results ``remove`` would take of the season: all but those that corrections have yet to undo."""
    row = database.row("match_rows.removable", _of(database, season))
    assert row is not None
    return int(row["count"])


def pruned_at(database: Database, key: int) -> datetime | None:
    """Return since when the season takes no results at all, not even late ones; None if it does."""
    row = database.row("match_rows.pruned_at", {"key": key})
    return row["pruned_at"] if row else None


def close(database: Database, lease: Lease, season: Season) -> datetime:
    """Take no results of the season any more, and wait for whoever is still recording one; return since when.

    The mark is committed first, as with the freeze. Safe to repeat. Raises LeaseLostError.
    """
    row = database.row("match_rows.mark_pruned", lease.params)
    if row is None:
        raise lost(lease)
    with database.transaction():
        barrier.close(database, barrier.SEASONS, season.key, season.name)
    since: datetime = row["pruned_at"]
    return since


def remove(database: Database, lease: Lease, season: Season, rows: Sequence[tuple[str, bytes]]) -> None:
    """Remove results, each given as match and player, all or none. Safe to repeat. Raises LeaseLostError."""
    with database.transaction():
        leases.check(database, lease)
        database.rows(
            "match_rows.remove",
            {
                **_of(database, season),
                "matches": [match for match, _ in rows],
                "players": [player for _, player in rows],
            },
        )


def _of(database: Database, season: Season) -> dict[str, Any]:
    row = database.row("results.source_id", {"name": season.board.source})
    return {
        "key": season.key,
        "source_id": row["source_id"] if row else None,
        "starts_at": season.bounds.starts_at,
        "ends_at": season.bounds.ends_at,
        "wanted": Jsonb(as_text(season.board.where)),
    }
