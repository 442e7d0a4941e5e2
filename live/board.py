"""Reads a live board: the top, one player, the neighbours, each from one version of the set."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from redis import Redis

from leaderboard.board import Board
from leaderboard.codec import Codec, codec_for, from_microseconds
from leaderboard.errors import InputError
from leaderboard.season import Bounds
from leaderboard.standing import Standing
from live.scripts import run
from live.translate import translated

PAGE = 10_000  #: rows that one call reads at most: what a server can answer without others noticing


@dataclass(frozen=True)
class LiveBoard:
    """A season's sorted set, read in board order. A key that does not exist is a board without players.

    Every method raises UnavailableError or AccessError for a server that does not answer or refuses, WrongTypeError for
    a key that is not a sorted set, and InputError for a score that the board's codec cannot have written.
    """

    client: Redis
    board: Board
    bounds: Bounds
    key: str

    @cached_property
    def codec(self) -> Codec:
        """The codec of the board's scores in this season."""
        return codec_for(self.board, self.bounds)

    def top(self, k: int) -> list[Standing]:
        """Return the first ``k`` rows, fewer where the board is shorter.

        Up to ``PAGE`` rows are of one version; more are read page by page, and a player who moves meanwhile may be
        seen twice or not at all.
        """
        _not_negative(k)
        rows: list[Standing] = []
        while len(rows) < k:
            page = self._window(len(rows), min(k, len(rows) + PAGE) - 1)
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
        return self._window(n, n, player_id)

    def count(self) -> int:
        """Return how many players are on the board."""
        with translated(self.client, {self.key: "zset"}):
            return int(self.client.zcard(self.key))

    def exists(self) -> bool:
        """Return whether the live key exists; Redis keeps no empty sorted set."""
        return self.count() > 0

    def _window(self, first: int, last: int, *member: bytes) -> list[Standing]:
        reply = run(self.client, "window", {self.key: "zset"}, self.board.order, first, last, *member)
        if not reply:
            return []
        index, above, flat = reply
        return self._standings(index, above, flat[0::2], [float(text) + 0.0 for text in flat[1::2]])

    def _standings(self, index: int, above: int, ids: list[bytes], scores: list[float]) -> list[Standing]:
        """Rank the rows: equal scores share the rank after all those strictly above, unless ties go by member."""
        try:
            points, reached = self.codec.decode_array(np.array(scores))
            times = [None] * len(ids) if reached is None else [from_microseconds(at) for at in reached.tolist()]
        except InputError as error:
            raise self._foreign(ids, scores, error) from error
        rows: list[Standing] = []
        rank, shared = above + 1, self.board.ties.by != "member"
        for position, row in enumerate(zip(ids, points.tolist(), times, scores, strict=True), index + 1):
            if not shared or (rows and row[3] != rows[-1].score):
                rank = position
            rows.append(Standing(position, rank, *row))
        return rows

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
