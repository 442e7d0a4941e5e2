"""One connection to PostgreSQL, its transactions, and its errors in an operator's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, dict_row

from leaderboard.errors import FinaleError, OutcomeUnknownError
from ledger import portions, watchdog
from ledger.begun import Begun
from ledger.failures import translated, where
from ledger.sql import query

Params = Mapping[str, Any]
_ONLY_IF_ASKED = 1 << 30  #: times after which the driver would prepare a statement by itself


def conninfo(url: str, *, connect_timeout: float, statement_timeout: float) -> str:
    """Return ``url`` as libpq's text, with Finale's settings where it has none; it may hold a password."""
    given = conninfo_to_dict(url)
    options = (
        f"{given.get('options') or ''} -c timezone=UTC -c statement_timeout={int(statement_timeout * 1000)} "
        # A client that vanished or hangs within a transaction: its locks are let go, so that another can take over.
        "-c idle_in_transaction_session_timeout=60000 -c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 "
        "-c tcp_keepalives_count=3"
    )
    settings: dict[str, Any] = {
        "connect_timeout": max(2, int(connect_timeout)),
        "application_name": "finale",
        # A server whose machine vanished is noticed within a minute: by keepalives on an idle connection, and by the
        # last of these, in milliseconds, while anything sent is unacknowledged: Linux sends no keepalives then.
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 60_000,
    }
    return make_conninfo("", **{**settings, **given, "options": options.strip()})


class Database:
    """A connection in autocommit; ``transaction()`` groups statements. Rows come as dicts, times as aware UTC.

    One thread at a time may use it. ``connect_timeout`` and ``statement_timeout`` are in seconds.
    """

    def __init__(self, url: str, *, connect_timeout: float = 10, statement_timeout: float = 600) -> None:
        self.url = url
        self._place = where(url)
        self._silence = watchdog.silence(statement_timeout)
        self._depth = 0
        with translated(url):
            self._connection: psycopg.Connection[DictRow] = psycopg.connect(
                conninfo(url, connect_timeout=connect_timeout, statement_timeout=statement_timeout),
                autocommit=True,
                # A pooler in transaction mode hands the next statement to another server process.
                prepare_threshold=None,
                row_factory=dict_row,
            )
        # Under a stricter level a transaction would not see what was committed while it waited for a lock.
        self._connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED

    def close(self) -> None:
        self._connection.close()

    @property
    def usable(self) -> bool:
        """Whether the connection stands and is in no transaction."""
        return not self._connection.closed and self._depth == 0

    @cached_property
    def _direct(self) -> bool:
        """Whether statements always reach the same server process, so that it may prepare them."""
        direct = bool(self.run(b"select pg_backend_pid() as pid")[0]["pid"] == self.told_pid)
        if direct:
            self._connection.prepare_threshold = _ONLY_IF_ASKED
        return direct

    @property
    def told_pid(self) -> int:
        """The server process that was named at login; a pooler names one of its own making."""
        return self._connection.info.backend_pid

    def cut(self) -> None:
        """Break the connection off from any thread: whoever waits for an answer on it gets UnavailableError at once."""
        portions.cut(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Commit at the end of the block, roll back on any error in it. Nested blocks are savepoints.

        Raises OutcomeUnknownError if the connection broke while it was being committed.
        """
        with self._committing(self._connection.transaction()):
            yield self

    @contextmanager
    def begun(self, *steps: tuple[str, Params]) -> Iterator[list[DictRow]]:
        """Begin a transaction with these named queries, all in one round trip, and yield the rows of the last.

        They run often, see ``rows``. The block is the rest of the transaction, otherwise as ``transaction``.
        """
        prepare = self._direct or None
        work = Begun(self._connection, [(query(name), params) for name, params in steps], prepare)
        with self._committing(work):
            yield work.rows

    @contextmanager
    def _committing(self, work: AbstractContextManager[object]) -> Iterator[None]:
        committing = False
        self._depth += 1
        try:
            with translated(self.url), self._watched_transaction(work):
                yield
                committing = self._depth == 1
        except FinaleError as error:
            if committing and self._connection.broken:
                raise self._outcome_unknown() from error
            raise
        finally:
            self._depth -= 1

    @contextmanager
    def _watched_transaction(self, work: AbstractContextManager[object]) -> Iterator[None]:
        """Begin and end a transaction; beginning and ending, not the block, must be answered in time."""
        with watchdog.watched(self.cut, self._silence):
            work.__enter__()
        try:
            yield
        except BaseException as error:
            with watchdog.watched(self.cut, self._silence):
                rolled_back_on_purpose = work.__exit__(type(error), error, error.__traceback__)
            if not rolled_back_on_purpose:
                raise
            return
        with watchdog.watched(self.cut, self._silence):
            work.__exit__(None, None, None)

    @contextmanager
    def cursor(self) -> Iterator[psycopg.Cursor[DictRow]]:
        """Return a cursor for COPY and the like, under the same translation of errors."""
        with translated(self.url), watchdog.watched(self.cut, self._silence), self._connection.cursor() as cursor:
            yield cursor

    def rows(
        self, name: str, params: Params | None = None, *, binary: bool = False, often: bool = False
    ) -> list[DictRow]:
        """Run the named query and return all its rows.

        ``binary`` is the cheaper way for long arrays of values. What runs ``often`` the server plans once, where it is
        reached without a pooler: that takes longer than a small statement itself.
        """
        return self.run(query(name), params, binary=binary, prepare=True if often and self._direct else None)

    def together(self, *steps: tuple[str, Params]) -> list[list[DictRow]]:
        """Run named queries in one round trip, all or none, and return the rows of each; they run often, see ``rows``.

        Each sees what was committed before it began. Raises OutcomeUnknownError as ``run`` does.
        """
        prepare = self._direct or None
        try:
            with translated(self.url), watchdog.watched(self.cut, self._silence), ExitStack() as stack:
                cursors = [stack.enter_context(self._connection.cursor()) for _ in steps]
                with self._connection.pipeline():
                    for cursor, (name, params) in zip(cursors, steps, strict=True):
                        cursor.execute(query(name), params, prepare=prepare)
                return [cursor.fetchall() if cursor.description else [] for cursor in cursors]
        except FinaleError as error:
            if self._depth == 0 and self._connection.broken:
                raise self._outcome_unknown() from error
            raise

    def row(self, name: str, params: Params | None = None) -> DictRow | None:
        """Run the named query and return its first row, None if there is none."""
        rows = self.rows(name, params)
        return rows[0] if rows else None

    def run(
        self,
        text: bytes | sql.Composed,
        params: Params | None = None,
        *,
        binary: bool = False,
        prepare: bool | None = None,
    ) -> list[DictRow]:
        """Run a statement given as bytes, or composed from checked identifiers; return its rows, if it has any.

        Raises OutcomeUnknownError if it may have changed something and the connection broke before the answer.
        """
        try:
            with self.cursor() as cursor:
                cursor.execute(text, params, binary=binary, prepare=prepare)
                return cursor.fetchall() if cursor.description else []
        except FinaleError as error:
            if self._depth == 0 and self._connection.broken and not _only_reads(text):
                raise self._outcome_unknown() from error
            raise

    def stream(self, name: str, params: Params, rows: int) -> Iterator[list[DictRow]]:
        """Yield the rows of the named query in portions of ``rows``, from a cursor of the server.

        A server that is silent for too long is given up at any portion, as it is anywhere. Nothing else may use the
        connection until the last portion was taken.
        """
        opened = portions.opened(self._connection, query(name), params, silence=self._silence)
        with self.transaction(), opened as found:
            yield from found.of(rows)

    def now(self) -> datetime:
        """Return PostgreSQL's clock: the only one that decides what is due."""
        found = self.run(b"select clock_timestamp() as now")[0]["now"]
        assert isinstance(found, datetime)
        return found

    def _outcome_unknown(self) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            f"the connection to PostgreSQL at {self._place} broke before a change was confirmed",
            detail="it may have been made, or not",
            hint="run the command again; it looks at what is there first",
        )


def _only_reads(text: bytes | sql.Composed) -> bool:
    return isinstance(text, bytes) and text.lstrip().lower().startswith(b"select")
