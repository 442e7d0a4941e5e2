"""Counts and checksums of buckets of players, computed where the ledger is, and the rows of chosen buckets alone.

The bucket of a player is the first two bytes of SHA-256 of the id. A row's checksum is the first eight bytes, as a
whole number, of SHA-256 over the id, the points (eight bytes, big-endian) and, where times are compared, the time
floored to the unit (eight bytes, big-endian, microseconds since 2000 in UTC); a bucket's is their sum modulo 2^64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

from leaderboard.codec import from_microseconds
from ledger.stream import Stream

_MEMORY = "64MB"  #: what 65,536 groups take, so that the server does not spill them
_BUCKET = "('x' || encode(substr(sha256(player_id), 1, 2), 'hex'))::bit(16)::int4"
#: The settings stand in subqueries, so that they are read once and not for every row.
_FLOORED = (
    "timestamptz_send(date_bin((select current_setting('finale.unit')::interval), reached_at,"
    " (select current_setting('finale.epoch')::timestamptz)))"
)


@dataclass(frozen=True, slots=True)
class Bucketed:
    """Totals that can be asked for by buckets, all of one state: ``relation`` is a query of checked columns.

    ``unit`` has the microseconds of the season's start and of the unit; None where times are not compared.
    """

    stream: Stream
    relation: str
    settings: Mapping[str, str]
    unit: tuple[int, int] | None

    def tallies(self) -> pa.Table:
        """Return a row a bucket: its number, ``players``, and ``points`` and ``checksum`` as text of any size."""
        time = f" || {_FLOORED}" if self.unit else ""
        checked = f"sha256(player_id || int8send(points){time})"
        statement = (
            f"select {_BUCKET} as bucket, count(*)::int8 as players, sum(points)::text as points,"  # noqa: S608 - own words, and the relation that was given
            f" sum(('x' || encode(substr({checked}, 1, 8), 'hex'))::bit(64)::int8)::text as checksum"
            f" from ({self.relation}) as rows group by 1"
        )
        with self.stream.rows(statement, self._settings(), work_mem=_MEMORY) as reader:
            return reader.read_all()

    def rows(self, buckets: Sequence[int]) -> AbstractContextManager[Iterator[pa.RecordBatch]]:
        """Return a reader of the rows of these buckets, in the same state of the ledger."""
        statement = (
            f"select player_id, points, reached_at from ({self.relation}) as rows where {_BUCKET} in"  # noqa: S608 - own words, and the relation that was given
            " (select unnest(string_to_array(current_setting('finale.buckets'), ','))::int)"
        )
        named = {"buckets": ",".join(map(str, buckets)) or "-1"}
        return self.stream.rows(statement, {**self._settings(), **named})

    def _settings(self) -> Mapping[str, str]:
        if self.unit is None:
            return self.settings
        epoch, size = self.unit
        seconds = timedelta(microseconds=size).total_seconds()
        return {**self.settings, "epoch": from_microseconds(epoch).isoformat(), "unit": f"{seconds:g} seconds"}
