"""What did not count: late, refused and conflicting results, and voided ones, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from leaderboard.board import Board
from leaderboard.season import Season
from ledger.database import Database
from ledger.result_files import as_text


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One result that does not count. Of a row that could not be read, only what was given is known.

    ``at`` is when the ledger learned of it, ``origin`` and ``line`` where it stood, if that is known.
    """

    match_id: str | None
    player_id: bytes | None
    points: int | str | None
    played_at: datetime | None
    reason: str
    at: datetime
    origin: str = ""
    line: int | None = None

    def to_json(self, *, binary: bool) -> dict[str, Any]:
        """Return it as plain JSON values; ``player_id`` is hex on ``binary`` boards."""
        return {
            "match_id": self.match_id,
            "player_id": self.name(binary=binary) or None,
            "points": self.points,
            "played_at": self.played_at,
            "reason": self.reason,
            "recorded_at": self.at,
            "origin": self.origin or None,
            "line": self.line,
        }

    def name(self, *, binary: bool) -> str:
        """Return the player's id as a person is shown it."""
        if self.player_id is None:
            return ""
        return self.player_id.hex() if binary else self.player_id.decode(errors="backslashreplace")


@dataclass(frozen=True, slots=True)
class Listing:
    """The first rows of a list, and how many there are in all."""

    rows: list[LeftOut]
    total: int


def late(database: Database, season: Season, player: bytes | None, limit: int) -> Listing:
    """Return the results that came after the season's freeze, as they came."""
    values = {"key": season.key, "player": player, "limit": limit}

    def told(row: DictRow) -> LeftOut:
        frozen = f"{season.frozen_at:%Y-%m-%d %H:%M:%S} UTC" if season.frozen_at else "then"
        return LeftOut(
            **{name: row[name] for name in ("match_id", "player_id", "points", "played_at")},
            reason=f"came after the season was frozen ({frozen})",
            at=row["recorded_at"],
        )

    return _listing(database, "late", values, told)


def voided(database: Database, season: Season, player: bytes | None, limit: int) -> Listing:
    """Return the voided results of the season, as they were voided."""
    values = {
        **_of_season(database, season.board, season),
        "key": season.key,
        "player": player,
        "limit": limit,
    }

    def told(row: DictRow) -> LeftOut:
        after = "; after the freeze: the sealed totals still have it" if row["after_freeze"] else ""
        return LeftOut(
            **{name: row[name] for name in ("match_id", "player_id", "points", "played_at")},
            reason=f"voided by {row['who']}: {row['because']}{after}",
            at=row["voided_at"],
        )

    return _listing(database, "voided", values, told)


def refused(database: Database, board: Board, season: Season | None, player: bytes | None, limit: int) -> Listing:
    """Return the refused results of the board's source: of one season, or of all times.

    Rows whose time could not be read belong to no season, so they are in every list.
    """
    return _set_aside(database, "refused", board, season, player, limit)


def conflicting(database: Database, board: Board, season: Season | None, player: bytes | None, limit: int) -> Listing:
    """Return the results that gave other values for a match and player that the ledger had, as ``refused`` does."""
    return _set_aside(database, "conflict", board, season, player, limit)


def _set_aside(
    database: Database, kind: str, board: Board, season: Season | None, player: bytes | None, limit: int
) -> Listing:
    values = {**_of_season(database, board, season), "kind": kind, "player": player, "limit": limit}

    def told(row: DictRow) -> LeftOut:
        names = ("match_id", "player_id", "points", "played_at", "reason", "origin", "line")
        return LeftOut(**{name: row[name] for name in names}, at=row["recorded_at"])

    return _listing(database, "set_aside", values, told)


def _of_season(database: Database, board: Board, season: Season | None) -> dict[str, Any]:
    row = database.row("results.source_id", {"name": board.source})
    return {
        "source_id": row["source_id"] if row else None,
        "wanted": Jsonb(as_text(board.where)),
        "starts_at": season.bounds.starts_at if season else None,
        "ends_at": season.bounds.ends_at if season else None,
    }


def _listing(database: Database, name: str, values: dict[str, Any], told: Callable[[DictRow], LeftOut]) -> Listing:
    count = database.row(f"left_out.{name}_count", values)
    assert count is not None
    return Listing([told(row) for row in database.rows(f"left_out.{name}", values)], count["count"])
