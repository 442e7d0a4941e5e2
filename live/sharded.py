"""Reads a board that is spread over several sorted sets as if it were one.

Every shard is asked how many of its members stand before a place, and for the rows on either side of it: the sum is the
position, the merge the rows. So it does not matter by what the board is spread. On one server a question is answered
from one version of all shards; of a cluster each node answers for itself, one round trip a node.

While a player moves between bands of score, both shards have the player: the newer one was marked when it was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from redis import Redis

from leaderboard.errors import UnavailableError
from leaderboard.keys import helper_key
from live.fanout import each, run_each
from live.rows import Place, Rows
from live.single import asked, columns

Row = tuple[float, bytes]
Words = tuple[bytes | str | int, ...]
_HEADS = 10_000  #: how deep a page may lie to be taken from the first rows of every shard


@dataclass(frozen=True, slots=True)
class ShardedSet:
    """Several sorted sets of one board. Where ``banded``, all of one of ``keys`` stands before all of the next.

    ``replica`` is asked for shared views, as of ``SingleSet``; of a banded board only where the first band has all of
    it, so that no page is put together from servers of different age.
    """

    client: Redis
    keys: tuple[str, ...]
    beside: tuple[str, ...]  #: the names beside which the helpers of each of ``keys`` stand
    order: str  #: high | low
    banded: bool
    replica: Redis | None = None

    @property
    def _types(self) -> dict[str, str]:
        return dict.fromkeys(self.keys, "zset")

    def window(self, first: int, last: int) -> Rows | None:
        """Return the rows from index ``first`` to ``last``."""
        if last < first:
            return None
        if self.replica is not None:
            with suppress(UnavailableError):  # the primary has what it has
                found = self._of_replica(self.replica, first, last)
                if found is not None:
                    return found
        return self._window(self.client, first, last)

    def around(self, member: bytes, before: int, after: int) -> Rows | None:
        """Return the member's row with so many before and after."""
        score = self.score(member)
        if score is None:
            return None
        near = self._near(self.client, score, member, before + 1, after + 2)
        index = sum(found[0] for found in near)
        own = (score, member)
        # Who moved since her score was asked for stands in the middle all the same, and nowhere else.
        others = self._merged([[row for row in found[3] if row[1] != member] for found in near])
        ahead = [row for row in others if self._before(row, own)]
        behind = [row for row in others if self._before(own, row)]
        ahead, behind = ahead[max(0, len(ahead) - before) :], behind[:after]
        return self._rows(self.client, index - len(ahead), [*ahead, own, *behind])

    def place(self, member: bytes, *, by_member: bool) -> Place | None:
        """Return where the member stands; ahead are those strictly better, or ``by_member`` all before her."""
        score = self.score(member)
        if score is None:
            return None
        near = self._near(self.client, score, member, 0, 0)
        index, above, players = (sum(found[at] for found in near) for at in range(3))
        return Place(index if by_member else above, players, score)

    def score(self, member: bytes) -> float | None:
        """Return the member's raw score: of two, the one that was written last."""

        def ask() -> float | None:
            replies = self._each([("ZSCORE", key, member) for key in self.keys])
            held = {at: float(reply) + 0.0 for at, reply in enumerate(replies) if reply is not None}
            return held[self._newest(self.client, member, list(held))] if held else None

        # A player who moves may be asked for where she is not yet, and then where she is no more.
        return asked(ask) if (found := asked(ask)) is None and self.banded else found

    def count(self) -> int:
        """Return how many members there are."""
        return sum(int(reply) for reply in asked(lambda: self._each([("ZCARD", key) for key in self.keys])))

    def _each(self, commands: Sequence[Sequence[bytes | str | int]]) -> list[Any]:
        return each(self.client, self._types, commands)

    def _window(self, client: Redis, first: int, last: int) -> Rows | None:
        if self.banded:
            found = self._of_bands(client, first, last)
        elif last < _HEADS:
            found = self._heads(client, [(0, last)] * len(self.keys))[first : last + 1]
        else:
            starts = self._cut(client, first)
            found = self._heads(client, [(start, start + last - first) for start in starts])[: last - first + 1]
        return self._rows(client, first, found) if found else None

    def _of_replica(self, replica: Redis, first: int, last: int) -> Rows | None:
        """Return the rows as a replica has them; None where the first of several bands does not have them all."""
        if not self.banded:
            return self._window(replica, first, last)
        found = self._heads(replica, [(first, last), *[(0, -1)] * (len(self.keys) - 1)])
        return self._rows(replica, first, found) if len(found) > last - first else None

    def _of_bands(self, client: Redis, first: int, last: int) -> list[Row]:
        """Return rows of the bands that have them; nearly always the first alone."""
        sizes = [int(size) for size in asked(lambda: each(client, self._types, [("ZCARD", key) for key in self.keys]))]
        ranges, before = [], 0
        for size in sizes:
            ranges.append((max(0, first - before), min(size, last - before + 1) - 1))
            before += size
        return self._heads(client, ranges)

    def _heads(self, client: Redis, ranges: Sequence[tuple[int, int]]) -> list[Row]:
        """Return the rows of each shard's range of indexes, merged; ranges that are empty are not asked for."""
        wanted = [at for at, (start, end) in enumerate(ranges) if start <= end]
        if not wanted:
            return []
        rev = ("REV",) if self.order == "high" else ()
        commands = [("ZRANGE", self.keys[at], *ranges[at], *rev, "WITHSCORES") for at in wanted]
        parts: list[list[Row]] = [[] for _ in self.keys]
        for at, reply in zip(wanted, asked(lambda: each(client, self._types, commands)), strict=True):
            parts[at] = _pairs(reply)
        return self._merged(parts)

    def _cut(self, client: Redis, index: int) -> list[int]:
        """Return where in each shard the row with this index of the whole board is, or would be.

        Narrows the place down as a search for the k-th of several sorted lists does: some row in the middle of what is
        left, and how many rows of every shard stand before it.
        """
        low = [0] * len(self.keys)
        high = [int(size) for size in asked(lambda: each(client, self._types, [("ZCARD", key) for key in self.keys]))]
        while (widest := max(range(len(low)), key=lambda at: high[at] - low[at])) is not None:
            if high[widest] <= low[widest]:
                break
            middle = (low[widest] + high[widest]) // 2
            pivot = self._heads(client, [(middle, middle) if at == widest else (0, -1) for at in range(len(low))])
            if not pivot:  # the shard has become shorter meanwhile
                high[widest] = middle
                continue
            score, member = pivot[0]
            before = [found[0] for found in self._near(client, score, member, 0, 0)]
            if sum(before) < index:
                low = [max(*pair) for pair in zip(low, before, strict=True)]
                low[widest] = max(low[widest], middle + 1)
            else:
                high = [min(*pair) for pair in zip(high, before, strict=True)]
        return low

    def _near(self, client: Redis, score: float, member: bytes, before: int, after: int) -> list[Any]:
        words: Words = (self.order, repr(score), member, before, after)
        calls: list[tuple[tuple[str, ...], Words]] = [((key,), words) for key in self.keys]
        replies = asked(lambda: run_each(client, "near", calls))
        return [(index, better, size, _pairs(flat)) for index, better, size, flat in replies]

    def _rows(self, client: Redis, index: int, found: Sequence[Row]) -> Rows:
        """Return merged rows with how many are strictly better than the first, nobody than the first of all."""
        if index == 0:
            return Rows(0, 0, [member for _, member in found], [score for score, _ in found])
        score = repr(found[0][0])
        words = (f"({score}", "+inf") if self.order == "high" else ("-inf", f"({score}")
        better = asked(lambda: each(client, self._types, [("ZCOUNT", key, *words) for key in self.keys]))
        return Rows(index, sum(map(int, better)), [member for _, member in found], [score for score, _ in found])

    def _before(self, one: Row, other: Row) -> bool:
        """Return whether a row stands before another: by score, then by bytes, both descending on high boards."""
        return one > other if self.order == "high" else one < other

    def _merged(self, parts: Sequence[Sequence[Row]]) -> list[Row]:
        """Return rows of all shards, in the order of ``keys``, in board order; no player twice."""
        tagged = [(member, at, score) for at, part in enumerate(parts) for score, member in part]
        if self.banded:
            tagged = self._without_older(tagged)
        return sorted(((score, member) for member, _, score in tagged), reverse=self.order == "high")

    def _without_older(self, tagged: list[tuple[bytes, int, float]]) -> list[tuple[bytes, int, float]]:
        if len({member for member, _, _ in tagged}) == len(tagged):
            return tagged
        kept = []
        for member, group in groupby(sorted(tagged), key=lambda one: one[0]):
            held = {at: score for _, at, score in group}
            at = self._newest(self.client, member, list(held))
            kept.append((member, at, held[at]))
        return kept

    def _newest(self, client: Redis, member: bytes, shards: Sequence[int]) -> int:
        """Return which of the shards that have the member was given it last."""
        if len(shards) == 1:
            return shards[0]
        marks = asked(
            lambda: each(
                client,
                {},
                [("HGET", helper_key(self.beside[at], "moving"), member) for at in shards],
            )
        )
        return max(zip((mark or b"" for mark in marks), shards, strict=True))[1]


def _pairs(reply: Any) -> list[Row]:
    members, scores = columns(reply)
    return list(zip(scores, members, strict=True))
