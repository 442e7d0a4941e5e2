"""Brings Redis up to the ledger's totals: pending players, bucket by bucket, each batch under the bucket's fence."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from jobs import identity
from jobs.wiring import Outside
from leaderboard.codec import Codec, codec_for, to_microseconds
from leaderboard.errors import FinaleError, LeaseLostError, WrongStateError
from leaderboard.marks import Mark, has_lost
from leaderboard.season import Season
from ledger import pending
from ledger.leases import Lease
from ledger.pending import BucketLease, PendingTotal
from live import apply
from live.errors import FencedError, LostWritesError
from live.keyspace import kinds

BATCH = 2_000
_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Applied:
    """How many totals were written, and in how many buckets the server had lost writes that were written again."""

    players: int = 0
    lost_buckets: int = 0

    def __add__(self, other: Applied) -> Applied:
        return Applied(self.players + other.players, self.lost_buckets + other.lost_buckets)


def apply_pending(
    outside: Outside, season: Season, holder: str, *, force: bool = False, freezer: Lease | None = None
) -> Applied:
    """Write the season's pending totals to its live key and return what was done.

    Buckets that another applier holds are left to it, unless it has ended or ``force`` takes them over. Those of which
    the server has lost writes are taken too, and written anew. Of a sealed season nothing is written. The ``freezer``,
    as long as its lease is the season's, takes every bucket by force, so that no older applier can write any more.
    Raises WrongStateError for an adopted key, to which nothing is written.
    """
    check_own_key(season)
    target = written_key(outside, season)
    every = freezer is not None
    dead = [other for other in pending.holders(outside.database, season.key) if identity.has_ended(other)]
    done = Applied()
    codec = codec_for(season.board, season.bounds)
    behind = _behind(outside, season)
    for _ in range(_ROUNDS):
        leases = pending.claim(
            outside.database,
            season.key,
            holder,
            outside.runner.lease,
            every=every,
            force=force or every,
            also=behind,
            dead=dead,
            runner=freezer,
        )
        behind = []
        if not leases:
            return done
        try:
            for lease, mark, found in _agree(outside, season, leases):
                done += found + _write_bucket(outside, season, target, codec, lease, mark)
        except FencedError:
            continue  # taken over before it began: look again what is left
        except BaseException:
            give_back(outside, leases)
            raise
        if every and pending.count(outside.database, season.key) == 0:
            return done
    return done


def check_own_key(season: Season) -> None:
    """Raise WrongStateError for a season whose live key is somebody else's."""
    if season.adopted:
        raise WrongStateError(
            f"the key {season.live_key} of {season.name} was adopted; Finale writes nothing to it",
            hint="what is wrong in it is corrected by whoever writes it",
        )


def written_key(outside: Outside, season: Season) -> str:
    """Return the key that the season's totals are written to: the live key, or the private name once it has that."""
    if not season.renames or season.standing_key == season.own_key:
        return season.standing_key
    # A freeze that was broken off may have renamed it already.
    return season.live_key if kinds(outside.redis, [season.own_key])[season.own_key] == "none" else season.own_key


def give_back(outside: Outside, leases: Sequence[BucketLease]) -> None:
    """Let the next applier have the buckets at once; what this one may have sent is shut out by the next fence."""
    with suppress(FinaleError):
        for lease in leases:
            pending.release(outside.database, lease)


def _behind(outside: Outside, season: Season) -> list[int]:
    """Return the buckets of which the server seems to have lost writes; whoever claims them finds out."""
    recorded = pending.marks(outside.database, season.key)
    if not recorded:
        return []
    buckets = [bucket for bucket, _ in recorded]
    found = apply.written(outside.redis, season.own_key, buckets)
    # Asked of the server last: what is written meanwhile only makes its numbers higher.
    return [
        bucket for bucket, mark, known in zip(buckets, found, recorded.values(), strict=True) if has_lost(mark, known)
    ]


def _agree(outside: Outside, season: Season, leases: Sequence[BucketLease]) -> list[tuple[BucketLease, Mark, Applied]]:
    """Claim the buckets in Redis too; where it no longer has what the ledger recorded, everything is pending again."""
    found = apply.claim(
        outside.redis, season.own_key, [lease.bucket for lease in leases], [lease.fence for lease in leases]
    )
    recorded = pending.marks(outside.database, season.key)
    lost = [
        lease
        for lease, mark in zip(leases, found, strict=True)
        if has_lost(mark, recorded.get((lease.bucket, 0), Mark()))
    ]
    pending.lost(outside.database, lost)
    return [(lease, mark, Applied(lost_buckets=int(lease in lost))) for lease, mark in zip(leases, found, strict=True)]


def _write_bucket(
    outside: Outside, season: Season, target: str, codec: Codec, lease: BucketLease, mark: Mark
) -> Applied:
    """Write the bucket until nothing of it is pending; stop quietly if it is taken over, the other one goes on."""
    done = Applied()
    try:
        while totals := pending.read(outside.database, lease, BATCH):
            present = [total for total in totals if total.points is not None and total.reached_at is not None]
            mark = apply.apply(
                outside.redis,
                target,
                bucket=lease.bucket,
                fence=lease.fence,
                number=mark.number + 1,
                members=[total.player_id for total in present],
                scores=_scores(codec, present),
                removed=[total.player_id for total in totals if total.points is None],
                beside=season.own_key,
            )
            pending.record(outside.database, lease, {0: mark}, totals, outside.runner.lease)
            done += Applied(players=len(totals))
        held = pending.release(outside.database, lease)
    except (LeaseLostError, LostWritesError):
        held = False
    if not held:
        apply.withdraw(outside.redis, season.own_key, lease.bucket, lease.fence)
    return done


def _scores(codec: Codec, totals: Sequence[PendingTotal]) -> list[float]:
    points = np.array([total.points for total in totals], dtype=np.int64)
    reached_at = np.array([to_microseconds(total.reached_at) for total in totals if total.reached_at], dtype=np.int64)
    scores: list[float] = codec.encode_array(points, reached_at).tolist()
    return scores
