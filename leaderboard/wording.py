"""Numbers with their nouns, for people."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 fault`` or ``2,000 faults``; ``plural`` where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
