"""Grants as rows: a partition a season, loaded, verified, indexed and attached in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from psycopg import sql

from leaderboard.errors import ArchiveMismatchError
from ledger import copying, leases
from ledger.database import Database
from ledger.leases import Lease

COLUMNS = ("season_id", "grant_id", "player_id", "rule", "item", "amount", "position", "rank")


@dataclass(frozen=True, slots=True)
class Loaded:
    """How many grants a season has, and how much of each item they give together."""

    rows: int
    amounts: dict[str, int]


def _name(key: int) -> str:
    return f"grants_{key}"


def loaded(database: Database, key: int) -> Loaded | None:
    """Return what the season's partition holds, None if there is none attached."""
    row = database.row("grants.attached", {"name": f"finale.{_name(key)}"})
    if not (row and row["found"]):
        return None
    items = database.rows("grants.items", {"key": key})
    return Loaded(sum(row["rows"] for row in items), {row["item"]: int(row["amount"]) for row in items})


def load(database: Database, lease: Lease, batches: Iterable[pa.RecordBatch], expected: Loaded) -> Loaded:
    """Write all grants of a season, or none, and return what the table then holds.

    ``batches`` have the columns of the grants files. A partition that is there already is compared instead. Raises
    ArchiveMismatchError, with nothing committed, unless rows and amounts equal ``expected``; LeaseLostError.
    """
    with database.transaction():
        leases.check(database, lease)
        found = loaded(database, lease.key)
        if found is None:
            _fill(database, lease.key, batches)
            found = loaded(database, lease.key)
            assert found is not None
        if found != expected:
            raise ArchiveMismatchError(
                "the grants in the ledger are not the grants that were computed",
                detail=f"computed: {expected.rows:,} rows, {expected.amounts}; there: {found.rows:,}, {found.amounts}",
                hint="nothing was committed; look into finale.grants before anyone is paid",
            )
        return found


def _fill(database: Database, key: int, batches: Iterable[pa.RecordBatch]) -> None:
    table = sql.Identifier("finale", _name(key))
    number = sql.Literal(key)
    database.run(sql.SQL("create table {} (like finale.grants including defaults including constraints)").format(table))
    statement = sql.SQL("copy {} ({}) from stdin (format binary)").format(
        table, sql.SQL(", ").join(map(sql.Identifier, COLUMNS))
    )
    with database.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(copying.HEADER)
        for batch in batches:
            for piece in copying.rows(batch, key):
                copy.write(piece)
        copy.write(copying.TRAILER)
    # The key is built from all rows at once, in a fraction of the time that keeping it up row by row takes.
    database.run(sql.SQL("alter table {} add primary key (season_id, grant_id)").format(table))
    database.run(sql.SQL("alter table {} add check (season_id = {})").format(table, number))
    database.run(sql.SQL("alter table finale.grants attach partition {} for values in ({})").format(table, number))


def tiers(database: Database, key: int) -> list[Mapping[str, Any]]:
    """Return rule, item, number of grants and their amount together, by the first position each rule pays."""
    return [{**row, "amount": int(row["amount"])} for row in database.rows("grants.tiers", {"key": key})]
