"""Facts about players from the user's tables and SQL, which can only read."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from leaderboard.errors import FinaleError, InputError
from ledger import portions
from ledger.database import conninfo
from ledger.failures import translated
from ledger.watchdog import silence

Rows = Generator[list[tuple[Any, ...]], None, None]  #: some thousand at a time; to close it ends the connection
_AT_ONCE = 20_000
_LONGEST = 600.0  #: seconds that a statement may take, and each portion of its rows
_FOR_NOW = ("08", "40", "53", "57")  # classes of SQLSTATE that say nothing of the statement


def listed(url: str, table: str, columns: Sequence[str], optional: Sequence[str] = ()) -> Rows:
    """Yield the named columns of a table or view, as ``queried`` does."""
    name = sql.Identifier(*table.split("."))
    return _rows(url, sql.SQL("select * from {}").format(name), None, columns, optional)


def queried(
    url: str, text: str, params: Mapping[str, Any], columns: Sequence[str], optional: Sequence[str] = ()
) -> Rows:
    """Yield the named columns of the user's own SQL; those that are ``optional`` and not there as None.

    The statement is sent alone, its ``%(name)s`` bound, in a transaction that can only read. The first column comes as
    bytes, which are never None. Raises InputError for missing columns and values that are no id, and what PostgreSQL
    refuses.
    """
    return _rows(url, text.encode(), params, columns, optional)


def _rows(
    url: str,
    statement: bytes | sql.Composed,
    params: Mapping[str, Any] | None,
    columns: Sequence[str],
    optional: Sequence[str],
) -> Rows:
    given = conninfo(url, connect_timeout=10, statement_timeout=_LONGEST)
    with _theirs(), translated(url), closing(psycopg.connect(given, prepare_threshold=None)) as it:
        it.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        it.read_only = True
        with portions.opened(it, statement, params, silence=silence(_LONGEST), binary=True) as found:
            names = found.columns
            if missing := [name for name in columns if name not in names]:
                raise InputError(
                    f"facts about players lack the column {', '.join(missing)}",
                    detail=f"there are {', '.join(names) or 'none'}",
                    hint=f"name them {', '.join((*columns, *optional))}",
                )
            places = [names.index(name) if name in names else None for name in (*columns, *optional)]
            for rows in found.of(_AT_ONCE):
                yield [
                    (_id(row[places[0] or 0]), *(None if at is None else row[at] for at in places[1:])) for row in rows
                ]


@contextmanager
def _theirs() -> Iterator[None]:
    """Turn what the server refuses of a statement, for good, into the error of whoever wrote it."""
    try:
        yield
    except FinaleError as error:
        sqlstate = getattr(error.__cause__, "sqlstate", None)
        if not sqlstate or sqlstate.startswith(_FOR_NOW):
            raise
        raise InputError(
            "PostgreSQL refuses the query for facts about players",
            detail=error.detail or error.message,
            hint="correct the SQL or the table's name in the reward table; it can only read, in one statement",
        ) from error


def _id(value: Any) -> bytes:
    match value:
        case bytes() | memoryview():
            return bytes(value)
        case str() | UUID():
            return str(value).encode()
        case int() if not isinstance(value, bool):
            return str(value).encode()
    what = "null" if value is None else f"no id: {value} ({type(value).__name__})"
    raise InputError(
        f"facts about players have a player_id that is {what}",
        hint="give text, uuid, a whole number or bytea, and no null; in SQL as player_id::text",
    )
