"""What PostgreSQL says of itself: version, role, rights, and whether a pooler stands before it. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.database import Database
from ledger.rights import OWNED, written

OLDEST = 140_000  #: the oldest version with all that the queries use, as server_version_num


@dataclass(frozen=True, slots=True)
class Server:
    """One PostgreSQL, as the connection sees it. ``bytes``: the database's size."""

    version: int
    named: str
    standby: bool
    role: str
    superuser: bool
    database: str
    bytes: int
    commits: str
    fsync: str
    same_machine: bool
    temporary: bool


def server(database: Database) -> Server:
    """Return what the server says of itself."""
    row = database.row("inspection.server")
    assert row is not None
    return Server(**row)


def folder(database: Database) -> str | None:
    """Return the server's data directory, None where the role may not know it."""
    row = database.row("inspection.folder")
    return row["folder"] if row else None


def lacking(database: Database) -> list[str]:
    """Return the rights that the role lacks in the ledger, each as a person grants it; none where nothing is missing.

    Tables that a pending migration will make are not missed.
    """
    (schema,) = database.rows("inspection.schema")
    if not schema["usage"]:
        return ["usage on schema finale"]
    missing = [] if schema["creates"] else ["create on schema finale"]
    wanted = written()
    for table in database.rows("inspection.tables"):
        needs = ["select", *wanted.get(table["name"], [])]
        missing += [f"{right} on finale.{table['name']}" for right in needs if not table[f"may_{right}"]]
        if table["name"] in OWNED and not table["owned"]:
            missing.append(f"ownership of finale.{table['name']}")
    missing += [f"usage on finale.{row['name']}" for row in database.rows("inspection.sequences") if not row["usage"]]
    return missing


def pooling(first: Database, second: Database) -> str:
    """Return how the two connections reach the server: ``none``, ``session`` or ``transaction`` pooling.

    Each is asked for its server process in turn, the second within a transaction: only where processes are handed from
    client to client after each transaction does the first then find another, or the second the first's.
    """
    before, told = _pid(first), first.told_pid
    with second.transaction():
        between = _pid(second)
        after = _pid(first)
    return kind_of_pooling(told, before, between, after)


def kind_of_pooling(told: int, before: int, between: int, after: int) -> str:
    """Return what four process ids say: the one told at login, the first's, the second's, the first's again."""
    if before != after or between == before:
        return "transaction"
    return "none" if told == before else "session"


def _pid(database: Database) -> int:
    row = database.row("inspection.pid")
    assert row is not None
    return int(row["pid"])
