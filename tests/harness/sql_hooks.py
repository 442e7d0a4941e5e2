"""Statements of psycopg, with BEGIN, COMMIT, ROLLBACK, savepoints, both ends of COPY and connecting; those of ADBC."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import adbc_driver_manager
import adbc_driver_manager.dbapi
import adbc_driver_postgresql.dbapi
import psycopg
import psycopg._connection_base  # its generators are where every statement passes, and have no public name
import psycopg._copy
import psycopg._cursor_base

from tests.harness.calls import Calls
from tests.harness.plan import Deed

Work = Generator[Any, Any, Any]  #: how psycopg talks to a server

#: What a statement that timed out in the server is replaced with, so that its transaction is as it would be.
_CANCELED = b"do $$ begin raise exception using errcode = '57014', message = 'canceling statement'; end $$"


def install(calls: Calls) -> None:
    """Count every statement."""
    _hook_postgres(calls)
    _hook_adbc(calls)


def _hook_postgres(calls: Calls) -> None:
    base: Any = psycopg._connection_base.BaseConnection
    cursors: Any = psycopg._cursor_base.BaseCursor
    writer: Any = psycopg._copy.LibpqWriter
    command, connect = base._exec_command, base._connect_gen.__func__
    statement, copy, finish = cursors._maybe_prepare_gen, cursors._start_copy_gen, writer.finish

    def broken(pgconn: Any, lost: str) -> psycopg.OperationalError:
        pgconn.finish()
        what = "could not receive data: Connection timed out" if lost == "timeout" else "server closed the connection"
        return psycopg.OperationalError(f"{what} (planned)")

    def through(connection: Any, text: str, work: Work, control: bool = False) -> Work:
        fate = calls.begin("postgres", text)
        if fate.before == "timeout" and not control:
            yield from command(connection, _CANCELED)
        if fate.before:
            raise broken(connection.pgconn, fate.before)
        try:
            return (yield from work)
        finally:
            calls.end(fate)
            if fate.after in ("fail", "timeout"):
                raise broken(connection.pgconn, fate.after)

    def hooked_command(self: Any, text: Any, *args: Any, **options: Any) -> Work:
        said = text.decode() if isinstance(text, bytes) else str(text)
        return (yield from through(self, said, command(self, text, *args, **options), control=True))

    def hooked_statement(self: Any, query: Any, **options: Any) -> Work:
        return (yield from through(self._conn, _sql_text(query.query), statement(self, query, **options)))

    def hooked_copy(self: Any, text: Any, params: Any = None) -> Work:
        said = _sql_text(text if isinstance(text, bytes) else text.as_bytes(self._conn))
        return (yield from through(self._conn, said, copy(self, text, params)))

    def hooked_finish(self: Any, exc: BaseException | None = None) -> None:
        if exc is not None:
            finish(self, exc)
            return
        calls.passed("postgres", "end of copy", lambda: finish(self), lambda lost: broken(self._pgconn, lost))

    def hooked_connect(cls: Any, *args: Any, **options: Any) -> Work:
        fate = calls.begin("postgres", "connect")
        if fate.before:
            raise psycopg.OperationalError(f"connection failed: planned {fate.before}")
        connection = yield from connect(cls, *args, **options)
        calls.end(fate)
        if fate.after in ("fail", "timeout"):
            raise broken(connection.pgconn, fate.after)
        return connection

    base._exec_command, base._connect_gen = hooked_command, classmethod(hooked_connect)
    cursors._maybe_prepare_gen, cursors._start_copy_gen = hooked_statement, hooked_copy
    writer.finish = hooked_finish


def _sql_text(text: bytes) -> str:
    """Return the beginning of a statement, on one line and without comments."""
    lines = [line for line in text.decode().splitlines() if not line.strip().startswith("--")]
    return " ".join(" ".join(lines).split())[:100]


def _hook_adbc(calls: Calls) -> None:
    dbapi: Any = adbc_driver_manager.dbapi
    postgresql: Any = adbc_driver_postgresql.dbapi
    execute, connect = dbapi.Cursor.execute, postgresql.connect

    def error(lost: Deed) -> Exception:
        made: Exception = dbapi.OperationalError(f"planned {lost}", status_code=adbc_driver_manager.AdbcStatusCode.IO)
        return made

    def hooked_execute(self: Any, operation: Any, parameters: Any = None) -> Any:
        text = _sql_text(operation.encode())
        return calls.passed("adbc", text, lambda: execute(self, operation, parameters), error)

    def hooked_connect(*args: Any, **options: Any) -> Any:
        return calls.passed("adbc", "connect", lambda: connect(*args, **options), error)

    dbapi.Cursor.execute = hooked_execute
    postgresql.connect = hooked_connect
