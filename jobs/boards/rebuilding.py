"""Making a season's live board anew from the ledger, beside the old one, which players see until the new one is whole.

While it is built nobody else writes to the board: the rebuild holds every bucket of players, and what comes meanwhile
is pending. So the new board, which is the ledger at one instant, is never older than what players saw before; what is
pending follows at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from jobs.boards import building
from jobs.boards.projection import apply_pending, check_own_key, claim_beside, give_back, written_keys
from jobs.boards.snapshots import give_up_snapshot
from jobs.seasons.leasing import leased
from jobs.wiring import Outside
from leaderboard.codec import Codec, codec_for
from leaderboard.errors import LeaseLostError, WrongStateError
from leaderboard.season import Season
from leaderboard.states import State, reached
from ledger import pending, seasons, totals
from ledger.leases import Heartbeat, Lease, lost
from ledger.pending import BucketLease
from live.counts import recount
from live.keyspace import sizes
from live.loading import Building, Place, encode, forget

T = TypeVar("T")
_LISTED = 500_000  # entries that are taken off the list; who is in others is written once more afterwards
_AHEAD = 2  # batches that are encoded while the server takes others


@dataclass(frozen=True, slots=True)
class Plan:
    """What a rebuild would do: the players in the ledger, rows of the live keys, and what waits to be written."""

    season: str
    keys: tuple[str, ...]
    players: int
    rows: int
    waiting: int
    wrong_bands: int  #: score bands whose players were counted wrong; somebody else wrote to the board
    left_behind: int  #: names that broken-off rebuilds may have left

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {**asdict(self), "keys": list(self.keys)}


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What was done: the players of the new board, of the old one, those that followed, and how long it took."""

    season: str
    keys: tuple[str, ...]
    players: int
    before: int
    followed: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {**asdict(self), "keys": list(self.keys), "seconds": round(self.seconds, 3)}


def plan(outside: Outside, season: Season) -> Plan:
    """Return what a rebuild would do. Raises WrongStateError for a season whose live key Finale does not write."""
    _check(season)
    targets = written_keys(outside, season)
    return Plan(
        season.name,
        targets,
        totals.summed(outside.database, season.key).players,
        sum(sizes(outside.redis, targets).values()),
        pending.count(outside.database, season.key),
        _wrong_bands(outside, season, targets),
        len(_left_behind(outside, season)),
    )


def rebuild(
    outside: Outside, season: Season, *, who: str, because: str = "", progress: Callable[[int], None]
) -> Rebuilt:
    """Make the season's live keys anew from the ledger and let them take the old ones' places.

    Whatever happens in between, players see the old board or the new one, and a second call ends the same. A season
    that has its snapshot goes back to frozen first. Raises LeaseHeldError while somebody else works on the season,
    WrongStateError as ``plan`` and once the seal is committed, LeaseLostError for one that was taken over meanwhile,
    and what ``live.loading`` raises.
    """
    _check(season)
    begun = time.monotonic()
    with leased(outside, season, who) as (lease, heartbeat):
        season = seasons.find(outside.database, season.board.name, season.id, outside.boards.get(season.board.name))
        _check(season)
        season = give_up_snapshot(outside, season, lease, who=who, because=because)
        forget(outside.redis, _left_behind(outside, season))
        building.begin(outside.database, season, lease, who=who, because=because)
        held = pending.claim(
            outside.database, season.key, lease.holder, outside.runner.lease, every=True, force=True, runner=lease
        )
        if len(held) != pending.BUCKETS:
            raise lost(lease)
        try:
            players, before = _Rebuilding(outside, season, lease, heartbeat, held, progress).run()
        finally:
            give_back(outside, held)
        followed = apply_pending(outside, season, lease.holder)
        done = Rebuilt(season.name, season.live_keys, players, before, followed.players, time.monotonic() - begun)
        building.end(outside.database, season, lease, who=who, detail=done.to_json())
    return done


def _wrong_bands(outside: Outside, season: Season, targets: Sequence[str]) -> int:
    scale = season.board.scale
    keys = zip(targets, season.own_keys, strict=True)
    return 0 if scale is None else sum(recount(outside.redis, live, scale, beside=own).wrong for live, own in keys)


def _left_behind(outside: Outside, season: Season) -> list[str]:
    return [name for names in building.left_behind(outside.database, season).values() for name in names]


def _check(season: Season) -> None:
    check_own_key(season)
    if season.board.ledger != "own":
        raise WrongStateError(
            f"board {season.board.name} has no ledger of Finale's from which its live key could be made",
            hint="its own writers have to write it",
        )
    if reached(season.state, State.SEALED) or season.state is State.CANCELLED:
        raise WrongStateError(
            f"{season.name} is {season.state}: its live key must stay as it was sealed",
            hint="read a sealed season with finale standings",
        )


@dataclass(frozen=True)
class _Rebuilding:
    """One rebuild that holds the season and every bucket."""

    outside: Outside
    season: Season
    lease: Lease
    heartbeat: Heartbeat
    held: Sequence[BucketLease]
    progress: Callable[[int], None]

    def run(self) -> tuple[int, int]:
        """Build, swap, and record that; return the rows of the new board and of the old."""
        outside, season = self.outside, self.season
        marks = claim_beside(outside, season, self.held)
        targets = written_keys(outside, season)
        before = sum(sizes(outside.redis, targets).values())
        # Listed before the totals are read, so whoever is on the list is in what is built, with that total or later.
        waiting = pending.listed(outside.database, season.key, _LISTED)
        with ExitStack() as stack:
            shards = [
                stack.enter_context(Building(outside.redis, Place(live, own, self.lease.fence)))
                for live, own in zip(targets, season.own_keys, strict=True)
            ]
            self._load(shards)
            for shard in shards:
                shard.finish(season.board.scale)
            self._still_ours()
            for number, shard in enumerate(shards):
                written = shard.swap({one.bucket: (one.fence, marks[one.bucket, number]) for one in self.held})
                with outside.database.transaction():
                    pending.renew(outside.database, self.held, outside.runner.lease)
                    found = {(bucket, number): mark for bucket, mark in written.items()}
                    pending.mark(outside.database, season.key, found)
                    if shard is shards[-1]:
                        pending.done(outside.database, season.key, waiting)
        return sum(shard.rows for shard in shards), before

    def _load(self, shards: Sequence[Building]) -> None:
        codec = codec_for(self.season.board, self.season.bounds)
        sent, checked = 0, time.monotonic()
        with totals.reader(self.outside.database.url, self.season.key) as batches:
            encoded = ahead(_encoded(batch, codec, self.season) for batch in batches)
            for parts, rows in encoded:
                for shard, part in parts.items():
                    shards[shard].add(part)
                sent += rows
                self.progress(sent)
                if time.monotonic() - checked > self.outside.runner.lease.total_seconds() / 5:
                    self._still_ours()
                    checked = time.monotonic()

    def _still_ours(self) -> None:
        """Hold the buckets for longer. Raises LeaseLostError if the season or a bucket was taken over."""
        if self.heartbeat.lost.is_set():
            raise lost(self.lease)
        try:
            pending.renew(self.outside.database, self.held, self.outside.runner.lease)
        except LeaseLostError as error:
            raise LeaseLostError(
                error.message, detail="the old board is as it was", hint="run the command again"
            ) from error


def _encoded(batch: Any, codec: Codec, season: Season) -> tuple[dict[int, Any], int]:
    """Return the batch's rows as commands have them, by shard, and how many they are."""
    points = batch.column(1).to_numpy()
    reached_at = batch.column(2).cast(pa.int64()).to_numpy()
    scores = codec.encode_array(points, reached_at)
    members = batch.column(0)
    if not season.sharded:
        return {0: encode(members, scores)}, len(batch)
    shards = season.board.layout.shards(members.to_pylist(), scores)
    found = {}
    for shard in np.unique(shards).tolist():
        rows = np.flatnonzero(shards == shard)
        found[shard] = encode(members.take(pa.array(rows)), scores[rows])
    return found, len(batch)


def ahead(values: Iterator[T]) -> Iterator[T]:
    """Yield the values, the next ones being made by another thread meanwhile."""
    end: Any = object()
    with ThreadPoolExecutor(1) as pool:
        made = [pool.submit(next, values, end) for _ in range(_AHEAD)]
        while (value := made.pop(0).result()) is not end:
            made.append(pool.submit(next, values, end))
            yield value
