"""Boards over several sorted sets: by bands of score, or by player; and which shard has whom.

Shards are numbered from 0. Those of a ``score`` board are bands: shard 0 has the points below the first cut, shard 1
those from it up to the second, and so on, whatever the order of the board. That of a player on a ``player`` board is
``zlib.crc32(member) % count``: CRC-32 (IEEE 802.3) of the member's bytes, which every language has, so that writers
and readers that are not Finale's can find it too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, Literal
from zlib import crc32

from pydantic import BeforeValidator, Field, model_validator
from pydantic import Strict as Exactly

from leaderboard.fields import Strict

if TYPE_CHECKING:  # imported where it is used: who only reads a configuration starts without it
    import numpy as np
    from numpy.typing import NDArray

MOST = 256  #: shards of one board: a snapshot has a connection to each
_CEILING = 2**53

Cut = Annotated[int, Exactly()] | Annotated[float, Exactly()]


def _cuts(value: Any) -> Any:
    if isinstance(value, list | tuple) and (wrong := next((cut for cut in value if isinstance(cut, bool)), None)):
        raise ValueError(f"{wrong!r} is no number of points")
    return value


class Shards(Strict):
    """Over how many sorted sets a board is spread, and by what.

    ``cuts`` are points, ascending; a band holds its lower cut and ends before the next. ``count`` is the number of
    shards of a ``player`` board.
    """

    by: Literal["none", "score", "player"] = "none"
    cuts: Annotated[tuple[Cut, ...], BeforeValidator(_cuts)] = Field(default=(), max_length=MOST - 1)
    count: int | None = Field(default=None, ge=2, le=MOST)

    @model_validator(mode="after")
    def _fits_by(self) -> Shards:
        if (self.by == "score") != bool(self.cuts):
            raise ValueError('shards by "score" have cuts, and no others do: shards = { by = "score", cuts = [1000] }')
        if (self.by == "player") != (self.count is not None):
            raise ValueError('shards by "player" have a count, and no others do: shards = { by = "player", count = 8 }')
        if (wrong := next((pair for pair in pairwise(self.cuts) if pair[0] >= pair[1]), None)) is not None:
            raise ValueError(f"cuts are in ascending order, each once: {wrong[0]!r} stands before {wrong[1]!r}")
        return self

    @property
    def number(self) -> int:
        """How many shards there are: 1 for a board that is in one sorted set."""
        return self.count or len(self.cuts) + 1


def shards_of(value: Any) -> Any:
    """Return the table that one word stands for."""
    return {"by": value} if isinstance(value, str) else value


def cut_fault(shards: Shards, *, fraction: bool, multiplier: int | None) -> str:
    """Return what is wrong with the cuts on a board of such points, ``""`` if nothing.

    ``multiplier`` is that of a packed score.
    """
    most = _CEILING // (multiplier or 1)
    for cut in shards.cuts:
        if not fraction and not isinstance(cut, int):
            return f"the cut {cut!r} is not a whole number, and this board's points are"
        if multiplier is not None and not 0 < cut < most:
            return (
                f"the cut {cut:,} is outside the points that this board's scores hold: 0 to {most - 1:,}, below 2^53 / "
                f"{multiplier:,}; a band would always be empty"
            )
        if abs(cut) >= _CEILING and not fraction:
            return f"the cut {cut:,} is past 2^53, where scores are no longer exact"
    return ""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which shard has whom. ``cuts`` are scores, exact, and none unless the shards are bands of score."""

    number: int
    cuts: tuple[float, ...]
    descending: bool

    def shard(self, member: bytes, score: float) -> int:
        """Return the shard of a player with this raw score."""
        return bisect_right(self.cuts, score) if self.cuts else self.of_player(member)

    def of_player(self, member: bytes) -> int:
        """Return the shard of a player on a board that is not cut by score. Source: the module."""
        return crc32(member) % self.number

    def shards(self, members: Sequence[bytes], scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the shard of each of several players, as :meth:`shard` does of one."""
        import numpy as np

        if self.cuts:
            return np.searchsorted(np.array(self.cuts), scores, side="right").astype(np.int64)
        return np.fromiter((self.of_player(member) for member in members), np.int64, len(members))

    def of_players(self, lengths: NDArray[np.uint32], data: memoryview) -> NDArray[np.int64]:
        """Return the shards of players whose ids have these ``lengths``, one after the other in ``data``."""
        import numpy as np

        from leaderboard.crc import crc32s

        return (crc32s(lengths, data) % np.uint32(self.number)).astype(np.int64)

    def band(self, shard: int) -> tuple[float, float]:
        """Return the least score of a shard, and the score below which it ends; all scores where shards are no bands.

        The last band ends at infinity, and has it.
        """
        if not self.cuts:
            return -inf, inf
        bounds = (-inf, *self.cuts, inf)
        return bounds[shard], bounds[shard + 1]

    def in_order(self) -> tuple[int, ...]:
        """Return the shards as a board is read from its first position on; bands of a high board from the highest."""
        numbers = tuple(range(self.number))
        return numbers[::-1] if self.cuts and self.descending else numbers


def layout_of(shards: Shards, *, multiplier: int | None, descending: bool) -> Layout:
    """Return the layout of a board, whose packed scores, if they are, have this ``multiplier``.

    Points and a time below them make a score of at least ``points * multiplier``: that is where a band begins.
    """
    return Layout(shards.number, tuple(float(cut * (multiplier or 1)) for cut in shards.cuts), descending)
