"""What the ledger knows of one player in one season."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg.types.json import Jsonb

from leaderboard.season import Season
from ledger.database import Database
from ledger.result_files import as_text


def results(database: Database, season: Season, player_id: bytes) -> dict[str, int]:
    """Return how many results of the board's source the player has.

    ``all_boards``: in all; ``here``: of this board and season, ``voided`` of these; ``filtered``: of this season's time
    that the board's filter leaves out; ``elsewhen``: of this board at other times.
    """
    row = database.row("results.source_id", {"name": season.board.source})
    values = {
        "source_id": row["source_id"] if row else None,
        "player": player_id,
        "wanted": Jsonb(as_text(season.board.where)),
        "starts_at": season.bounds.starts_at,
        "ends_at": season.bounds.ends_at,
    }
    found = database.row("why.results", values)
    assert found is not None
    return dict(found)


def total(database: Database, season: Season, player_id: bytes) -> dict[str, Any] | None:
    """Return points, reached_at and matches of the player's total; None without one."""
    row = database.row("why.total", {"key": season.key, "player": player_id})
    return dict(row) if row else None


def other_boards(database: Database, season: Season, player_id: bytes) -> list[dict[str, Any]]:
    """Return board, season and points wherever else results of the same source and time count for the player."""
    values = {
        "key": season.key,
        "player": player_id,
        "source": season.board.source,
        "starts_at": season.bounds.starts_at,
        "ends_at": season.bounds.ends_at,
    }
    return [dict(row) for row in database.rows("why.other_boards", values)]


def grants(database: Database, key: int, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return those of the grants that exist, by position, rule and item."""
    return [dict(row) for row in database.rows("why.grants", {"key": key, "ids": list(ids)})]
