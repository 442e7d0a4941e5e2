"""Totals from results: which season counts which results by which rules, and the totals of the players touched.

Works on temporary tables of the present transaction: ``rules``, a season each; ``counted``, the results each season is
to count, filled by the caller; ``fresh``, the totals that changed. Where new matches can be added to a total exactly
they are; any other player of the batch is counted anew from all his matches (docs/decisions/0012).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from leaderboard.board import Board
from leaderboard.codec import codec_for
from leaderboard.season import Bounds
from ledger.database import Database
from ledger.result_files import as_text

LARGE = 2**61  #: sums at least so large, of either sign, are not added in int8; no score can hold them anyway

Rule = dict[str, Any]


def source_id(database: Database, name: str) -> int:
    """Return the ledger's number of a source, a new one if it has not seen it before."""
    row = database.row("results.source_id", {"name": name})
    if row is None:
        database.rows("results.source", {"name": name})
        row = database.row("results.source_id", {"name": name})
    assert row is not None
    return int(row["source_id"])


def rule(key: int, board: Board, bounds: Bounds) -> Rule:
    """Return by which rules a season counts, as plain values. Raises ConfigError as ``codec_for`` does."""
    codec = codec_for(board, bounds)
    return {
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
        "pruned": False,
    }


def stage(database: Database, rules: Iterable[Rule]) -> None:
    """Make the temporary tables, with ``rules`` filled."""
    database.rows("counting.rules", {"rules": Jsonb(list(rules))})
    database.rows("counting.staging")


def count(database: Database, source: int, rules: Iterable[Rule]) -> list[DictRow]:
    """Count what ``counted`` holds, and return the players whose points no score can hold: nothing may stay of these.

    The rows of their totals stay locked until the transaction ends, so that no two count a player at once. Their order,
    by aggregate and season, is that of a single result too.
    """
    aggregates = {(one["aggregate"], one["descending"]) for one in rules}
    for aggregate in ("sum", "last"):
        if any(one == aggregate for one, _ in aggregates):
            database.rows(f"counting.add_{aggregate}", {"large": LARGE, "adds": int(aggregate == "sum")})
    for descending in (True, False):
        if ("best", descending) in aggregates:
            database.rows("counting.add_best", {"descending": descending})
    database.rows("counting.left_to_recount")
    return recount(database, source)


def recount(database: Database, source: int) -> list[DictRow]:
    """Count every player in ``touched`` anew; return those of the batch whose points no score can hold."""
    row = database.row("counting.how_many_touched")
    assert row is not None
    if row["count"]:
        database.rows("counting.touch")
        database.rows("counting.recount", {"source_id": source, "late_voids": True})
    beyond = database.rows("counting.out_of_range")
    if row["count"] and not beyond:
        database.rows("counting.settle", {"large": LARGE})
        database.rows("counting.remove")
    return beyond


def settle(database: Database) -> None:
    """Note that Redis does not have the totals that changed."""
    database.rows("counting.pend")
