"""Errors of what DuckDB reads, kept as they are: it would make them errors of its own, with their text only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from leaderboard.errors import FinaleError


def kept(batches: Iterable[pa.RecordBatch], failures: list[FinaleError]) -> Iterator[pa.RecordBatch]:
    """Yield the batches, and add to ``failures`` what reading them raises."""
    try:
        yield from batches
    except FinaleError as error:
        failures.append(error)
        raise


@contextmanager
def raised(*failures: list[FinaleError]) -> Iterator[None]:
    """Raise the first of ``failures`` in place of the error that DuckDB made of it; else DuckDB's."""
    try:
        yield
    except duckdb.Error:
        for error in (error for each in failures for error in each):
            raise error from error.__cause__
        raise
