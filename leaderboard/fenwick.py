"""How many of a whole board's players have which points: a Fenwick tree over a bounded range of whole points.

Source: P. M. Fenwick, "A new data structure for cumulative frequency tables", Software: Practice and Experience 24
(1994). Building and asking are done for all points of a call at once, in numpy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leaderboard.errors import InputError

Integers = NDArray[np.int64]
MOST = 2**27  #: different points that a tree may be over: a gigabyte


class Fenwick:
    """Counts of players by points, ``least`` to ``most``, both with them.

    Building costs the size of the range; a change, a question and each round of a whole array of them the logarithm.
    """

    def __init__(self, least: int, most: int) -> None:
        if least > most or most - least >= MOST:
            raise InputError(
                f"points from {least:,} to {most:,} are too many to count, or none", hint=f"up to {MOST:,}"
            )
        self.least = least
        self.most = most
        self.players = 0
        self._size = most - least + 1
        self._tree = np.zeros(self._size + 1, dtype=np.int64)

    @classmethod
    def of(cls, points: Integers, least: int | None = None, most: int | None = None) -> Fenwick:
        """Return the tree of a whole board. Raises InputError for points outside ``least`` to ``most``, if given."""
        if not points.size and (least is None or most is None):
            raise InputError("the points of nobody have no range", hint="give least and most")
        tree = cls(int(points.min()) if least is None else least, int(points.max()) if most is None else most)
        counts = np.bincount(tree._places(points) - 1, minlength=tree._size)
        sums = np.concatenate([[0], np.cumsum(counts)])
        at = np.arange(tree._size + 1)
        tree._tree = sums - sums[at - (at & -at)]
        tree.players = int(points.size)
        return tree

    def add(self, points: int, players: int = 1) -> None:
        """Count so many players more, or fewer, with these points."""
        at = int(self._places(np.array([points]))[0])
        self.players += players
        while at <= self._size:
            self._tree[at] += players
            at += at & -at

    def below(self, points: Integers) -> Integers:
        """Return how many players have fewer than each of these points, which may lie outside the range."""
        at = np.clip(points - self.least, 0, self._size)
        found = np.zeros(at.shape, dtype=np.int64)
        while at.any():
            found += self._tree[at]
            at = at & (at - 1) & -(at > 0).astype(np.int64)
        return found

    def ranks(self, points: Integers, *, descending: bool = True) -> Integers:
        """Return the rank of each of these points: one more than there are players with better ones."""
        return (self.players - self.below(points + 1) if descending else self.below(points)) + 1

    def kth(self, positions: Integers, *, descending: bool = True) -> Integers:
        """Return the points at each of these positions, from 1. Raises InputError for one that nobody has."""
        if positions.size and not (positions.min() >= 1 and positions.max() <= self.players):
            raise InputError(f"positions are 1 to {self.players:,}, not {positions.min():,} to {positions.max():,}")
        left = (self.players - positions + 1 if descending else positions.copy()).astype(np.int64)
        at = np.zeros(left.shape, dtype=np.int64)
        step = 1 << (self._size.bit_length() - 1)
        while step:
            further = at + step
            inside = further <= self._size
            counts = self._tree[np.where(inside, further, 0)]
            goes = inside & (counts < left)
            left -= np.where(goes, counts, 0)
            at = np.where(goes, further, at)
            step >>= 1
        return at + self.least

    def _places(self, points: Integers) -> Integers:
        outside = (points < self.least) | (points > self.most)
        if outside.any():
            wrong = int(points[outside][0])
            raise InputError(f"{wrong:,} points are outside {self.least:,} to {self.most:,}, which are counted")
        return points - self.least + 1
