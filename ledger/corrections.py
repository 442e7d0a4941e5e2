"""Corrections as rows beside the grants: all or none, handed to the outbox in the same transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from leaderboard.errors import ArchiveMismatchError
from leaderboard.season import Season
from ledger import copying, counting, leases, match_rows, outbox
from ledger.database import Database
from ledger.leases import Lease
from ledger.outbox import Planned

_COPY = (
    b"copy finale.correction_grants (season_id, correction, grant_id, corrects, player_id, rule, item, amount,"
    b" position, rank) from stdin (format binary)"
)


def load(
    database: Database,
    lease: Lease,
    number: int,
    batches: Iterable[pa.RecordBatch],
    rows: int,
    sums: Mapping[str, int],
    mode: str,
) -> Planned:
    """Write the rows of a sealed correction, or none, and plan their delivery; repeatable.

    ``batches`` have the columns of the correction's files. Raises ArchiveMismatchError, with nothing committed, unless
    rows and sums are those that were sealed; LeaseLostError.
    """
    with database.transaction():
        leases.check(database, lease)
        found = _loaded(database, lease.key, number)
        if not found[0] and rows:
            _copy(database, lease.key, number, batches)
            found = _loaded(database, lease.key, number)
        if found != (rows, dict(sums)):
            raise ArchiveMismatchError(
                f"correction {number} in the ledger is not the one that was sealed",
                detail=f"sealed: {rows:,} rows, {dict(sums)}; there: {found[0]:,}, {found[1]}",
                hint="nothing was committed; look into finale.correction_grants",
            )
        return outbox.plan(database, lease, mode, number)


def _loaded(database: Database, key: int, number: int) -> tuple[int, dict[str, int]]:
    items = database.rows("corrections.loaded", {"key": key, "correction": number})
    return sum(row["rows"] for row in items), {row["item"]: int(row["amount"]) for row in items}


def _copy(database: Database, key: int, number: int, batches: Iterable[pa.RecordBatch]) -> None:
    with database.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.write(copying.HEADER)
        for batch in batches:
            for piece in copying.rows(batch, key, number):
                copy.write(piece)
        copy.write(copying.TRAILER)


def unfinished(database: Database, board: str, *, held: bool = False) -> list[tuple[str, int]]:
    """Return season and number of each correction that is committed and not yet handed to the outbox.

    Those of seasons on hold are among them if ``held``.
    """
    rows = database.rows("corrections.unfinished", {"board": board, "held": held})
    return [(row["season"], row["correction"]) for row in rows]


def of_player(database: Database, key: int, player_id: bytes) -> list[dict[str, Any]]:
    """Return what corrections of a season did to a player, in their order."""
    return [dict(row) for row in database.rows("corrections.of_player", {"key": key, "player": player_id})]


def undelivered(database: Database, key: int, number: int) -> tuple[int, int]:
    """Return how many of the grants that a correction changes are dead letters, and how many still wait."""
    row = database.row("corrections.undelivered", {"key": key, "correction": number})
    assert row is not None
    return row["dead"], row["waiting"]


def without_late_voids(database: Database, season: Season) -> list[dict[str, Any]]:
    """Return, for each player with a result voided after the freeze, what his results without it come to.

    Rows have ``player_id``, ``points``, ``reached_at`` and ``matches``, then ``frozen_points`` and
    ``frozen_reached_at``, what his results came to at the freeze; points and times are None without a result. Nothing
    is changed. Raises WrongStateError if results of the season are not in the ledger any more.
    """
    with database.transaction():
        counting.stage(database, [counting.rule(season.key, season.board, season.bounds)])
        database.rows("corrections.touched", {"key": season.key})
        source = counting.source_id(database, season.board.source)
        database.rows("counting.recount", {"source_id": source, "late_voids": True})
        database.rows("corrections.as_frozen")
        database.rows("counting.recount", {"source_id": source, "late_voids": False})
        found = database.rows("corrections.right_totals")
        match_rows.check_kept(database, season, hint="give the players to exclude by hand: --exclude")
    whole = ("points", "frozen_points")
    return [{**row, **{name: None if row[name] is None else int(row[name]) for name in whole}} for row in found]
