"""Rows as Arrow at the server's own pace: one state of the database, read only, whatever the statement says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from adbc_driver_manager import Error as AdbcError
from adbc_driver_manager._reader import AdbcRecordBatchReader
from adbc_driver_postgresql import StatementOptions, dbapi

from leaderboard.errors import FinaleError, UnavailableError
from ledger.database import conninfo
from ledger.failures import REFUSED_FOR_NOW, refusal, where
from ledger.silent import Caller, FellSilentError
from ledger.watchdog import silence

#: How large a batch is, about; the driver's own choice is 16 MB.
_BATCH_BYTES = 4_000_000
#: libpq puts two spaces between the severity, which comes in the server's language, and what it says.
_SAID = re.compile(r"\S+: {2}([^\n]*)")
#: A statement without a timeout of its own may take so long until its first rows, in seconds.
_LONGEST = 600
_READ_ONLY = "set transaction isolation level repeatable read, read only"


@dataclass(frozen=True, slots=True)
class Stream:
    """One transaction, repeatable read and read only, in which statements are streamed one after another."""

    url: str
    _connection: Any
    _call: Caller

    @contextmanager
    def rows(
        self, statement: str, settings: Mapping[str, str], *, work_mem: str = ""
    ) -> Iterator[pa.RecordBatchReader]:
        """Yield what ``statement`` returns; it reads ``settings`` with ``current_setting('finale.<name>')``.

        The driver streams by COPY only what has no bound parameters, so values go in through settings of the
        transaction, and never into the text. ``work_mem``, if given, is what the server may sort and group in from
        here on, such as ``64MB``. Raises UnavailableError, AccessError, or what ``refusal`` makes of it.
        """
        named = {f"finale.{name}": value for name, value in settings.items()}
        named |= {"work_mem": work_mem} if work_mem else {}
        with ExitStack() as stack:
            with _translated(self.url):
                cursor, batches = self._call(lambda: self._execute(statement, named))
            stack.callback(_close, self._call, cursor)
            yield pa.RecordBatchReader.from_batches(batches.schema, _read(self.url, batches, self._call))

    def _execute(self, statement: str, settings: Mapping[str, str]) -> tuple[Any, Any]:
        cursor = self._connection.cursor()
        try:
            for name, value in settings.items():
                cursor.execute("select set_config($1, $2, true)", (name, value))
                cursor.fetchall()
            cursor.adbc_statement.set_options(**{StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(_BATCH_BYTES)})
            cursor.execute(statement)
            # The driver's own reader, which keeps the server's error code, by which a stream that broke off is told as
            # lost, refused or too slow. Nothing public returns it: fetch_record_batch gives pyarrow's, without the code
            # (apache/arrow-adbc#1523), and so does pyarrow from the handle.
            handle = cursor.fetch_arrow()
            return cursor, AdbcRecordBatchReader._import_from_c(handle.address)  # noqa: SLF001 - see above
        except BaseException:
            cursor.close()
            raise


@contextmanager
def opened(
    url: str, *, connect_timeout: float = 10, statement_timeout: float = 0, silent_for: float | None = None
) -> Iterator[Stream]:
    """Yield a stream over a connection of its own, closed at the end; timeouts in seconds, 0 for none.

    A server that hangs keeps no statement timeout, so one that gives no answer, or no further rows, for ``silent_for``
    seconds is given up.
    """
    where(url)  # a URL that cannot be read is refused before the driver shows a piece of it
    settings = conninfo(url, connect_timeout=connect_timeout, statement_timeout=statement_timeout)
    call = Caller("finale-stream", silent_for or silence(statement_timeout or _LONGEST))
    with ExitStack() as stack:
        stack.callback(call.end)
        with _translated(url):
            connection = call(lambda: dbapi.connect(settings))
        stack.callback(_close, call, connection)
        with _translated(url):
            call(lambda: _begin(connection))
        yield Stream(url, connection, call)


def _begin(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_READ_ONLY)


def _close(call: Caller, what: Any) -> None:
    """Close a cursor or connection; where its thread is still in a call on it, as soon as that has come back."""
    try:
        if not call.silent:
            call(what.close)
    except FellSilentError:
        return
    if call.silent:
        call.later(what.close)


def _read(url: str, batches: AdbcRecordBatchReader, call: Caller) -> Iterator[pa.RecordBatch]:
    """Yield the batches; the next one is received while whoever reads works on this."""
    with _translated(url):
        rows = iter(batches)
        ahead = call.begin(lambda: next(rows, None))
        while (batch := call.answer(ahead)) is not None:
            ahead = call.begin(lambda: next(rows, None))
            yield batch


@contextmanager
def _translated(url: str) -> Iterator[None]:
    try:
        yield
    except (AdbcError, OSError, pa.ArrowException) as error:
        raise _translation(url, error) from error


def _translation(url: str, error: Exception) -> FinaleError:
    sqlstate = sqlstate_of(error)
    if sqlstate and (sqlstate == "57014" or not sqlstate.startswith(REFUSED_FOR_NOW)):
        return refusal(where(url), sqlstate, _said(error))
    return UnavailableError(
        f"PostgreSQL at {where(url)} broke off while totals were read", hint="run the command again"
    )


def sqlstate_of(error: BaseException | None) -> str:
    """Return the server's error code; nothing where the server did not refuse but went away."""
    return str(getattr(error, "sqlstate", None) or "").strip("\0")


def _said(error: BaseException | None) -> str:
    """Return the server's own words, without the driver's before them or the statement after them."""
    found = _SAID.search(str(error))
    return found[1].strip() if found else ""
