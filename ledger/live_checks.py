"""How far the checks of a season that is being played have come, and what they read of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from leaderboard.season import Season
from ledger import evidence
from ledger.database import Database


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the next check goes on. ``watermark``: all results recorded before it were looked at.

    Of the players active since, those up to ``active_cursor`` were looked at; the watermark will be ``active_horizon``,
    the instant before which nothing could be recorded any more as that round began. Both None between two rounds.
    ``ledger_cursor`` is the last player of the slow round over the ledger, None at its start; ``redis_key`` and
    ``redis_cursor`` say where the round over Redis is, on the ``server`` that gave the cursor. ``rounds`` counts whole
    rounds over both.
    """

    checked_at: datetime | None
    watermark: datetime
    ledger_cursor: bytes | None = None
    redis_cursor: str = "0"
    redis_key: int = 0
    server: str = ""
    rounds: int = 0
    found: dict[str, Any] = field(default_factory=dict)
    active_cursor: bytes | None = None
    active_horizon: datetime | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """What the ledger has of one player now; ``pending``: Redis has not got it yet."""

    player_id: bytes
    points: int | None
    reached_at: datetime | None
    version: int | None
    pending: bool


def find(database: Database, season: Season) -> Progress:
    """Return where the season's checks stand; at its start if there were none."""
    row = database.row("live_checks.find", {"key": season.key})
    return Progress(**row) if row else Progress(None, season.bounds.starts_at)


def clock(database: Database) -> tuple[datetime, datetime]:
    """Return the time, and the instant before which no result can be recorded any more."""
    row = database.row("live_checks.clock")
    assert row is not None
    return row["now"], row["horizon"]


def active(database: Database, season: Season, since: datetime, cursor: bytes | None, limit: int) -> list[bytes]:
    """Return the next players with a result of the season recorded at ``since`` or later, in the order of their ids."""
    values = evidence.of(database, season, since=since, cursor=cursor, limit=limit)
    return [row["player_id"] for row in database.rows("live_checks.active", values)]


def players_after(database: Database, season: Season, cursor: bytes | None, limit: int) -> list[bytes]:
    """Return the next players of the ledger in the order of their ids."""
    values = {"key": season.key, "cursor": cursor, "limit": limit}
    return [row["player_id"] for row in database.rows("live_checks.slice", values)]


def held(database: Database, season: Season, players: Sequence[bytes]) -> list[Held]:
    """Return what the ledger has of each player, in their order, in one statement."""
    rows = database.rows("live_checks.held", {"key": season.key, "players": list(players)})
    return [Held(**row) for row in rows]


def record(database: Database, season: Season, seen: Progress, now: Progress) -> bool:
    """Note how far this check came; return False if another one was faster, which then stands."""
    values = {
        "key": season.key,
        "seen": seen.checked_at,
        "checked_at": now.checked_at,
        "watermark": now.watermark,
        "ledger_cursor": now.ledger_cursor,
        "redis_cursor": now.redis_cursor,
        "redis_key": now.redis_key,
        "server": now.server,
        "rounds": now.rounds,
        "found": Jsonb(now.found),
        "active_cursor": now.active_cursor,
        "active_horizon": now.active_horizon,
    }
    return database.row("live_checks.record", values) is not None
