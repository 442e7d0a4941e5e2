"""One result taken by one statement, where nothing is special about it: no temporary table, no second look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

from psycopg import Rollback
from psycopg.types.json import Jsonb

from leaderboard.board import Board
from ledger import barrier, counting, source_seasons
from ledger.database import Database
from ledger.result_files import Result, attributes_json


@dataclass(frozen=True, slots=True)
class _Known:
    """The seasons that counted a source when its last single result came; the statement checks that they still do."""

    number: int
    boards: frozenset[str]
    starts_at: datetime
    ends_at: datetime
    keys: tuple[int, ...]
    rules: Jsonb


#: By source, for as long as the connection stands.
_known: WeakKeyDictionary[Database, dict[str, _Known]] = WeakKeyDictionary()


def record(
    database: Database, source: str, boards: Sequence[Board], result: Result, ahead: timedelta
) -> set[int] | None:
    """Record a new result that every board of its source counts in an open season; return the seasons' numbers.

    Returns None, with nothing done, for any other: played more than ``ahead`` of the server's clock, a season is not
    there yet, frozen or pruned, the result is known, void or counted by no board, or a total must be counted anew or
    would not fit; and within a transaction. Those take the way of batches.
    """
    known = _seasons(database, source, boards, result.played_at) if database.usable else None
    if known is None:
        return None
    counted = None
    # In this order, and the states read by a statement of its own after them, as in a batch.
    with database.begun(
        ("barrier.shared", {"space": barrier.SOURCES, "keys": [known.number]}),
        ("barrier.shared", {"space": barrier.SEASONS, "keys": sorted(known.keys)}),
        ("single.take", {"source": source, "ahead": ahead, **_values(known, result)}),
    ) as [row]:
        if row["wanted"] and row["counted"] == row["wanted"]:
            counted = set(row["seasons"])
        else:
            raise Rollback
    if not row["as_known"]:
        del _known[database][source]
    return counted


def _values(known: _Known, result: Result) -> dict[str, Any]:
    return {
        "rules": known.rules,
        "source_id": known.number,
        "match_id": result.match_id,
        "player_id": result.player_id,
        "points": result.points,
        "played_at": result.played_at,
        "attributes": attributes_json(result.attributes),
    }


def _seasons(database: Database, source: str, boards: Sequence[Board], at: datetime) -> _Known | None:
    """Return the seasons that count results of ``at``; None unless every board has one, and each is fixed."""
    names = frozenset(board.name for board in boards)
    known = _known.setdefault(database, {}).get(source)
    if known is not None and known.boards == names and known.starts_at <= at < known.ends_at:
        return known
    found = source_seasons.of_source(database, source, at, at)
    rules = [
        {**counting.rule(season.key, season.board, season.bounds), "fixed_at": fixed_at.isoformat()}
        for season, fixed_at in found
        if fixed_at is not None
    ]
    if not rules or len(rules) < len(found) or not names <= {season.board.name for season, _ in found}:
        return None
    known = _known[database][source] = _Known(
        counting.source_id(database, source),
        names,
        max(season.bounds.starts_at for season, _ in found),
        min(season.bounds.ends_at for season, _ in found),
        tuple(season.key for season, _ in found),
        Jsonb(rules),
    )
    return known
