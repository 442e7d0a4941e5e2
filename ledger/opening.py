"""Fixing a season: what it counts, and its key, follow the configuration only until it opens or has a result."""

from __future__ import annotations

from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from leaderboard import keys
from leaderboard.board import Board
from leaderboard.errors import ConfigError
from leaderboard.season import Bounds
from ledger import barrier, counting
from ledger.database import Database
from ledger.result_files import as_text


def fix(database: Database, key: int, board: Board, live_key: str | None = None) -> bool:
    """Fix the definition and live key of a season that are not fixed yet; return whether this call did.

    The live key is the board's unless one is given. What its source has for it already is counted: results that came
    before the board did. Raises ConfigError if a player has more points there than the board's scores can hold.
    """
    with database.transaction():
        source = counting.source_id(database, board.source)
        barrier.close(database, barrier.SOURCES, source, f"source {board.source}")
        row = database.row("opening.unfixed", {"key": key})
        if row is None:
            return False
        bounds = Bounds(row["starts_at"], row["ends_at"], row["season"])
        own_key = keys.live_key(board.key, board.name, bounds.id, bounds.starts_at, bounds.ends_at)
        values = {"key": key, "definition": Jsonb(board.definition()), "live_key": live_key or own_key}
        database.rows("opening.fix", values)
        if board.ledger == "own":
            _count_history(database, source, key, board, bounds)
        return True


def count_again(database: Database, key: int, board: Board, bounds: Bounds) -> None:
    """Count all results of a fixed season anew, whose bounds have changed or whose late results count now.

    Belongs in a transaction in which the source's barrier is closed. Raises ConfigError as ``fix`` does.
    """
    source = counting.source_id(database, board.source)
    counting.stage(database, [counting.rule(key, board, bounds)])
    # Never added to the totals: they have most of these results already.
    database.rows("opening.touched", _history(source, key, board, bounds))
    _settle(database, board, bounds, counting.recount(database, source))


def _count_history(database: Database, source: int, key: int, board: Board, bounds: Bounds) -> None:
    rules = [counting.rule(key, board, bounds)]
    counting.stage(database, rules)
    database.rows("opening.history", _history(source, key, board, bounds))
    _settle(database, board, bounds, counting.count(database, source, rules))


def _history(source: int, key: int, board: Board, bounds: Bounds) -> dict[str, Any]:
    values = {"source_id": source, "key": key, "wanted": Jsonb(as_text(board.where))}
    return {**values, "starts_at": bounds.starts_at, "ends_at": bounds.ends_at}


def _settle(database: Database, board: Board, bounds: Bounds, found: list[DictRow]) -> None:
    for beyond in found:
        raise ConfigError(
            f"board {board.name} cannot count season {bounds.id}: player {beyond['player_id']!r} has "
            f"{beyond['points']:,} points there",
            detail=f"its scores can hold {beyond['least']:,} to {beyond['most']:,}",
            hint='choose a smaller multiplier, or ties = "shared"',
        )
    counting.settle(database)
    database.rows("opening.drop_temporary")
