"""Writes one batch of totals to the live keys they belong to: one sorted set, or the shards of a board.

Where shards are bands of score, a player who has changed bands is added to the new one before she is removed from the
others, so that she is never missing; the addition is marked, so that readers know which of two is the newer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

import numpy as np

from jobs.wiring import Outside
from leaderboard.codec import Codec, codec_for, to_microseconds
from leaderboard.marks import Mark
from leaderboard.season import Season
from ledger.pending import PendingTotal
from live import apply, moving


@dataclass(frozen=True)
class Spread:
    """The live keys of a season, ``targets``, in the order of its shards, and how its totals are written to them."""

    outside: Outside
    season: Season
    targets: tuple[str, ...]
    turns: count[int] = field(default_factory=count)

    @cached_property
    def codec(self) -> Codec:
        """The codec of the season's scores."""
        return codec_for(self.season.board, self.season.bounds)

    def write(
        self, bucket: int, fence: int, marks: Mapping[int, Mark], totals: Sequence[PendingTotal]
    ) -> dict[int, Mark]:
        """Write the bucket's totals as the next batch of every shard that they touch; return how far those have got.

        ``marks`` says how far each shard has got before. Raises what ``live.apply.apply`` raises; some shards may then
        have their part, which is harmless: the same totals are written again.
        """
        present = [total for total in totals if total.points is not None and total.reached_at is not None]
        members = [total.player_id for total in present]
        removed = [total.player_id for total in totals if total.points is None]
        scores = self._scores(present)
        batch = _Batch(self, bucket, fence, dict(marks))
        if not self.season.sharded:
            batch.apply(0, members, scores, removed)
            return batch.written
        layout = self.season.board.layout
        shards = layout.shards(members, np.array(scores)).tolist()
        parts = {shard: [at for at, found in enumerate(shards) if found == shard] for shard in range(len(self.targets))}
        if layout.cuts:
            batch.move(parts, members, scores, removed)
            return batch.written
        for shard, rows in parts.items():
            gone = [member for member in removed if layout.of_player(member) == shard]
            if rows or gone:
                batch.apply(shard, [members[at] for at in rows], [scores[at] for at in rows], gone)
        return batch.written

    def _scores(self, totals: Sequence[PendingTotal]) -> list[float]:
        points = np.array([total.points for total in totals], dtype=np.int64)
        reached = np.array([to_microseconds(total.reached_at) for total in totals if total.reached_at], dtype=np.int64)
        scores: list[float] = self.codec.encode_array(points, reached).tolist()
        return scores


@dataclass
class _Batch:
    """One batch under way: what each shard was given of it."""

    spread: Spread
    bucket: int
    fence: int
    marks: dict[int, Mark]
    written: dict[int, Mark] = field(default_factory=dict)

    def apply(
        self,
        shard: int,
        members: Sequence[bytes],
        scores: Sequence[float],
        removed: Sequence[bytes],
        moving: str = "",
    ) -> None:
        """Give the shard the next part of the batch."""
        scale = self.spread.season.board.scale
        self.marks[shard] = self.written[shard] = apply.apply(
            self.spread.outside.redis,
            self.spread.targets[shard],
            bucket=self.bucket,
            fence=self.fence,
            number=self.marks[shard].number + 1,
            members=members,
            scores=scores,
            removed=removed,
            beside=self.spread.season.own_keys[shard],
            moving=moving,
            bands=scale.text if scale else "",
        )

    def move(
        self,
        parts: Mapping[int, Sequence[int]],
        members: Sequence[bytes],
        scores: Sequence[float],
        removed: Sequence[bytes],
    ) -> None:
        """Add every player to her band, then remove her from all others, then forget that she was moving."""
        stamp = f"{self.fence:020d}.{next(self.spread.turns):012d}"
        for shard, rows in parts.items():
            if rows:
                self.apply(shard, [members[at] for at in rows], [scores[at] for at in rows], [], moving=stamp)
        for shard in parts:
            here = {members[at] for at in parts[shard]}
            others = [member for member in (*members, *removed) if member not in here]
            if gone := apply.present(self.spread.outside.redis, self.spread.targets[shard], others):
                self.apply(shard, [], [], gone, moving=stamp)
        for shard, rows in parts.items():
            if rows:
                own = self.spread.season.own_keys[shard]
                moving.settle(self.spread.outside.redis, own, stamp, [members[at] for at in rows])
