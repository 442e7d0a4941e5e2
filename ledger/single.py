"""One result taken by one statement, where nothing is special about it: no temporary table, no second look."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import Rollback
from psycopg.types.json import Jsonb

from leaderboard.board import Board
from ledger import barrier, counting, seasons
from ledger.database import Database
from ledger.result_files import Result, attributes_json


def record(database: Database, source: str, number: int, boards: Sequence[Board], result: Result) -> set[int] | None:
    """Record a new result that every board of its source counts in an open season; return the seasons' numbers.

    Returns None, with nothing done, for any other: a season is not there yet, frozen or pruned, the result is known,
    void or counted by no board, or a total must be counted anew or would not fit. Those take the way of batches.
    """
    counted = None
    with database.transaction():
        counted = _taken(database, source, number, boards, result)
        if counted is None:
            raise Rollback
    return counted


def _taken(database: Database, source: str, number: int, boards: Sequence[Board], result: Result) -> set[int] | None:
    barrier.enter(database, barrier.SOURCES, [number])
    found = seasons.of_source(database, source, result.played_at, result.played_at)
    there = {season.board.name for season, _ in found}
    if not all(fixed for _, fixed in found) or not all(board.name in there for board in boards):
        return None
    # Before the statement that reads their states, as in a batch.
    barrier.enter(database, barrier.SEASONS, [season.key for season, _ in found])
    rules = [counting.rule(season.key, season.board, season.bounds) for season, _ in found]
    row = database.row(
        "single.take",
        {
            "rules": Jsonb(rules),
            "source_id": number,
            "match_id": result.match_id,
            "player_id": result.player_id,
            "points": result.points,
            "played_at": result.played_at,
            "attributes": attributes_json(result.attributes),
        },
    )
    assert row is not None
    return set(row["seasons"]) if row["wanted"] and row["counted"] == row["wanted"] else None
