"""Which players differ between a live key and its sealed archive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from archive.columns import Page

NAMED = 20
_MOST = 100_000  # differing rows on either side that are held in memory to be matched

Row = tuple[float, bytes]


@dataclass(frozen=True, slots=True)
class Change:
    """A player whose score differs; None where the player is missing."""

    member: bytes
    live: float | None
    archived: float | None

    def __str__(self) -> str:
        name = self.member.decode(errors="backslashreplace")
        return f"{name!r} live {_told(self.live)}, archived {_told(self.archived)}"


@dataclass(frozen=True, slots=True)
class Changes:
    """How many players are in one of the two only, and how many have another score; the first of them by name.

    ``complete`` is false where so many differ that the comparison stopped: the counts are then the least.
    """

    only_live: int
    only_archived: int
    different: int
    named: tuple[Change, ...]
    complete: bool

    def __str__(self) -> str:
        if not self.named:
            return "no player differs from the archived rows, so the seal and its parts disagree"
        counts = f"{self.only_live:,} only live, {self.only_archived:,} only archived, {self.different:,} different"
        more = "" if self.complete else ", and more"
        return f"{counts}{more}: {'; '.join(map(str, self.named))}"


def compare(live: Iterable[Page], archived: Iterable[Any], *, descending: bool) -> Changes:
    """Return the differences between ``live`` pages and ``archived`` record batches, both in board order.

    The batches have ``player_id`` (text or bytes) and ``score``. Both streams are merged, so that only rows that differ
    are held in memory.
    """
    only_live: dict[bytes, float] = {}
    only_archived: dict[bytes, float] = {}
    complete = True
    for row, is_live in _unmatched(_live_rows(live), _archived_rows(archived), descending):
        (only_live if is_live else only_archived)[row[1]] = row[0]
        if max(len(only_live), len(only_archived)) >= _MOST:
            complete = False
            break
    different = only_live.keys() & only_archived.keys()
    changes = [Change(member, score, only_archived.get(member)) for member, score in only_live.items()]
    changes += [Change(member, None, score) for member, score in only_archived.items() if member not in different]
    return Changes(
        len(only_live) - len(different),
        len(only_archived) - len(different),
        len(different),
        tuple(changes[:NAMED]),
        complete,
    )


def _unmatched(live: Iterator[Row], archived: Iterator[Row], descending: bool) -> Iterator[tuple[Row, bool]]:
    """Yield the rows that one of two streams in board order has alone, and whether it is ``live``."""
    ours, theirs = next(live, None), next(archived, None)
    while ours is not None or theirs is not None:
        if ours == theirs:
            ours, theirs = next(live, None), next(archived, None)
        elif theirs is None or (ours is not None and (ours > theirs if descending else ours < theirs)):
            assert ours is not None
            yield ours, True
            ours = next(live, None)
        else:
            yield theirs, False
            theirs = next(archived, None)


def _live_rows(live: Iterable[Page]) -> Iterator[Row]:
    for page in live:
        yield from zip(page.scores.tolist(), page.members.to_pylist(), strict=True)


def _archived_rows(batches: Iterable[Any]) -> Iterator[Row]:
    for batch in batches:
        members = batch.column("player_id").cast(pa.binary())
        yield from zip(batch.column("score").to_pylist(), members.to_pylist(), strict=True)


def _told(score: float | None) -> str:
    return "missing" if score is None else f"{score!r}"
