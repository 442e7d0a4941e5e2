"""Totals from results: which season counts which results by which rules, and the recount of the players touched.

Works on temporary tables of the present transaction: ``rules``, a season each; ``counted``, the results each season is
to count, filled by the caller; ``fresh``, the totals that follow.
"""

from __future__ import annotations

from collections.abc import Iterable

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from leaderboard.board import Board
from leaderboard.codec import codec_for
from leaderboard.season import Bounds
from ledger.database import Database
from ledger.result_files import as_text


def source_id(database: Database, name: str) -> int:
    """Return the ledger's number of a source, a new one if it has not seen it before."""
    database.rows("results.source", {"name": name})
    row = database.row("results.source_id", {"name": name})
    assert row is not None
    return int(row["source_id"])


def stage_rules(database: Database, counted_by: Iterable[tuple[int, Board, Bounds]]) -> None:
    """Fill ``rules`` with seasons, each given as key, board and bounds. Raises ConfigError as ``codec_for`` does."""
    rules = []
    for key, board, bounds in counted_by:
        codec = codec_for(board, bounds)
        rules.append(
            {
                "season_id": key,
                "board": board.name,
                "starts_at": bounds.starts_at.isoformat(),
                "ends_at": bounds.ends_at.isoformat(),
                "wanted": as_text(board.where),
                "aggregate": board.aggregate,
                "descending": board.descending,
                "least": codec.minimum,
                "most": codec.maximum,
                "frozen": False,
            }
        )
    database.rows("counting.rules", {"rules": Jsonb(rules)})


def recount(database: Database, source: int) -> list[DictRow]:
    """Count every player anew for whom ``counted`` has something, and return those whose points no score can hold.

    The rows of their totals stay locked until the transaction ends, so that no two recount a player at once.
    """
    database.rows("counting.touch")
    database.rows("counting.recount", {"source_id": source})
    return database.rows("counting.out_of_range")


def settle(database: Database) -> None:
    """Write the recounted totals and note that Redis does not have them."""
    database.rows("counting.settle")
    database.rows("counting.pend")
