"""What a board is read from: rows of raw scores, and where a member stands, each from one version of the set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive rows in board order. ``index`` is that of the first (from 0), ``above`` how many are strictly better.

    The two differ by the members that have the first row's score and stand before it.
    """

    index: int
    above: int
    ids: list[bytes]
    scores: list[float]


@dataclass(frozen=True, slots=True)
class Place:
    """Where one member stands among ``players``: ``index`` from 0, ``above`` how many are strictly better."""

    index: int
    above: int
    players: int
    score: float


class Source(Protocol):
    """One sorted set, or several that are read as one. ``shared`` reads may come from a replica, all others may not.

    Every method raises UnavailableError or AccessError for a server that does not answer or refuses, and WrongTypeError
    for a key that is not a sorted set.
    """

    def window(self, first: int, last: int) -> Rows | None:
        """Return the rows from index ``first`` to ``last``, both with them; None where there are none. Shared."""
        ...

    def around(self, member: bytes, before: int, after: int) -> Rows | None:
        """Return the member's row with so many before and after; None for one who is not there."""
        ...

    def place(self, member: bytes) -> Place | None:
        """Return where the member stands; None for one who is not there."""
        ...

    def score(self, member: bytes) -> float | None:
        """Return the member's raw score; None for one who is not there."""
        ...

    def count(self) -> int:
        """Return how many members there are."""
        ...
