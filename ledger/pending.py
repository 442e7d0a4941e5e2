"""Totals that Redis does not have yet, and the leases on buckets of players under which they are written there.

Redis is a projection of ``player_total``: absolute scores are written, so writing one twice is harmless. That an old
one never follows a new one is the work of the bucket's fence, which Redis checks in the same script that writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from leaderboard.errors import LeaseLostError
from ledger.database import Database
from ledger.leases import Lease

BUCKETS = 64


@dataclass(frozen=True, slots=True)
class BucketLease:
    """The right to write one bucket of a season's players; ``number`` is the last batch known to be applied."""

    key: int
    bucket: int
    holder: str
    fence: int
    number: int
    server: str


@dataclass(frozen=True, slots=True)
class PendingTotal:
    """A player whose total is to be written; ``points`` is None for one who has no match left."""

    player_id: bytes
    version: int
    points: int | None
    reached_at: datetime | None


def claim(
    database: Database,
    key: int,
    holder: str,
    length: timedelta,
    *,
    every: bool = False,
    force: bool = False,
    dead: Sequence[str] = (),
    runner: Lease | None = None,
) -> list[BucketLease]:
    """Take the free buckets that have something pending, or ``every`` one; ``force`` takes them from others.

    ``dead`` names holders known to have ended, whose leases need not run out. With ``runner``, nothing is taken unless
    that lease is still the season's. Of a sealed season nothing is taken: its live key stays as it was sealed.
    """
    values = {"key": key, "holder": holder, "length": length, "every": every, "force": force}
    rows = database.rows("pending.claim", {**values, "dead": list(dead), "runner": runner.fence if runner else None})
    return [BucketLease(key, row["bucket"], holder, row["fence"], row["number"], row["server"]) for row in rows]


def holders(database: Database, key: int) -> list[str]:
    """Return who holds any bucket of the season now."""
    return [row["holder"] for row in database.rows("pending.holders", {"key": key})]


def read(database: Database, lease: BucketLease, limit: int) -> list[PendingTotal]:
    """Return up to ``limit`` pending players of the bucket, with their totals as they are now.

    Nothing if the bucket was taken over or the season sealed. Asked after the claim in Redis, this is what shuts out an
    applier that slept there until the season was cleaned and its fences forgotten: every later batch needs that claim.
    """
    rows = database.rows("pending.read", {**_mine(lease), "limit": limit})
    return [PendingTotal(row["player_id"], row["version"], row["points"], row["reached_at"]) for row in rows]


def record(
    database: Database, lease: BucketLease, number: int, server: str, applied: Sequence[PendingTotal], length: timedelta
) -> BucketLease:
    """Note that batch ``number`` is in Redis and take its players off the list, but for those that changed meanwhile.

    Raises LeaseLostError if the bucket was taken over; then nothing is taken off.
    """
    values = _mine(lease)
    with database.transaction():
        moved = database.row("pending.advance", {**values, "number": number, "server": server, "length": length})
        if moved is None:
            raise LeaseLostError(f"bucket {lease.bucket} of players was taken over by another applier")
        database.rows(
            "pending.applied",
            {
                **values,
                "players": [total.player_id for total in applied],
                "versions": [total.version for total in applied],
            },
        )
    return BucketLease(lease.key, lease.bucket, lease.holder, lease.fence, number, server)


def again(database: Database, key: int, buckets: Sequence[int]) -> None:
    """Make every total of these buckets pending, so that the board is written anew; none of a sealed season."""
    database.rows("pending.again", {"key": key, "buckets": list(buckets)})


def lost(database: Database, leases: Sequence[BucketLease]) -> None:
    """Make every total of these buckets pending, as far as they are still held: the server has lost writes."""
    if leases:
        database.rows(
            "pending.lost",
            {
                "key": leases[0].key,
                "holder": leases[0].holder,
                "buckets": [lease.bucket for lease in leases],
                "fences": [lease.fence for lease in leases],
            },
        )


def release(database: Database, lease: BucketLease) -> bool:
    """Let the next applier have the bucket at once; return whether it was still held."""
    return database.row("pending.release", _mine(lease)) is not None


def _mine(lease: BucketLease) -> dict[str, object]:
    return {"key": lease.key, "bucket": lease.bucket, "holder": lease.holder, "fence": lease.fence}


def count(database: Database, key: int) -> int:
    """Return how many players of the season wait to be written."""
    row = database.row("pending.count", {"key": key})
    return int(row["count"]) if row else 0


def seasons(database: Database) -> list[int]:
    """Return the keys of the seasons that have anything pending."""
    return [row["season_id"] for row in database.rows("pending.seasons")]
