"""A transaction whose first statements go to the server together: each of them waits for no answer but the last's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import pq
from psycopg.rows import DictRow


@dataclass
class Begun:
    """Entered, it begins a transaction of the idle connection and runs ``statements``; ``rows`` are the last one's.

    Left, it commits, or rolls back on an error; psycopg's Rollback goes no further.
    """

    connection: psycopg.Connection[DictRow]
    statements: Sequence[tuple[bytes, Mapping[str, Any]]]
    prepare: bool | None
    rows: list[DictRow] = field(default_factory=list)

    def __enter__(self) -> Self:
        try:
            with self.connection.cursor() as cursor:
                with self.connection.pipeline():
                    self.connection.execute(b"BEGIN ISOLATION LEVEL READ COMMITTED")
                    for text, params in self.statements[:-1]:
                        self.connection.execute(text, params, prepare=self.prepare)
                    cursor.execute(*self.statements[-1], prepare=self.prepare)
                self.rows = cursor.fetchall() if cursor.description else []
        except BaseException:
            self._roll_back()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if kind is None:
            self.connection.execute(b"COMMIT")
            return False
        self._roll_back()
        return isinstance(error, psycopg.Rollback)

    def _roll_back(self) -> None:
        if not self.connection.closed and self.connection.info.transaction_status is not pq.TransactionStatus.IDLE:
            self.connection.execute(b"ROLLBACK")
