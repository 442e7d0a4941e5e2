"""Connections to the ledger for threads that work side by side: one each, kept, and replaced when it has broken."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

from jobs.endpoints import ledger_database
from jobs.wiring import Outside
from ledger.database import Database

#: How long PostgreSQL may take for what a daemon looks at and tells: a step may wait for minutes, a daemon that does
#: would be blind, and deaf to SIGTERM.
BRIEF = timedelta(seconds=10)


class Pool:
    """Gives each thread the same clients with a connection to PostgreSQL of its own, which answers ``within`` a time.

    As many connections are open as threads have asked at once; whoever bounds these bounds the connections.
    """

    def __init__(self, outside: Outside, within: timedelta | None = None) -> None:
        self._outside, self._within = outside, within
        self._idle: queue.LifoQueue[Database] = queue.LifoQueue()

    @contextmanager
    def taken(self) -> Iterator[Outside]:
        """Yield the clients for one thread. Raises UnavailableError or AccessError if no connection can be made."""
        database = self._connection()
        try:
            yield replace(self._outside, database=database)
        finally:
            if database.usable:
                self._idle.put(database)
            else:
                database.close()

    def _connection(self) -> Database:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return ledger_database(self._outside.settings, self._outside.database.url, within=self._within)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return
