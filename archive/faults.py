"""What is not as it was sealed: the file, what is wrong with it, and both values where there are two."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from leaderboard.errors import ArchiveMismatchError

_VERBS = ("is", "has", "was", "holds", "does", "names", "and")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: the ``file`` by its path in the store, and ``what`` is wrong, in words that follow it."""

    file: str
    what: str
    expected: Any = None
    found: Any = None

    def __str__(self) -> str:
        return told([self])

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return asdict(self)


class NotAsSealedError(ArchiveMismatchError):
    """Files of a seal are missing or other than sealed: ``faults`` has each."""

    def __init__(self, message: str, *, faults: Iterable[Fault], detail: str = "", hint: str = "") -> None:
        self.faults = tuple(faults)
        super().__init__(message, detail=detail, hint=hint)


def told(faults: Iterable[Fault], between: str = "; ") -> str:
    """Return faults in words, each file named once; ``between`` stands between files."""
    by_file: dict[str, list[str]] = {}
    for fault in faults:
        by_file.setdefault(fault.file, []).append(fault.what)
    return between.join(
        f"{file}{' ' if whats[0].partition(' ')[0] in _VERBS else ': '}{'; '.join(dict.fromkeys(whats))}"
        for file, whats in by_file.items()
    )


def split(text: str) -> Fault:
    """Return the fault that ``text`` tells, which begins with its file."""
    file, _, what = text.partition(" ")
    return Fault(file.removesuffix(":"), what)
