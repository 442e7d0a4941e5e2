"""What the ledger knows of players who drift: their last results, and how many players were active since a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from leaderboard.season import Season
from ledger import counting
from ledger.database import Database
from ledger.result_files import as_text

MATCHES = 50  #: results of a player that are looked at, the last recorded first


def matches(database: Database, season: Season, players: Sequence[bytes]) -> dict[bytes, list[dict[str, Any]]]:
    """Return the last results of each player in the season, the last recorded first, at most ``MATCHES`` of each.

    Each has ``match_id, points, played_at, recorded_at``, whether it is ``late`` and whether it was ``voided``.
    """
    found: dict[bytes, list[dict[str, Any]]] = {}
    values = {**of(database, season), "players": list(players), "limit": MATCHES}
    for row in database.rows("evidence.matches", values):
        found.setdefault(row.pop("player_id"), []).append(dict(row))
    return found


def active_since(database: Database, season: Season, since: datetime) -> int:
    """Return how many players of the season have a result recorded at ``since`` or later."""
    row = database.row("evidence.active_since", {**of(database, season), "since": since})
    assert row is not None
    return int(row["players"])


def of(database: Database, season: Season, **more: Any) -> dict[str, Any]:
    """Return the values that say which results count for the season, and ``more``."""
    return {
        **more,
        "key": season.key,
        "source_id": counting.source_id(database, season.board.source),
        "starts_at": season.bounds.starts_at,
        "ends_at": season.bounds.ends_at,
        "wanted": Jsonb(as_text(season.board.where)),
    }
