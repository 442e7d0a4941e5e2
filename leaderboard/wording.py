"""Numbers with their nouns, and lists that are cut, for people."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 fault`` or ``2,000 faults``; ``plural`` where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(words: Sequence[object], most: int, total: int | None = None, *, between: str = ", ") -> str:
    """Return the first ``most`` words, and how many more there are, of ``total`` or of all: ``a, b and 12 more``."""
    left = (len(words) if total is None else total) - min(most, len(words))
    return between.join(map(str, words[:most])) + more(left)


def more(left: int) -> str:
    """Return `` and 12 more``, what follows a list that is cut; nothing if nothing is left."""
    return f" and {left:,} more" if left > 0 else ""
