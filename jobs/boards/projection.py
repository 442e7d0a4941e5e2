"""Brings Redis up to the ledger's totals: pending players of many buckets at once, each under its bucket's fence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from jobs import identity
from jobs.boards.spreading import Spread
from jobs.wiring import Outside
from leaderboard.errors import FinaleError, WrongStateError
from leaderboard.marks import Mark, has_lost
from leaderboard.season import Season
from ledger import pending, seasons
from ledger.leases import Lease
from ledger.pending import BucketLease
from live import apply
from live.counts import recount
from live.errors import FencedError
from live.keyspace import kinds

BATCH = 20_000  #: totals written between two looks at the ledger
_ROUNDS = 100

#: How far each shard has got with each bucket, by bucket and shard.
Marks = Mapping[tuple[int, int], Mark]


@dataclass(frozen=True, slots=True)
class Applied:
    """How many totals were written, and in how many buckets the server had lost writes that were written again."""

    players: int = 0
    lost_buckets: int = 0

    def __add__(self, other: Applied) -> Applied:
        return Applied(self.players + other.players, self.lost_buckets + other.lost_buckets)


def apply_pending(
    outside: Outside,
    season: Season,
    holder: str,
    *,
    force: bool = False,
    freezer: Lease | None = None,
    everywhere: bool = False,
) -> Applied:
    """Write the season's pending totals to its live keys and return what was done.

    Buckets that another applier holds are left to it, unless it has ended or ``force`` takes them over. Those of which
    a server has lost writes are taken too, and written anew. Of a sealed season nothing is written. The ``freezer``,
    as long as its lease is the season's, takes every bucket by force, so that no older applier can write any more.
    ``everywhere`` takes the players out of shards that are not theirs too, to which no applier ever wrote them.
    Raises WrongStateError for an adopted key, to which nothing is written.
    """
    check_own_key(season)
    done = _apply_pending(outside, season, holder, force=force, freezer=freezer, everywhere=everywhere)
    if force or freezer or everywhere or done.lost_buckets:
        # Whoever writes by force may be putting right what others wrote, of which the counts knew nothing.
        recount_bands(outside, season)
    return done


def recount_bands(outside: Outside, season: Season) -> int:
    """Count the players of every score band anew beside each live key; return how many bands had been kept wrong."""
    scale = season.board.scale
    if scale is None:
        return 0
    keys = zip(written_keys(outside, season), season.own_keys, strict=True)
    return sum(recount(outside.redis, live, scale, beside=own, repair=True).wrong for live, own in keys)


def _apply_pending(
    outside: Outside, season: Season, holder: str, *, force: bool, freezer: Lease | None, everywhere: bool
) -> Applied:
    targets = written_keys(outside, season)
    every = freezer is not None
    holders, recorded = pending.standing(outside.database, season.key)
    dead = [other for other in holders if identity.has_ended(other)]
    done = Applied()
    behind = sorted(_lost_at(outside, season, recorded))
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
            spread = Spread(outside, _as_cut_now(outside, season), targets, everywhere)
            marks, lost = agree(outside, season, leases)
            done += Applied(lost_buckets=lost)
            done += _write(outside, spread, leases, marks)
        except FencedError:
            continue  # taken over before it began: look again what is left
        except BaseException:
            give_back(outside, leases)
            raise
        if not pending.any_left(outside.database, season.key):
            return done
    return done


def check_own_key(season: Season) -> None:
    """Raise WrongStateError for a season whose live key is somebody else's."""
    if season.adopted:
        raise WrongStateError(
            f"the key {season.live_key} of {season.name} was adopted; Finale writes nothing to it",
            hint="what is wrong in it is corrected by whoever writes it",
        )


def written_keys(outside: Outside, season: Season) -> tuple[str, ...]:
    """Return the keys that the season's totals are written to: the live ones, or the private names that they have."""
    if not season.renames or season.standing_keys == season.own_keys:
        return season.standing_keys
    # A freeze that was broken off may have renamed some already.
    found = kinds(outside.redis, season.own_keys)
    return tuple(
        live if found[own] == "none" else own for live, own in zip(season.live_keys, season.own_keys, strict=True)
    )


def give_back(outside: Outside, leases: Sequence[BucketLease]) -> None:
    """Let the next applier have the buckets at once; what this one may have sent is shut out by the next fence."""
    with suppress(FinaleError):
        pending.release(outside.database, leases)


def claim_beside(outside: Outside, season: Season, leases: Sequence[BucketLease]) -> Marks:
    """Claim the buckets beside every live key, and return how far each was written. Raises FencedError."""
    buckets, fences = [lease.bucket for lease in leases], [lease.fence for lease in leases]
    return {
        (bucket, shard): mark
        for shard, key in enumerate(season.own_keys)
        for bucket, mark in zip(buckets, apply.claim(outside.redis, key, buckets, fences), strict=True)
    }


def agree(outside: Outside, season: Season, leases: Sequence[BucketLease]) -> tuple[Marks, int]:
    """Claim the buckets beside every live key too, and return how far each was written, and how many have lost writes.

    Where a server no longer has what the ledger recorded, all of the bucket is pending again.
    """
    found = claim_beside(outside, season, leases)
    recorded = pending.marks(outside.database, season.key)
    behind = {bucket for (bucket, shard), mark in found.items() if _lost(mark, recorded, bucket, shard)}
    pending.lost(outside.database, [lease for lease in leases if lease.bucket in behind])
    return found, len(behind)


def _lost(mark: Mark, recorded: Marks, bucket: int, shard: int) -> bool:
    return has_lost(mark, recorded.get((bucket, shard), Mark()))


def _as_cut_now(outside: Outside, season: Season) -> Season:
    """Return the season as it stands after the buckets were claimed: its bands of score may have been cut anew.

    Whoever cuts them claims every bucket afterwards, so that those who knew the old cuts write nothing more.
    """
    if not season.board.layout.cuts:
        return season
    return seasons.find(outside.database, season.board.name, season.id, outside.boards.get(season.board.name))


def buckets_behind(outside: Outside, season: Season) -> list[int]:
    """Return the buckets of which a server seems to have lost writes; whoever claims them finds out."""
    return sorted(_lost_at(outside, season, pending.marks(outside.database, season.key)))


def _lost_at(outside: Outside, season: Season, recorded: Marks) -> set[int]:
    lost: set[int] = set()
    # Asked of the server last: what is written meanwhile only makes its numbers higher.
    for shard, key in enumerate(season.own_keys):
        if buckets := _of_shard(recorded, shard):
            lost |= _lost_of(recorded, shard, buckets, apply.written(outside.redis, key, buckets))
    return lost


def behind(outside: Outside, seasons: Sequence[Season]) -> list[Season]:
    """Return those of which a server seems to have lost writes, or cannot be asked; all are asked for at once."""
    recorded = pending.marks_of(outside.database, [season.key for season in seasons])
    shards = [(season, shard, key) for season in seasons for shard, key in enumerate(season.own_keys)]
    wanted = {key: buckets for season, shard, key in shards if (buckets := _of_shard(recorded[season.key], shard))}
    try:
        found = apply.written_to_all(outside.redis, wanted)
    except FinaleError:
        return list(seasons)
    lost = {
        season.key
        for season, shard, key in shards
        if key in wanted
        and ((marks := found[key]) is None or _lost_of(recorded[season.key], shard, wanted[key], marks))
    }
    return [season for season in seasons if season.key in lost]


def _of_shard(recorded: Marks, shard: int) -> list[int]:
    return [bucket for bucket, of in recorded if of == shard]


def _lost_of(recorded: Marks, shard: int, buckets: Sequence[int], found: Sequence[Mark]) -> set[int]:
    return {bucket for bucket, mark in zip(buckets, found, strict=True) if _lost(mark, recorded, bucket, shard)}


def _write(outside: Outside, spread: Spread, leases: Sequence[BucketLease], marks: Marks) -> Applied:
    """Write what is pending of the buckets; one that is taken over is left quietly, the other applier goes on."""
    done = Applied()
    held = {lease.bucket: lease for lease in leases}
    fences = {lease.bucket: lease.fence for lease in leases}
    ends = False
    while held and not ends:
        waiting = pending.read(outside.database, list(held.values()), BATCH)
        written = spread.write(fences, marks, waiting.totals)
        marks = written.marks
        kept = [lease for lease in held.values() if lease.bucket not in written.refused]
        # The last batches are noted and the buckets released in one; what has come since is the next applier's.
        ends = waiting.size < BATCH
        length = timedelta(0) if ends else outside.runner.lease
        still = pending.record(outside.database, kept, written.new, waiting.entries, length) if kept else set()
        done += Applied(players=sum(total.bucket not in written.refused for total in waiting.totals))
        for bucket in held.keys() - still:
            for key in spread.season.own_keys:
                apply.withdraw(outside.redis, key, bucket, fences[bucket])
        held = {bucket: held[bucket] for bucket in still}
    return done
