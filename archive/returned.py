"""Whether a key that was once sealed, and is there again, still is what was sealed. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from archive.changes import compare
from archive.digest import StandingDigest
from archive.drain import pages
from archive.pacing import PAGE_BUDGET, PAGE_ROWS
from archive.proof import DisturbedError, ProofConnection
from archive.seal import KeyFacts


@dataclass(frozen=True, slots=True)
class Likeness:
    """How a live key compares with its seal: its rows, whether they are the sealed ones, and else what differs."""

    rows: int
    equal: bool
    told: str


def likeness(
    connect: Callable[[], ProofConnection],
    sealed: KeyFacts,
    *,
    descending: bool,
    archived: Callable[[], Iterable[Any]] | None,
    page_rows: int = PAGE_ROWS,
    page_budget: timedelta = PAGE_BUDGET,
) -> Likeness:
    """Compare the live key with what was ``sealed`` of it, at one instant.

    ``archived`` gives the sealed rows in board order; it is asked only to name the players that differ, who without it
    are not named. A key that is being written to is not equal. Raises what the proof connection raises, WrongTypeError
    for one that is no sorted set.
    """
    with connect() as proof:
        rows = proof.watch(sealed.key).rows.get(sealed.key, 0)

        def live() -> Iterable[Any]:
            return pages(proof, sealed.key, descending=descending, page_rows=page_rows, page_budget=page_budget)

        digest = StandingDigest()
        try:
            for page in live():
                digest.update(page.members, page.scores)
            if (digest.rows, digest.hexdigest()) != (sealed.rows, sealed.digest):
                if archived is None:
                    return Likeness(rows, False, _told(rows, sealed))
                return Likeness(rows, False, str(compare(live(), archived(), descending=descending)))
            proof.unchanged()
        except DisturbedError:
            return Likeness(rows, False, "it is being written to")
    return Likeness(rows, True, "")


def _told(rows: int, sealed: KeyFacts) -> str:
    if rows != sealed.rows:
        return f"{sealed.key} has {rows:,} rows, sealed were {sealed.rows:,}"
    return f"{sealed.key} has other players or scores than were sealed"
