"""What a board is read from: rows of raw scores, and where a member stands, each from one version of the set."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Rows(NamedTuple):
    """Consecutive rows in board order. ``first`` is their first one's index (from 0), ``above`` how many are better.

    The two differ by the members that have the first row's score and stand before it.
    """

    first: int
    above: int
    ids: list[bytes]
    scores: list[float]


class Place(NamedTuple):
    """Where one member stands among ``players``: ``ahead`` of her stand so many."""

    ahead: int
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

    def place(self, member: bytes, *, by_member: bool) -> Place | None:
        """Return where the member stands; None for one who is not there.

        Ahead are those strictly better, or, ``by_member``, all in board order before her.
        """
        ...

    def score(self, member: bytes) -> float | None:
        """Return the member's raw score; None for one who is not there."""
        ...

    def count(self) -> int:
        """Return how many members there are."""
        ...
