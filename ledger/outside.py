"""A ledger that is the user's own: their SQL, checked, with its parameters bound, in a transaction that only reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
import pyarrow as pa
from psycopg.rows import DictRow

from leaderboard.board import Board
from leaderboard.errors import AccessError, FinaleError, SeasonHeldError
from leaderboard.season import Bounds
from leaderboard.truth import OutsideLedger
from ledger import stream
from ledger.bucketed import Bucketed
from ledger.database import Database
from ledger.failures import REFUSED_FOR_NOW, where
from ledger.stream import Stream

_PARAMETER = re.compile(r"%(?:\((\w+)\)s|%)")
_CASTS = {"starts_at": "::timestamptz", "ends_at": "::timestamptz", "season": "", "board": ""}
_SHOWN = 5
#: How each type of PostgreSQL becomes what is compared; a type that is not here is refused.
_IDS = {"bytea": "player_id"} | dict.fromkeys(
    ("text", "varchar", "uuid", "int2", "int4", "int8"), "convert_to(player_id::text, 'UTF8')"
)
_POINTS = dict.fromkeys(("int2", "int4", "int8"), "points::bigint") | {
    # What sum(bigint) gives. A cast would round, so a fraction becomes null, which is refused.
    "numeric": "case when points = trunc(points) then points::bigint end"
}
_TIMES = {"timestamptz": "case when isfinite(reached_at) then reached_at end"}
_COLUMNS = {
    "player_id": (_IDS, "text, varchar, uuid, a whole number, or bytea"),
    "points": (_POINTS, "bigint, integer, smallint, or numeric without fractions"),
    "reached_at": (_TIMES, "timestamptz"),
}


class OutsideLedgerError(SeasonHeldError):
    """The user's SQL does not give what a ledger must; nothing was compared, and a person must correct it."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a season's totals are the user's: the URL, the SQL, and the season that it is asked for."""

    url: str
    ledger: OutsideLedger
    board: Board
    bounds: Bounds
    statement_timeout: float = 600  #: seconds

    @property
    def statement(self) -> str:
        """The SQL with a setting in each parameter's place, so that no value ever stands in its text."""
        return _PARAMETER.sub(
            lambda found: f"current_setting('finale.{found[1]}'){_CASTS[found[1]]}" if found[1] else "%",
            self.ledger.sql,
        )

    @property
    def settings(self) -> Mapping[str, str]:
        """The values of the parameters."""
        return {
            "starts_at": self.bounds.starts_at.isoformat(),
            "ends_at": self.bounds.ends_at.isoformat(),
            "season": self.bounds.id,
            "board": self.board.name,
        }


def checked(source: Source) -> str:
    """Return a query of ``player_id`` bytea, ``points`` bigint and ``reached_at`` timestamptz, ready to be streamed.

    Raises OutsideLedgerError for SQL that PostgreSQL refuses, that writes, or whose columns or types are others; what
    the server raises for itself passes.
    """
    with _theirs(source), _connected(source) as database:
        types = _types(database, source)
    expressions = []
    if set(types) != set(_COLUMNS) or len(types) != len(_COLUMNS):
        raise _fault(
            source,
            f"returns the columns {', '.join(types) or 'none'}",
            "a ledger returns exactly player_id, points, reached_at",
        )
    for name, (known, wanted) in _COLUMNS.items():
        if types[name] not in known:
            raise _fault(source, f"returns {name} as {types[name]}", f"{name} must be {wanted}; cast it in the SQL")
        expressions.append(f"{known[types[name]]} as {name}")
    return _select(source, ", ".join(expressions))


@contextmanager
def opened(source: Source) -> Iterator[Stream]:
    """Yield a stream of the ledger's database; what its server says of the user's SQL becomes OutsideLedgerError."""
    with _theirs(source), stream.opened(source.url, statement_timeout=source.statement_timeout) as found:
        yield found


@contextmanager
def reader(source: Source) -> Iterator[pa.RecordBatchReader]:
    """Yield the totals that the user's SQL gives: ``player_id`` binary, ``points`` int64, ``reached_at`` in UTC.

    Raises OutsideLedgerError as ``checked`` does, and while it is read for a player without an id, whole points or,
    where scores hold a time, one; UnavailableError when the server goes away.
    """
    query = checked(source)
    with opened(source) as found, found.rows(query, source.settings) as batches:
        yield pa.RecordBatchReader.from_batches(batches.schema, whole(source, batches))


@contextmanager
def in_buckets(source: Source, unit: tuple[int, int] | None) -> Iterator[Bucketed]:
    """Yield the totals that the user's SQL gives to be asked for by buckets of players.

    Rows that lack what is compared are looked for first, so that they are told as ``reader`` tells them.
    """
    query = checked(source)
    with opened(source) as found:
        needed = " or ".join(f"{name} is null" for name in _needed(source))
        lacking = f"select player_id, points, reached_at from ({query}) as rows where {needed} limit 1"  # noqa: S608 - the user's own SQL is what is asked
        with found.rows(lacking, source.settings) as faulty:
            for _ in whole(source, faulty):
                pass
        yield Bucketed(found, query, source.settings, unit)


def _needed(source: Source) -> tuple[str, ...]:
    return ("player_id", "points", *(("reached_at",) if source.board.packed else ()))


def whole(source: Source, batches: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield the batches; raise OutsideLedgerError at the first row that lacks what is compared."""
    needed = _needed(source)
    with _theirs(source):
        for batch in batches:
            for name in needed:
                if batch.column(name).null_count:
                    raise _lacking(source, batch, name)
            yield batch


def players(source: Source) -> int:
    """Return how many rows the user's SQL gives."""
    checked(source)
    with _theirs(source), _connected(source) as database:
        return int(_run(database, source, _select(source, "count(*) as n"))[0]["n"])


def repeated(source: Source) -> OutsideLedgerError:
    """Return the error that names the players that the user's SQL gives more than once."""
    with _theirs(source), _connected(source) as database:
        counted = _select(source, "player_id::text as player, count(*) as n")
        text = f"{counted} group by player_id having count(*) > 1 order by 2 desc, 1 limit {_SHOWN + 1}"
        rows = _run(database, source, text)
    named = ", ".join(f"{row['player']} {row['n']} times" for row in rows[:_SHOWN])
    more = ", and more" if len(rows) > _SHOWN else ""
    return _fault(source, f"gives players more than once: {named}{more}", "group by player_id, so that each comes once")


def _lacking(source: Source, batch: pa.RecordBatch, name: str) -> OutsideLedgerError:
    at = batch.column(name).is_null().to_pylist().index(True)
    player = batch.column("player_id")[at].as_py()
    of = "a player" if player is None else f"player {player.decode(errors='backslashreplace')}"
    what = {"points": "null, or no whole number", "reached_at": "null or infinite"}.get(name, "null")
    return _fault(source, f"gives {of} a {name} that is {what}", "every player needs each of them, once and whole")


def _types(database: Database, source: Source) -> dict[str, str]:
    """Return the names of the columns, each with the name of its type in PostgreSQL."""
    _set(database, source)
    with database.cursor() as cursor:
        _execute(cursor, f"{_select(source, '*')} limit 0")
        columns = [(column.name, column.type_code) for column in cursor.description or ()]
    rows = database.run(
        b"select oid::int8 as oid, typname::text as name from pg_type where oid = any(%(oids)s::oid[])",
        {"oids": [code for _, code in columns]},
    )
    names = {row["oid"]: row["name"] for row in rows}
    found = {name: names.get(code, f"type {code}") for name, code in columns}
    if len(found) != len(columns):
        raise _fault(source, f"returns the columns {', '.join(name for name, _ in columns)}", "name each column once")
    return found


@contextmanager
def _connected(source: Source) -> Iterator[Database]:
    with Database(source.url, statement_timeout=source.statement_timeout) as database, database.transaction():
        database.run(b"set transaction isolation level repeatable read, read only")
        yield database


def _select(source: Source, what: str) -> str:
    return f"select {what} from (\n{source.statement}\n) as totals"  # noqa: S608 - the user's own SQL is what is asked


def _run(database: Database, source: Source, text: str) -> list[DictRow]:
    _set(database, source)
    with database.cursor() as cursor:
        _execute(cursor, text)
        return cursor.fetchall()


def _execute(cursor: psycopg.Cursor[DictRow], text: str) -> None:
    """Send one statement: asked for in binary, the driver takes the protocol that refuses a second one behind it."""
    cursor.execute(text.encode(), binary=True)


def _set(database: Database, source: Source) -> None:
    for name, value in source.settings.items():
        database.run(b"select set_config(%(name)s, %(value)s, true)", {"name": f"finale.{name}", "value": value})


@contextmanager
def _theirs(source: Source) -> Iterator[None]:
    """Turn what the server refuses of the user's SQL into the error of whoever wrote it."""
    try:
        yield
    except OutsideLedgerError:
        raise
    except FinaleError as error:
        raise _refused(source, error) from error


def _refused(source: Source, error: FinaleError) -> FinaleError:
    sqlstate = stream.sqlstate_of(error.__cause__)
    if sqlstate == "25006":
        return _fault(source, f"writes: {error.detail}", "a ledger is only read; give a SELECT without side effects")
    if sqlstate == "57014":
        return _fault(
            source,
            f"did not finish within {source.statement_timeout:g} seconds",
            "give it an index, or raise [runner] statement_timeout",
        )
    if sqlstate == "42501":
        return AccessError(
            f"the ledger of board {source.board.name} may not be read",
            detail=error.detail,
            hint="grant the role SELECT",
        )
    if not sqlstate or sqlstate.startswith(REFUSED_FOR_NOW):
        return error
    return _fault(source, f"is refused by PostgreSQL: {error.detail}", "correct the SQL")


def _fault(source: Source, what: str, remedy: str) -> OutsideLedgerError:
    return OutsideLedgerError(
        f"{source.board.name}/{source.bounds.id}: the SQL of its ledger {what}",
        detail=f"board.{source.board.name}.ledger, at {where(source.url)}",
        hint=remedy,
    )
