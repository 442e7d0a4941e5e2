"""Totals that Redis does not have yet, and the leases on buckets of players under which they are written there.

Redis is a projection of ``player_total``: absolute scores are written, so writing one twice is harmless. That an old
one never follows a new one is the work of the bucket's fence, which Redis checks in the same script that writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, repeat
from typing import Any, NamedTuple

from leaderboard.errors import LeaseLostError
from leaderboard.marks import Mark
from ledger.database import Database
from ledger.leases import Lease

BUCKETS = 64

#: The last batch of each bucket and shard.
Marks = dict[tuple[int, int], Mark]
_MOST = 10_000  #: players named in one statement


@dataclass(frozen=True, slots=True)
class BucketLease:
    """The right to write one bucket of a season's players."""

    key: int
    bucket: int
    holder: str
    fence: int


class PendingTotal(NamedTuple):
    """A player whose total is to be written; ``points`` is None for one who has no match left."""

    bucket: int
    player_id: bytes
    points: int | None
    reached_at: datetime | None


class Entry(NamedTuple):
    """One line of the list: some players of a bucket."""

    bucket: int
    number: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Entries of the list, and every player in them once, bucket by bucket, with her total as it is now.

    ``size`` counts a player as often as she stands there, as the limit does that was given.
    """

    entries: list[Entry]
    totals: list[PendingTotal]
    size: int = 0


def claim(
    database: Database,
    key: int,
    holder: str,
    length: timedelta,
    *,
    every: bool = False,
    force: bool = False,
    also: Sequence[int] = (),
    dead: Sequence[str] = (),
    runner: Lease | None = None,
) -> list[BucketLease]:
    """Take the free buckets that have something pending, ``also`` others or ``every`` one; ``force`` takes held ones.

    ``dead`` names holders known to have ended, whose leases need not run out. With ``runner``, nothing is taken unless
    that lease is still the season's. Of a sealed season nothing is taken: its live key stays as it was sealed.
    """
    values = {"key": key, "holder": holder, "length": length, "every": every, "force": force}
    values |= {"also": list(also), "dead": list(dead), "runner": runner.fence if runner else None}
    rows = database.rows("pending.claim", values, often=True)
    return [BucketLease(key, row["bucket"], holder, row["fence"]) for row in rows]


def holders(database: Database, key: int) -> list[str]:
    """Return who holds any bucket of the season now."""
    return [row["holder"] for row in database.rows("pending.holders", {"key": key})]


def read(database: Database, leases: Sequence[BucketLease], limit: int) -> Waiting:
    """Return the first entries of the buckets: of ``limit`` players, or a few more, since none is cut.

    Nothing of a bucket that was taken over, nor of a sealed season. Asked after the claim in Redis, this is what shuts
    out an applier that slept there until the season was cleaned and its fences forgotten: every later batch needs that
    claim.
    """
    # One statement, so one state of the ledger: who is in an entry has the total that it was made for, or a later one.
    rows = database.rows("pending.read", {**_ours(leases), "limit": limit}, binary=True, often=True)
    found = Waiting([], [], sum(int(row["size"]) for row in rows))
    for row in rows:
        bucket = row["bucket"]
        found.entries.extend(Entry(bucket, number) for number in row["entries"])
        found.totals.extend(map(PendingTotal, repeat(bucket), row["players"], row["points"], row["times"]))
    return found


def record(
    database: Database,
    leases: Sequence[BucketLease],
    marks: Mapping[tuple[int, int], Mark],
    written: Sequence[Entry],
    length: timedelta,
) -> set[int]:
    """Note how far each bucket and shard has got and take what was written off the list.

    A total that has changed since it was read stands there in a newer entry. The buckets are held for ``length`` from
    now; with none, the next applier may have them at once. Returns those that were still held: of one that was taken
    over nothing is noted and nothing taken off.

    One statement. Its commit is not waited for on the disk: should the server crash, what it forgot is pending, and
    written again.
    """
    values = {**_ours(leases), **_marks(marks), **_entries(written), "length": length}
    return {row["bucket"] for row in database.rows("pending.record", values, often=True)}


def listed(database: Database, key: int, limit: int) -> list[Entry]:
    """Return the season's entries, the first ``limit`` of them if there are more."""
    rows = database.rows("pending.listed", {"key": key, "limit": limit})
    return [Entry(row["bucket"], row["pending_id"]) for row in rows]


def done(database: Database, key: int, written: Sequence[Entry]) -> None:
    """Take entries off the list; for who has written every total anew.

    Belongs in a transaction in which all their buckets are held.
    """
    database.rows("pending.done", {"key": key, **_entries(written)})


def renew(database: Database, leases: Sequence[BucketLease], length: timedelta) -> None:
    """Hold the buckets for ``length`` from now. Raises LeaseLostError if one of them was taken over.

    Within a transaction nobody takes them over until it ends.
    """
    rows = database.rows("pending.renew", {**_ours(leases), "length": length})
    if lost := {lease.bucket for lease in leases} - {row["bucket"] for row in rows}:
        raise LeaseLostError(f"bucket {min(lost)} of players was taken over by another applier")


def mark(database: Database, key: int, marks: Mapping[tuple[int, int], Mark]) -> None:
    """Note the last batch of each bucket and shard; whose leases are held, in the same transaction."""
    database.rows("pending.mark", {"key": key, **_marks(marks)})


def marks(database: Database, key: int) -> Marks:
    """Return the last batch known to be in Redis of each bucket and shard that has any."""
    return marks_of(database, [key])[key]


def marks_of(database: Database, keys: Sequence[int]) -> dict[int, Marks]:
    """Return the same of each of these seasons, in one statement."""
    return _marks_of(keys, database.rows("pending.marks", {"keys": list(keys)}, often=True) if keys else ())


def standing(database: Database, key: int) -> tuple[list[str], Marks]:
    """Return what ``holders`` and ``marks`` do, in one round trip."""
    held, marked = database.together(("pending.holders", {"key": key}), ("pending.marks", {"keys": [key]}))
    return [row["holder"] for row in held], _marks_of([key], marked)[key]


def _marks_of(keys: Sequence[int], rows: Iterable[Mapping[str, Any]]) -> dict[int, Marks]:
    found: dict[int, Marks] = {key: {} for key in keys}
    for row in rows:
        found[row["season_id"]][row["bucket"], row["shard"]] = Mark(row["number"], row["token"])
    return found


def again(database: Database, key: int, buckets: Sequence[int]) -> None:
    """Make every total of these buckets pending, so that the board is written anew; none of a sealed season."""
    database.rows("pending.again", {"key": key, "buckets": list(buckets)})


def players(database: Database, lease: Lease, named: Iterable[bytes]) -> None:
    """Make these players pending, so that Redis gets what the ledger has of each: a score, or none.

    Nothing happens of a sealed season, of an adopted key, or under a lease that is no longer the season's.
    """
    rest = iter(named)
    while some := list(islice(rest, _MOST)):
        database.rows("pending.players", {**lease.params, "players": some})


def lost(database: Database, leases: Sequence[BucketLease]) -> None:
    """Make every total of these buckets pending, as far as they are still held: the server has lost writes."""
    if leases:
        database.rows("pending.lost", _ours(leases))


def release(database: Database, leases: Sequence[BucketLease]) -> set[int]:
    """Let the next applier have the buckets at once; return those that were still held."""
    return record(database, leases, {}, [], timedelta(0))


def _marks(marks: Mapping[tuple[int, int], Mark]) -> dict[str, object]:
    return {
        "marked": [bucket for bucket, _ in marks],
        "shards": [shard for _, shard in marks],
        "numbers": [found.number for found in marks.values()],
        "tokens": [found.token for found in marks.values()],
    }


def _entries(entries: Sequence[Entry]) -> dict[str, object]:
    return {"of_entries": [entry.bucket for entry in entries], "entries": [entry.number for entry in entries]}


def _ours(leases: Sequence[BucketLease]) -> dict[str, object]:
    return {
        "key": leases[0].key,
        "holder": leases[0].holder,
        "buckets": [lease.bucket for lease in leases],
        "fences": [lease.fence for lease in leases],
    }


def any_left(database: Database, key: int) -> bool:
    """Return whether any player of the season waits to be written."""
    return bool(database.rows("pending.any_left", {"key": key}, often=True)[0]["left"])


def count(database: Database, key: int) -> int:
    """Return how many players of the season wait to be written."""
    row = database.row("pending.count", {"key": key})
    return int(row["count"]) if row else 0


def seasons(database: Database) -> list[int]:
    """Return the keys of the seasons that have anything pending."""
    return [row["season_id"] for row in database.rows("pending.seasons")]
