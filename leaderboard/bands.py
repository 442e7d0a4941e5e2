"""Score bands: how many players each has is kept beside the board, and a rank is estimated from that.

A rank so told is ``players in better bands + share within the own band``, the share as if the players of a band were
spread evenly over it. It is wrong by less than the players in that band, and exact where a band is one point wide and
equal points share a rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import floor, inf
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator
from pydantic import Strict as Exactly

from leaderboard.fields import Strict

if TYPE_CHECKING:  # imported where it is used: who only reads a configuration starts without it
    import numpy as np
    from numpy.typing import NDArray

MOST = 10_000  #: cuts of one board
_CEILING = 2**53

Points = Annotated[int, Exactly()] | Annotated[float, Exactly()]


class Bands(Strict):
    """Bands of points: all equally wide, from 0 on both ways, or between ascending ``cuts``."""

    width: Points | None = None
    cuts: tuple[Points, ...] = Field(default=(), max_length=MOST)

    @model_validator(mode="after")
    def _one_kind(self) -> Bands:
        if (self.width is None) == (not self.cuts):
            raise ValueError("bands have either a width, bands = { width = 100 }, or cuts, bands = [100, 500, 1000]")
        if self.width is not None and not self.width > 0:
            raise ValueError(f"a band {self.width!r} points wide holds nobody")
        if (wrong := next((pair for pair in pairwise(self.cuts) if pair[0] >= pair[1]), None)) is not None:
            raise ValueError(f"cuts are in ascending order, each once: {wrong[0]!r} stands before {wrong[1]!r}")
        return self


def bands_of(value: Any) -> Any:
    """Return the table that a list of cuts stands for."""
    return {"cuts": value} if isinstance(value, list | tuple) else value


def bands_fault(bands: Bands, *, fraction: bool, multiplier: int | None) -> str:
    """Return what is wrong with the bands of a board of such points, ``""`` if nothing."""
    edges = bands.cuts if bands.width is None else (bands.width,)
    for edge in edges:
        if not fraction and not isinstance(edge, int):
            return f"the band edge {edge!r} is not a whole number, and this board's points are"
        if abs(edge) * (multiplier or 1) >= _CEILING:
            return f"the band edge {edge:,} is past what this board's scores can hold, below 2^53"
    return ""


@dataclass(frozen=True, slots=True)
class Scale:
    """Bands in raw scores: ``width`` of each, or the ascending ``cuts`` between them. Both are exact doubles."""

    width: float | None
    cuts: tuple[float, ...]
    point: float  #: what one point is in raw scores; 0 where points may be fractions

    @property
    def text(self) -> str:
        """The scale as the scripts read it: ``w`` and the width, or ``c`` and the cuts."""
        return f"w{self.width!r}" if self.width is not None else "c" + " ".join(map(repr, self.cuts))

    def of(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the band of each raw score; exact, since a remainder is."""
        import numpy as np

        if self.width is None:
            return np.searchsorted(np.array(self.cuts), scores, side="right").astype(np.int64)
        rest = np.fmod(scores, self.width)
        rest = np.where(rest < 0, rest + self.width, rest)
        quotient = (scores - rest) / self.width  # of whole numbers exact; of fractions next to a whole number
        below = np.floor(quotient)
        return (below + (quotient - below > 0.5)).astype(np.int64)

    def bounds(self, band: int) -> tuple[float, float]:
        """Return the least raw score of a band, and the score below which it ends; infinite where it has no end."""
        if self.width is not None:
            return band * self.width, (band + 1) * self.width
        edges = (-inf, *self.cuts, inf)
        return edges[band], edges[band + 1]


def scale_of(bands: Bands, *, multiplier: int | None, fraction: bool) -> Scale:
    """Return the bands in the raw scores of a board, whose packed scores, if they are, have this ``multiplier``."""
    factor = multiplier or 1
    width = None if bands.width is None else float(bands.width * factor)
    return Scale(width, tuple(float(cut * factor) for cut in bands.cuts), 0.0 if fraction else float(factor))


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated rank, from 1; the true one lies within ``error`` of it. ``players`` are all that were counted."""

    rank: int
    error: int
    players: int


def estimate(
    scale: Scale, counts: Mapping[int, int], score: float, *, descending: bool, one_rank_a_score: bool
) -> Estimate | None:
    """Return the estimated rank of a player with this raw score, who is among the ``counts`` of the bands.

    ``one_rank_a_score``: equal scores share a rank. None where the counts do not know the player's band.
    """
    import numpy as np

    own = int(scale.of(np.array([score]))[0])
    here = counts.get(own, 0)
    if here < 1:
        return None
    above = sum(count for band, count in counts.items() if (band > own if descending else band < own))
    players = sum(counts.values())
    least, end = scale.bounds(own)
    if one_rank_a_score and scale.point == 1.0 and end - least == 1.0:
        return Estimate(above + 1, 0, players)
    share = 0.5 if end - least == inf else ((end - score) if descending else (score - least)) / (end - least)
    rank = above + 1 + floor(min(max(share, 0.0), 1.0) * (here - 1) + 0.5)
    return Estimate(rank, max(rank - above - 1, above + here - rank), players)
