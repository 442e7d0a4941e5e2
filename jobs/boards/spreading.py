"""Writes totals of some buckets to the live keys they belong to: one sorted set, or the shards of a board.

Where shards are bands of score, a player who has changed bands is added to the new one before she is removed from the
others, so that she is never missing; the addition is marked, so that readers know which of two is the newer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, groupby

import numpy as np

from jobs.wiring import Outside
from leaderboard.codec import Codec, codec_for, to_microseconds
from leaderboard.errors import FinaleError
from leaderboard.marks import Mark
from leaderboard.season import Season
from ledger.pending import PendingTotal
from live import apply, moving
from live.errors import FencedError, LostWritesError

Row = tuple[PendingTotal, float]
_Waiting = tuple[PendingTotal, float | None]  #: with None who is to be removed
_Part = tuple[Sequence[Row], Sequence[PendingTotal]]
_AT_ONCE = 2_000  #: rows of a script: some milliseconds in which the server serves nobody else


@dataclass
class Written:
    """How far each shard has got with each bucket, ``new`` since then, and the buckets that were ``refused``."""

    marks: dict[tuple[int, int], Mark]
    new: dict[tuple[int, int], Mark] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)

    def note(self, bucket: int, shard: int, found: Mark | FinaleError) -> None:
        """Note what became of a batch."""
        if isinstance(found, Mark):
            self.marks[bucket, shard] = self.new[bucket, shard] = found
        else:
            self.refused.add(bucket)


@dataclass(frozen=True)
class Spread:
    """The live keys of a season, ``targets``, in the order of its shards, and how its totals are written to them."""

    outside: Outside
    season: Season
    targets: tuple[str, ...]
    everywhere: bool = False  #: also take players out of shards that are not theirs, where a foreign writer put them
    turns: count[int] = field(default_factory=count)

    @cached_property
    def codec(self) -> Codec:
        """The codec of the season's scores."""
        return codec_for(self.season.board, self.season.bounds)

    def write(
        self, fences: Mapping[int, int], marks: Mapping[tuple[int, int], Mark], totals: Sequence[PendingTotal]
    ) -> Written:
        """Write the totals of the buckets that ``fences`` has, as the next batches of every shard that they touch.

        ``marks`` says how far each shard has got with each bucket before. Of a bucket that was refused some shards may
        have their part, which is harmless: the same totals are written again.
        """
        written = Written(dict(marks))
        present = [total for total in totals if total.points is not None and total.reached_at is not None]
        rows = [*zip(present, self._scores(present), strict=True)]
        gone = [total for total in totals if total.points is None]
        if self.season.board.layout.cuts:
            for bucket, waiting in groupby(_by_bucket(rows, gone), key=_bucket):
                self._move(bucket, fences[bucket], list(waiting), written)
        else:
            for shard, (here, gone_here) in self._parts(rows, gone).items():
                self._spread(shard, fences, here, gone_here, written)
        return written

    def _parts(self, rows: Sequence[Row], gone: Sequence[PendingTotal]) -> Mapping[int, _Part]:
        if not self.season.sharded:
            return {0: (rows, gone)}
        layout = self.season.board.layout
        found: dict[int, tuple[list[Row], list[PendingTotal]]] = defaultdict(lambda: ([], []))
        shards = layout.shards([total.player_id for total, _ in rows], np.array([score for _, score in rows])).tolist()
        for row, shard in zip(rows, shards, strict=True):
            found[shard][0].append(row)
        for total in gone:
            found[layout.of_player(total.player_id)][1].append(total)
        if self.everywhere:
            for shard, target in enumerate(self.targets):
                here = found[shard][0]
                mine = {total.player_id for total, _ in here}
                others = {one.player_id: one for one in (*(row[0] for row in rows), *gone) if one.player_id not in mine}
                there = apply.present(self.outside.redis, target, list(others))
                found[shard] = (here, [others[member] for member in there])
        return found

    def _spread(
        self, shard: int, fences: Mapping[int, int], rows: Sequence[Row], gone: Sequence[PendingTotal], written: Written
    ) -> None:
        """Write one shard's part, many buckets a call, none of which is refused yet."""
        waiting = _by_bucket(rows, gone)
        for at in range(0, len(waiting), _AT_ONCE):
            batches = [
                _batch(bucket, fences[bucket], written.marks[bucket, shard].number + 1, list(rows))
                for bucket, rows in groupby(waiting[at : at + _AT_ONCE], key=_bucket)
                if bucket not in written.refused
            ]
            if batches:
                found = apply.apply_all(
                    self.outside.redis,
                    self.targets[shard],
                    batches,
                    beside=self.season.own_keys[shard],
                    bands=self.bands,
                )
                for batch, mark in zip(batches, found, strict=True):
                    written.note(batch.bucket, shard, mark)

    def _move(self, bucket: int, fence: int, waiting: Sequence[_Waiting], written: Written) -> None:
        """Write the part of one bucket to bands of score."""
        moves = _Moves(self, bucket, fence, written)
        try:
            for first in range(0, len(waiting), _AT_ONCE):
                rows = waiting[first : first + _AT_ONCE]
                kept = [(total.player_id, score) for total, score in rows if score is not None]
                members, scores = [member for member, _ in kept], [score for _, score in kept]
                removed = [total.player_id for total, score in rows if score is None]
                shards = self.season.board.layout.shards(members, np.array(scores)).tolist()
                moves.run(
                    {at: [row for row, one in enumerate(shards) if one == at] for at in range(len(self.targets))},
                    members,
                    scores,
                    removed,
                )
        except (FencedError, LostWritesError):
            written.refused.add(bucket)

    @cached_property
    def bands(self) -> str:
        """The text of the board's scale of score bands; empty where it has none."""
        scale = self.season.board.scale
        return scale.text if scale else ""

    def _scores(self, totals: Sequence[PendingTotal]) -> list[float]:
        points = np.array([total.points for total in totals], dtype=np.int64)
        reached = np.array([to_microseconds(total.reached_at) for total in totals if total.reached_at], dtype=np.int64)
        scores: list[float] = self.codec.encode_array(points, reached).tolist()
        return scores


def _by_bucket(rows: Sequence[Row], gone: Sequence[PendingTotal]) -> list[_Waiting]:
    """Return what is written and what is removed, bucket by bucket."""
    return sorted([*rows, *((total, None) for total in gone)], key=_bucket)


def _bucket(waiting: _Waiting) -> int:
    return waiting[0].bucket


def _batch(bucket: int, fence: int, number: int, rows: Sequence[_Waiting]) -> apply.Batch:
    kept = [(total.player_id, score) for total, score in rows if score is not None]
    removed = [total.player_id for total, score in rows if score is None]
    return apply.Batch(bucket, fence, number, [member for member, _ in kept], [score for _, score in kept], removed)


@dataclass
class _Moves:
    """One bucket's players on their way between bands."""

    spread: Spread
    bucket: int
    fence: int
    written: Written

    def apply(
        self,
        shard: int,
        members: Sequence[bytes],
        scores: Sequence[float],
        removed: Sequence[bytes],
        moving: str = "",
    ) -> None:
        """Give the shard the next part of the bucket. Raises what ``live.apply.apply`` raises."""
        mark = apply.apply(
            self.spread.outside.redis,
            self.spread.targets[shard],
            bucket=self.bucket,
            fence=self.fence,
            number=self.written.marks[self.bucket, shard].number + 1,
            members=members,
            scores=scores,
            removed=removed,
            beside=self.spread.season.own_keys[shard],
            moving=moving,
            bands=self.spread.bands,
        )
        self.written.note(self.bucket, shard, mark)

    def run(
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
