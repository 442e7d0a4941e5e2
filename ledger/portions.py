"""The rows of one statement in portions, from a cursor of the server, whose every answer must come in time."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import psycopg
from psycopg import sql

from ledger.watchdog import watched

Row = TypeVar("Row")


def cut(connection: psycopg.Connection[Any]) -> None:
    """Break a connection off from any thread: whoever waits for an answer on it gets an error at once."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class Portions(Generic[Row]):
    """What a statement returns, for as long as its transaction lasts."""

    _cursor: psycopg.ServerCursor[Row]
    _cut: Callable[[], None]
    _silence: float

    @property
    def columns(self) -> list[str]:
        """The columns' names."""
        return [column.name for column in self._cursor.description or ()]

    def of(self, rows: int) -> Iterator[list[Row]]:
        """Yield so many rows at a time, each time within the silence that is borne."""
        while True:
            with watched(self._cut, self._silence):
                found = self._cursor.fetchmany(rows)
            if not found:
                return
            yield found


@contextmanager
def opened(
    connection: psycopg.Connection[Row],
    statement: bytes | sql.Composed,
    params: Mapping[str, Any] | None,
    *,
    silence: float,
    binary: bool = False,
) -> Iterator[Portions[Row]]:
    """Yield what a statement returns; a server that is silent for so many seconds is given up."""

    def give_up() -> None:
        cut(connection)

    cursor = connection.cursor(name="finale")
    try:
        with watched(give_up, silence):
            cursor.execute(statement, params, binary=binary)
        yield Portions(cursor, give_up, silence)
    finally:
        try:
            with watched(give_up, silence):
                cursor.close()
        finally:
            cursor.close()  # for this side too, where the server no longer answers
