"""Standings and totals as Arrow, made from plain numbers, with drift planted in them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

SCHEMA = pa.schema([("player_id", pa.binary()), ("points", pa.int64()), ("reached_at", pa.timestamp("us", tz="UTC"))])
EPOCH = 1_600_000_000_000_000
MINUTE = 60_000_000

#: Points, and the microsecond at which they were reached; either may be None.
Held = tuple[int | None, int | None]
Side = dict[bytes, Held]


def season(players: int, seed: int = 1) -> Side:
    """Return totals of ``players``, reached at whole minutes of a season."""
    chance = random.Random(seed)
    return {
        b"player %07d" % number: (chance.randint(-5, 10_000), EPOCH + chance.randrange(100_000) * MINUTE)
        for number in range(players)
    }


def batches(
    side: Mapping[bytes, Held] | Iterable[tuple[bytes | None, int | None, int | None]], rows: int = 700
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in an order of their own, some at a time."""
    listed = [(name, *held) for name, held in side.items()] if isinstance(side, Mapping) else list(side)
    random.Random(len(listed)).shuffle(listed)
    for start in range(0, max(len(listed), 1), rows):
        ids, points, times = zip(*listed[start : start + rows], strict=True) if listed else ((), (), ())
        yield pa.RecordBatch.from_arrays(
            [pa.array(ids, pa.binary()), pa.array(points, pa.int64()), pa.array(times, SCHEMA.field(2).type)],
            schema=SCHEMA,
        )


def reader(side: Mapping[bytes, Held] | Iterable[tuple[bytes | None, int | None, int | None]]) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(SCHEMA, batches(side))


@dataclass
class Planted:
    """Both sides of a season, alike but for the drift that was planted; ``expected`` names it, a class a player."""

    redis: Side
    ledger: Side
    expected: dict[bytes, str] = field(default_factory=dict)

    def plant(self, kind: str, players: Iterable[bytes]) -> None:
        """Let each of ``players`` drift in the way that ``kind`` says."""
        for name in players:
            points, reached_at = self.ledger[name]
            assert points is not None and reached_at is not None
            if kind == "only_ledger":
                del self.redis[name]
            elif kind == "only_redis":
                del self.ledger[name]
            elif kind == "points_differ":
                self.redis[name] = (points + 7, reached_at)
            else:
                self.redis[name] = (points, reached_at + MINUTE)
            self.expected[name] = kind


def planted(players: int, seed: int = 1) -> Planted:
    ledger = season(players, seed)
    return Planted(dict(ledger), ledger)
