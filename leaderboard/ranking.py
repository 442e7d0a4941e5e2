"""Positions and ranks of standings read in board order, page after page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True)
class Ranker:
    """Gives each row its position (1..N, each once) and rank, carrying the border between pages.

    Equal scores share a rank (1, 1, 3), "standard competition ranking", unless ``shared`` is false
    (``ties = "member"``), where rank is position.
    """

    shared: bool = True
    rows: int = 0
    _score: float = float("nan")
    _rank: int = 0

    def add(self, scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions and ranks of the next rows in board order, given their raw scores."""
        positions = np.arange(self.rows + 1, self.rows + 1 + scores.size, dtype=np.int64)
        if not scores.size:
            return positions, positions.copy()
        self.rows += scores.size
        if not self.shared:
            return positions, positions.copy()
        first = np.empty(scores.size, dtype=bool)
        first[0] = scores[0] != self._score
        np.not_equal(scores[1:], scores[:-1], out=first[1:])
        ranks = np.maximum.accumulate(np.where(first, positions, 0))
        if not first[0]:
            ranks[ranks == 0] = self._rank
        self._score, self._rank = float(scores[-1]), int(ranks[-1])
        return positions, ranks
