"""The totals of a season as Arrow, at the server's own pace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from ledger import stream
from ledger.bucketed import Bucketed
from ledger.database import Database


@dataclass(frozen=True, slots=True)
class Sum:
    """How many players a season has, and their points together, exactly."""

    players: int
    points: int


def _totals(key: int) -> str:
    """Return the query of one season's totals.

    The number stands in the text, as that of a partition does: a setting would be read again for every row, and a
    subquery would keep from the planner which season it is.
    """
    return f"select player_id, points, reached_at from finale.player_total where season_id = {key:d}"  # noqa: S608 - a number of ours


def summed(database: Database, key: int) -> Sum:
    """Return the number of players and the sum of their points."""
    row = database.row("pending.totals", {"key": key})
    assert row is not None
    return Sum(row["players"], int(row["points"]))


@contextmanager
def reader(url: str, key: int, silent_for: float | None = None) -> Iterator[pa.RecordBatchReader]:
    """Yield the season's totals: ``player_id`` binary, ``points`` int64, ``reached_at`` timestamp[us, UTC].

    One statement, so one state of the ledger. Opening it and reading from it raise UnavailableError when the server
    goes away or is silent for so many seconds, AccessError when it refuses.
    """
    with stream.opened(url, silent_for=silent_for) as opened, opened.rows(_totals(key), {}) as batches:
        yield batches


@contextmanager
def matches(url: str, key: int) -> Iterator[pa.RecordBatchReader]:
    """Yield how many results of each player counted: ``player_id`` binary, in byte order, and ``matches`` int64.

    Otherwise as ``reader``.
    """
    query = f"select player_id, matches::int8 as matches from finale.player_total where season_id = {key:d}"  # noqa: S608 - a number of ours
    with stream.opened(url) as opened, opened.rows(f"{query} order by player_id", {}) as batches:
        yield batches


@contextmanager
def in_buckets(url: str, key: int, unit: tuple[int, int] | None, silent_for: float | None = None) -> Iterator[Bucketed]:
    """Yield the season's totals to be asked for by buckets of players; otherwise as ``reader``."""
    with stream.opened(url, silent_for=silent_for) as opened:
        yield Bucketed(opened, _totals(key), {}, unit)
