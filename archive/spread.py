"""What was sealed of each of several live keys, computed again from the rows and the board's layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from archive.columns import as_arrow
from archive.digest import StandingDigest, member_bytes
from archive.seal import KeyFacts
from leaderboard.errors import ArchiveMismatchError
from leaderboard.shards import Layout


class Spread:
    """The rows of a standing, batch after batch, dealt to the shards that the layout says they were in.

    ``ours``: whether Finale wrote them; other people's writers may spread players in a way of their own.
    Raises ArchiveMismatchError unless there are as many ``keys`` as shards.
    """

    def __init__(self, layout: Layout, keys: Sequence[KeyFacts], *, ours: bool) -> None:
        if len(keys) != layout.number:
            raise ArchiveMismatchError(f"the seal tells of {len(keys)} live keys, its board has {layout.number} shards")
        self._layout = layout
        self._ours = ours
        self._keys = keys
        self._digests = [StandingDigest() for _ in keys]

    def add(self, members: Any, scores: NDArray[np.float64]) -> None:
        """Take the next rows in board order: an Arrow array of text or bytes, and as many scores."""
        # Only the layout by player looks at the members.
        layout = self._layout
        shards = layout.shards([], scores + 0.0) if layout.cuts else layout.of_players(*member_bytes(members))
        order = np.argsort(shards.astype(np.uint16), kind="stable")
        ends = np.cumsum(np.bincount(shards, minlength=layout.number)).tolist()
        members, scores = members.take(as_arrow(order, pa.int64())), scores[order]
        for digest, start, end in zip(self._digests, [0, *ends], ends, strict=False):
            digest.update(members.slice(start, end - start), scores[start:end])

    @property
    def as_laid_out(self) -> bool:
        """Whether the rows of each key can be told by the layout: there are as many, and where others wrote, the same.

        Otherwise no row tells which key it was in, and no digest of a key can be computed.
        """
        as_many = [digest.rows for digest in self._digests] == [key.rows for key in self._keys]
        return as_many and (self._ours or not self._differing())

    def faults(self) -> list[str]:
        """Return the keys whose digest is not the sealed one; none unless the rows were :attr:`as_laid_out`."""
        return self._differing() if self.as_laid_out else []

    def _differing(self) -> list[str]:
        found = [(key, digest.hexdigest()) for key, digest in zip(self._keys, self._digests, strict=True)]
        return [
            f"digest of the live key {key.key} {here}, the seal says {key.digest}"
            for key, here in found
            if here != key.digest
        ]
