"""The totals of a season as Arrow, at the server's own pace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from adbc_driver_manager import Error as AdbcError
from adbc_driver_postgresql import StatementOptions, dbapi

from leaderboard.errors import FinaleError, UnavailableError
from ledger.database import Database, conninfo
from ledger.failures import refusal, where

#: How large a batch is, about; the driver's own choice is 16 MB.
_BATCH_BYTES = 4_000_000
_QUERY = (
    "select player_id, points, reached_at from finale.player_total "
    "where season_id = current_setting('finale.season')::int"
)


@dataclass(frozen=True, slots=True)
class Sum:
    """How many players a season has, and their points together, exactly."""

    players: int
    points: int


def summed(database: Database, key: int) -> Sum:
    """Return the number of players and the sum of their points."""
    row = database.row("pending.totals", {"key": key})
    assert row is not None
    return Sum(row["players"], int(row["points"]))


@contextmanager
def reader(url: str, key: int) -> Iterator[pa.RecordBatchReader]:
    """Yield the season's totals: ``player_id`` binary, ``points`` int64, ``reached_at`` timestamp[us, UTC].

    One statement, so one state of the ledger. Opening it and reading from it raise UnavailableError when the server
    goes away, AccessError when it refuses.
    """
    where(url)  # a URL that cannot be read is refused before the driver shows a piece of it
    with _translated(url):
        connection = dbapi.connect(conninfo(url, connect_timeout=10, statement_timeout=0))
    with connection, connection.cursor() as cursor:
        with _translated(url):
            # The driver streams by COPY only what has no bound parameters, so the season goes in through a setting of
            # the transaction.
            cursor.execute("select set_config('finale.season', $1, true)", (str(key),))
            cursor.fetchall()
            cursor.adbc_statement.set_options(**{StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(_BATCH_BYTES)})
            cursor.execute(_QUERY)
            batches = cursor.fetch_record_batch()
        yield pa.RecordBatchReader.from_batches(batches.schema, _read(url, batches))


def _read(url: str, batches: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    with _translated(url):
        yield from batches


@contextmanager
def _translated(url: str) -> Iterator[None]:
    try:
        yield
    except (AdbcError, OSError, pa.ArrowException) as error:
        raise _translation(url, error) from error


def _translation(url: str, error: Exception) -> FinaleError:
    sqlstate = getattr(error, "sqlstate", None)
    if sqlstate and not sqlstate.startswith(("08", "53", "57")):
        return refusal(where(url), sqlstate, str(error).splitlines()[0])
    return UnavailableError(
        f"PostgreSQL at {where(url)} broke off while totals were read", hint="run the command again"
    )
