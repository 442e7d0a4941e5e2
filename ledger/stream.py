"""Rows as Arrow at the server's own pace: one state of the database, read only, whatever the statement says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from adbc_driver_manager import Error as AdbcError
from adbc_driver_manager._reader import AdbcRecordBatchReader
from adbc_driver_postgresql import StatementOptions, dbapi

from leaderboard.errors import FinaleError, UnavailableError
from ledger.database import conninfo
from ledger.failures import REFUSED_FOR_NOW, refusal, where

#: How large a batch is, about; the driver's own choice is 16 MB.
_BATCH_BYTES = 4_000_000
#: libpq puts two spaces between the severity, which comes in the server's language, and what it says.
_SAID = re.compile(r"\S+: {2}([^\n]*)")
_READ_ONLY = "set transaction isolation level repeatable read, read only"


@dataclass(frozen=True, slots=True)
class Stream:
    """One transaction, repeatable read and read only, in which statements are streamed one after another."""

    url: str
    _connection: Any

    @contextmanager
    def rows(self, statement: str, settings: Mapping[str, str]) -> Iterator[pa.RecordBatchReader]:
        """Yield what ``statement`` returns; it reads ``settings`` with ``current_setting('finale.<name>')``.

        The driver streams by COPY only what has no bound parameters, so values go in through settings of the
        transaction, and never into the text. Raises UnavailableError, AccessError, or what ``refusal`` makes of it.
        """
        with self._connection.cursor() as cursor:
            with _translated(self.url):
                for name, value in settings.items():
                    cursor.execute("select set_config($1, $2, true)", (f"finale.{name}", value))
                    cursor.fetchall()
                cursor.adbc_statement.set_options(**{StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(_BATCH_BYTES)})
                cursor.execute(statement)
                # The cursor's own reader is pyarrow's, which drops the server's error code; this is the driver's.
                handle = cursor.fetch_arrow()
                batches = AdbcRecordBatchReader._import_from_c(handle.address)  # noqa: SLF001
            yield pa.RecordBatchReader.from_batches(batches.schema, _read(self.url, batches))


@contextmanager
def opened(url: str, *, connect_timeout: float = 10, statement_timeout: float = 0) -> Iterator[Stream]:
    """Yield a stream over a connection of its own, closed at the end; timeouts in seconds, 0 for none."""
    where(url)  # a URL that cannot be read is refused before the driver shows a piece of it
    with _translated(url):
        settings = conninfo(url, connect_timeout=connect_timeout, statement_timeout=statement_timeout)
        connection = dbapi.connect(settings)
    with connection:
        with _translated(url), connection.cursor() as cursor:
            cursor.execute(_READ_ONLY)
        yield Stream(url, connection)


def _read(url: str, batches: AdbcRecordBatchReader) -> Iterator[pa.RecordBatch]:
    with _translated(url):
        yield from batches


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
