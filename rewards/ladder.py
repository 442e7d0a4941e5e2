"""A ladder: the players among whom places count, and where its places and ties lie on the board.

The whole board is one, each league another. Positions are those of the standings; places are 1, 2, 3, … within.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK = 65_536


class Ladder:
    """Counts places without keeping one for each player: ``member`` tells who has a place, None that all have."""

    def __init__(self, starts: NDArray[np.bool_], member: NDArray[np.bool_] | None) -> None:
        self._starts, self._member = starts, member
        self._before = np.zeros(1, np.int64)
        if member is not None:
            blocks = [np.count_nonzero(member[at : at + _BLOCK]) for at in range(0, member.size, _BLOCK)]
            self._before = np.concatenate([self._before, np.cumsum(blocks, dtype=np.int64)])

    @property
    def players(self) -> int:
        """How many have a place."""
        return int(self._starts.size if self._member is None else self._before[-1])

    def through(self, position: int) -> int:
        """Return how many places there are down to and with ``position``, so the place of a player there."""
        position = min(max(position, 0), self._starts.size)
        if self._member is None:
            return position
        block, rest = divmod(position, _BLOCK)
        within = self._member[block * _BLOCK : block * _BLOCK + rest]
        return int(self._before[block]) + int(np.count_nonzero(within))

    def position(self, place: int) -> int:
        """Return the position of whoever has ``place``, which exists."""
        if self._member is None:
            return place
        block = int(np.searchsorted(self._before, place, side="left")) - 1
        within = np.flatnonzero(self._member[block * _BLOCK : (block + 1) * _BLOCK])
        return block * _BLOCK + int(within[place - 1 - int(self._before[block])]) + 1

    def tie(self, place: int) -> tuple[int, int]:
        """Return the first and the last place of those who share the score of ``place``, which exists."""
        position = self.position(place)
        first, after = self._start_through(position), self._start_after(position)
        return self.through(first - 1) + 1, self.through(after - 1)

    def _start_through(self, position: int) -> int:
        """Return the position at which the tie around ``position`` begins."""
        end = position
        while end > 0:
            begin = max(end - _BLOCK, 0)
            found = np.flatnonzero(self._starts[begin:end])
            if found.size:
                return begin + int(found[-1]) + 1
            end = begin
        return 1

    def _start_after(self, position: int) -> int:
        """Return the position of the next tie after that around ``position``; one more than the last if none."""
        for begin in range(position, self._starts.size, _BLOCK):
            window = self._starts[begin : begin + _BLOCK]
            if window.any():
                return begin + int(window.argmax()) + 1
        return int(self._starts.size) + 1
