"""Reads a live board: the top, a page, one player, the neighbours, each from one version of the set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from redis import Redis

from leaderboard.bands import estimate
from leaderboard.board import Board
from leaderboard.codec import Codec, codec_for, from_microseconds
from leaderboard.errors import InputError
from leaderboard.season import Bounds, Season
from leaderboard.standing import Standing
from live.counts import counted
from live.rows import Rows, Source
from live.sharded import ShardedSet
from live.single import SingleSet

_instant = lru_cache(maxsize=32_768)(from_microseconds)  # a top has the same times whenever it is read
_FEW = 40  # rows
PAGE = 10_000  #: rows that one call reads at most: what a server can answer without others noticing


class Rank(NamedTuple):
    """What a player is told: ``rank`` of ``players``, and the raw score it follows from.

    The true rank lies within ``error`` of it: 0 where it is exact.
    """

    rank: int
    players: int
    score: float
    error: int = 0

    @property
    def percentile(self) -> float:
        """The least p such that the player is among the top p percent: 100 for the last, never 0."""
        return 100 * self.rank / self.players


@dataclass(frozen=True)
class LiveBoard:
    """A season's sorted set, read in board order. A key that does not exist is a board without players.

    What everybody is shown alike (``top``, ``page``) is read from ``replica`` where there is one, all else from
    ``client``, the primary: a player who has just scored is not told an old rank.

    Every method raises UnavailableError or AccessError for a server that does not answer or refuses, WrongTypeError for
    a key that is not a sorted set, and InputError for a score that the board's codec cannot have written.
    """

    client: Redis
    board: Board
    bounds: Bounds
    key: str
    replica: Redis | None = field(default=None, kw_only=True)
    shards: tuple[str, ...] = field(default=(), kw_only=True)  #: the keys of a board over several sorted sets
    beside: tuple[str, ...] = field(default=(), kw_only=True)  #: where helper keys stand, if not beside the keys

    @classmethod
    def of(cls, client: Redis, season: Season, replica: Redis | None = None) -> LiveBoard:
        """Return the board of a season, wherever its rows are now."""
        shards = season.standing_keys if season.sharded else ()
        board = cls(client, season.board, season.bounds, season.standing_key, replica=replica, shards=shards)
        return replace(board, beside=season.own_keys)

    @cached_property
    def codec(self) -> Codec:
        """The codec of the board's scores in this season."""
        return codec_for(self.board, self.bounds)

    @cached_property
    def _source(self) -> Source:
        if not self.shards:
            return SingleSet(self.client, self.key, self.board.order, self.replica)
        layout = self.board.layout
        ordered, beside = layout.in_order(), self._beside
        return ShardedSet(
            self.client,
            tuple(self.shards[shard] for shard in ordered),
            tuple(beside[shard] for shard in ordered),
            self.board.order,
            bool(layout.cuts),
            self.replica,
        )

    @cached_property
    def _by_member(self) -> bool:
        return self.board.ties.by == "member"

    @property
    def _beside(self) -> tuple[str, ...]:
        return self.beside or self.shards or (self.key,)

    def top(self, k: int) -> list[Standing]:
        """Return the first ``k`` rows, fewer where the board is shorter.

        Up to ``PAGE`` rows are of one version; more are read page by page, and a player who moves meanwhile may be
        seen twice or not at all.
        """
        return self.page(0, k)

    def page(self, offset: int, n: int) -> list[Standing]:
        """Return the ``n`` rows after the first ``offset``, otherwise as ``top``."""
        _not_negative(offset)
        _not_negative(n)
        rows: list[Standing] = []
        while len(rows) < n:
            first = offset + len(rows)
            page = self._standings(self._source.window(first, min(offset + n, first + PAGE) - 1))
            rows += page
            if len(page) < PAGE:
                break
        return rows

    def player(self, player_id: bytes) -> Standing | None:
        """Return where the player stands; None for one who is not on the board."""
        return next(iter(self.around(player_id, 0)), None)

    def around(self, player_id: bytes, n: int) -> list[Standing]:
        """Return the player with up to ``n`` rows before and after; an empty list for one who is not on the board."""
        _not_negative(n)
        if 2 * n >= PAGE:
            raise InputError(f"{n:,} rows on each side are too many to read at once", hint=f"ask below {PAGE // 2:,}")
        return self._standings(self._source.around(player_id, n, n))

    def rank(self, player_id: bytes, *, exact: bool = True) -> Rank | None:
        """Return the player's rank and among how many, from one version; None for one who is not on the board.

        Not ``exact``, it is estimated from the counts of the board's score bands, and ``error`` says how far off it may
        be: less than the players of the own band. Raises InputError on a board without bands.
        """
        if not exact and (found := self._estimated(player_id)) is not None:
            return found
        place = self._source.place(player_id, by_member=self._by_member)
        return None if place is None else Rank(place.ahead + 1, place.players, place.score)

    def _estimated(self, player_id: bytes) -> Rank | None:
        """Return the estimated rank; None where the counts do not know the player's band, which are then wrong."""
        scale, ties = self.board.scale, self.board.ties.by
        if scale is None:
            raise InputError(f"board {self.board.name} has no score bands", hint="ask for the exact rank")
        score = self._source.score(player_id)
        if score is None:
            return None
        counts = counted(self.client, self._beside)
        found = estimate(scale, counts, score, descending=self.board.descending, one_rank_a_score=ties == "shared")
        return None if found is None else Rank(found.rank, found.players, score, found.error)

    def percentile(self, player_id: bytes) -> float | None:
        """Return the least p such that the player is among the top p percent; None for one who is not on the board."""
        found = self.rank(player_id)
        return None if found is None else found.percentile

    def score(self, player_id: bytes) -> float | None:
        """Return the player's raw score, 0 among them; None for one who is not on the board."""
        return self._source.score(player_id)

    def count(self) -> int:
        """Return how many players are on the board."""
        return self._source.count()

    def exists(self) -> bool:
        """Return whether the live key exists; Redis keeps no empty sorted set."""
        return self.count() > 0

    def _standings(self, found: Rows | None) -> list[Standing]:
        """Rank the rows: equal scores share the rank after all those strictly above, unless ties go by member."""
        if found is None:
            return []
        first, above, ids, scores = found
        try:
            points, reached = self._decoded(scores)
        except InputError as error:
            raise self._foreign(ids, scores, error) from error
        times = [None if at is None else _instant(at) for at in reached]
        positions = range(first + 1, first + 1 + len(ids))
        ranks = list(positions)
        if not self._by_member:
            rank, before = above + 1, scores[0]
            for at, score in enumerate(scores):
                if score != before:
                    rank, before = positions[at], score
                ranks[at] = rank
        return list(map(Standing, positions, ranks, ids, points, times, scores))

    def _decoded(self, scores: list[float]) -> tuple[Sequence[float], Sequence[int | None]]:
        """Return points and times of the scores; numpy takes longer to begin than a few rows take without it."""
        if len(scores) > _FEW:
            points, reached = self.codec.decode_array(np.array(scores))
            return points.tolist(), [None] * len(scores) if reached is None else reached.tolist()
        pairs = [self.codec.decode(score) for score in scores]
        return [points for points, _ in pairs], [reached for _, reached in pairs]

    def _foreign(self, ids: list[bytes], scores: list[float], error: InputError) -> InputError:
        """Say whose score it is that cannot be decoded."""
        for player_id, score in zip(ids, scores, strict=True):
            try:
                self.codec.decode(score)
            except InputError as own:
                return InputError(f"{self.key}, player {player_id!r}: {own.message}", detail=own.detail, hint=own.hint)
        return error


def _not_negative(count: int) -> None:
    if count < 0:
        raise InputError(f"cannot read {count} rows")
