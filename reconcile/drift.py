"""What differs: one player's drift, the counts of every class, and the hash by which a difference is accepted."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from heapq import nsmallest
from typing import Any

import numpy as np
import pyarrow as pa

#: The classes of drift, in the order in which they are told.
CLASSES = ("only_redis", "only_ledger", "points_differ", "reached_at_differs")
#: Those of a season that is played: a snapshot that meets one of the last two is held before it is compared.
LIVE_CLASSES = (*CLASSES, "no_score", "several_shards")
IN_WORDS = {
    "only_redis": "only in Redis",
    "only_ledger": "only in the ledger",
    "points_differ": "with other points",
    "reached_at_differs": "with the same points reached at another time",
    "no_score": "with a score that is none of the board's",
    "several_shards": "in several shards",
}
#: A row a drifting player; null where the player is missing. Times in microseconds since 1970, UTC. ``redis_rows`` is
#: null where points and time say all.
SCHEMA = pa.schema(
    [
        ("player_id", pa.binary()),
        ("class", pa.string()),
        ("redis_points", pa.int64()),
        ("ledger_points", pa.int64()),
        ("redis_reached_at", pa.int64()),
        ("ledger_reached_at", pa.int64()),
        ("redis_rows", pa.list_(pa.struct([("key", pa.string()), ("score", pa.string())]))),
    ]
)
_NUMBERS = SCHEMA.names[:-1]  #: the columns that the hash of a difference is made of
_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a player in Redis: the key and the raw score, as text."""

    key: str
    score: str


@dataclass(frozen=True, slots=True)
class Drift:
    """One player whose snapshot and ledger differ; None where the player is missing. Times in microseconds.

    ``rows`` are what Redis has where points and time cannot say it: of ``no_score``, whose points are None, and of
    players in several shards, whose points are those of one row.
    """

    kind: str
    player_id: bytes | None  #: None for a row of the ledger that has no id
    redis_points: int | None
    ledger_points: int | None
    redis_reached_at: int | None
    ledger_reached_at: int | None
    rows: tuple[Row, ...] = ()

    @property
    def difference(self) -> int | None:
        """Redis's points less the ledger's; a missing player has none. None for a score that says no points."""
        if self.kind == "no_score":
            return None
        return (self.redis_points or 0) - (self.ledger_points or 0)

    @property
    def name(self) -> str:
        return "(no id)" if self.player_id is None else self.player_id.decode(errors="backslashreplace")

    @property
    def in_redis(self) -> str:
        """What ``rows`` say, in words."""
        where = ", ".join(f"key {row.key} (score {row.score})" for row in self.rows)
        said = ["has a score that is none of the board's"] if self.kind == "no_score" else []
        said += [f"stands in {len(self.rows)} shards"] if len(self.rows) > 1 else []
        return f"{', '.join(said)}: {where}"

    def __str__(self) -> str:
        if self.kind == "reached_at_differs":
            return f"{self.name}: {self.redis_points} points, reached at another time"
        here = "missing" if self.redis_points is None else self.redis_points
        there = "missing" if self.ledger_points is None else self.ledger_points
        if self.rows:
            return f"{self.name}: {self.in_redis}; ledger {there}"
        return f"{self.name}: Redis {here}, ledger {there}"


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Drift]:
    """Yield the rows of batches of ``SCHEMA`` one by one."""
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in SCHEMA.names]
        for player_id, kind, here, there, here_at, there_at, rows in zip(*columns, strict=True):
            yield Drift(kind, player_id, here, there, here_at, there_at, tuple(Row(**row) for row in rows or ()))


def batch_of(drift: Sequence[Drift]) -> pa.RecordBatch:
    """Return drifting players as a batch of ``SCHEMA``, in their order."""
    columns: list[list[Any]] = [
        [getattr(one, field) for one in drift]
        for field in ("player_id", "kind", "redis_points", "ledger_points", "redis_reached_at", "ledger_reached_at")
    ]
    columns.append([[asdict(row) for row in one.rows] or None for one in drift])
    arrays = [pa.array(values, kind) for values, kind in zip(columns, SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Counts of every class, and the sums of both sides; the classes add up to both totals.

    ``tolerated`` players differ by no more than the board's tolerance and are not drift. ``examples`` are the drifting
    players with the most points.
    """

    equal: int
    tolerated: int
    only_redis: int
    only_ledger: int
    points_differ: int
    reached_at_differs: int
    redis_points: int
    ledger_points: int
    null_ids: int  #: rows of either side without an id; each is drift
    examples: tuple[Drift, ...] = ()

    @property
    def drift(self) -> int:
        """How many players differ in any way."""
        return self.only_redis + self.only_ledger + self.points_differ + self.reached_at_differs

    @property
    def players_in_redis(self) -> int:
        return self.equal + self.tolerated + self.only_redis + self.points_differ + self.reached_at_differs

    @property
    def players_in_ledger(self) -> int:
        return self.equal + self.tolerated + self.only_ledger + self.points_differ + self.reached_at_differs

    @property
    def counted(self) -> str:
        """The classes that there are, in words: ``2 only in Redis, 1 with other points``."""
        counts = [(getattr(self, name), IN_WORDS[name]) for name in CLASSES]
        return ", ".join(f"{count:,} {words}" for count, words in counts if count)

    def to_json(self) -> dict[str, Any]:
        """Return the counts as plain JSON values, as the seal keeps them."""
        values = asdict(self)
        del values["examples"]
        return {**values, "drift": self.drift, "compared": "every player"}


class Found(ABC):
    """Drift that was found, of every player or of those that were looked at; no player twice."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield every drifting player in the order of their ids, as batches of ``SCHEMA``, as often as asked."""

    @abstractmethod
    def rows(self, limit: int) -> list[Drift]:
        """Return up to ``limit`` drifting players, those with the most points first."""

    def every(self) -> Iterator[Drift]:
        """Yield every drifting player in the order of their ids."""
        return rows_of(self.batches())

    def players(self) -> Iterator[bytes]:
        """Yield the ids of all drifting players."""
        for batch in self.batches():
            yield from batch.column("player_id").drop_null().to_pylist()

    def kinds(self) -> Counter[str]:
        """Return how many players drift in each way."""
        found = Counter[str]()
        for batch in self.batches():
            found.update(batch.column("class").to_pylist())
        return found

    def difference(self, season: str) -> str:
        """Return the hash of the whole difference, of the season called ``board/season``."""
        found, raw = Difference(season), False
        for batch in self.batches():
            found.add(batch)
            raw = raw or batch.column("redis_rows").null_count < batch.num_rows
        return _with_rows(found.hexdigest(), self.batches()) if raw else found.hexdigest()


def _with_rows(difference: str, batches: Iterable[pa.RecordBatch]) -> str:
    """Return the hash with what Redis has of each player where points and time cannot say it, as one JSON list."""
    found, between = hashlib.sha256(f"{difference}\n[".encode()), ""
    for batch in batches:
        for rows in batch.column("redis_rows").to_pylist():
            found.update(f"{between}{json.dumps([[row['key'], row['score']] for row in rows or ()])}".encode())
            between = ", "
    found.update(b"]")
    return found.hexdigest()


class Listed(Found):
    """Drifting players in memory, read as those of a whole comparison are."""

    def __init__(self, drift: Iterable[Drift]) -> None:
        self._drift = sorted(drift, key=lambda one: (one.player_id or b"", one.kind))

    def batches(self) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(self._drift), _ROWS):
            yield batch_of(self._drift[start : start + _ROWS])

    def rows(self, limit: int) -> list[Drift]:
        return nsmallest(limit, self._drift, key=by_points)


def by_points(one: Drift) -> tuple[int, bytes]:
    """Return by what players are sorted: those with the most points first."""
    held = [points for points in (one.redis_points, one.ledger_points) if points is not None]
    return -max(held, default=0), one.player_id or b""


class Difference:
    """The hash of a difference: SHA-256 over its drifting players in the order of their ids, column by column.

    It depends on which players differ, how, and by which numbers; not on times of reading, batches or examples.
    """

    def __init__(self, season: str) -> None:
        self._head = hashlib.sha256(f"finale drift 1\n{season}\n".encode())
        # One hash for each kind of bytes, so that it does not matter where batches end.
        self._columns = {(name, kind): hashlib.sha256() for name in _NUMBERS for kind in ("there", "sizes", "bytes")}
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the next rows, in the order of their ids."""
        self._rows += batch.num_rows
        for name in _NUMBERS:
            column = batch.column(name)
            there = column.is_valid().to_numpy(zero_copy_only=False)
            self._columns[name, "there"].update(there.astype(np.uint8).tobytes())
            if pa.types.is_integer(column.type):
                data = column.fill_null(0).to_numpy(zero_copy_only=False).astype("<i8").tobytes()
            else:
                texts = column.cast(pa.binary()).fill_null(b"").to_pylist()
                self._columns[name, "sizes"].update(np.array([len(text) for text in texts], dtype="<i8").tobytes())
                data = b"".join(texts)
            self._columns[name, "bytes"].update(data)

    def hexdigest(self) -> str:
        """Return the hash, 64 hexadecimal digits."""
        whole = self._head.copy()
        whole.update(b"%d\n" % self._rows)
        for column in self._columns.values():
            whole.update(column.digest())
        return whole.hexdigest()
