"""A live key as it was at one instant (I3), staged as parts that may still be thrown away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from archive.columns import Page, joined
from archive.drain import pages
from archive.layout import staging_dir
from archive.pacing import PAGE_BUDGET, PAGE_ROWS
from archive.parts import PART_ROWS, PartCutter
from archive.proof import DisturbedError, ProofConnection
from archive.refusals import CrowdedError
from archive.seal import StandingFacts
from archive.standing import Standing
from archive.store import Store
from archive.uploads import Uploads
from leaderboard.board import Board
from leaderboard.errors import SeasonHeldError
from leaderboard.season import Bounds

_LONGEST_PAUSE = 10  # seconds
_BLOCK_ROWS, _BLOCK_BYTES = 20_000, 8 * 2**20  # worked on at once, so that short pages cost no more than long ones


class SnapshotDisturbedError(SeasonHeldError):
    """The live key was written to during every try to read it."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was staged. ``existed``: whether the live key was there; ``restarts``: how often it was disturbed before."""

    facts: StandingFacts
    existed: bool
    restarts: int


@dataclass(frozen=True, slots=True)
class Source:
    """What a snapshot is taken of: a season's live key, its board as fixed when the season opened, and its bounds."""

    board: Board
    bounds: Bounds
    key: str


def take(
    connect: Callable[[], ProofConnection],
    source: Source,
    store: Store,
    *,
    attempt: Callable[[int], str],
    tries: int = 5,
    page_rows: int = PAGE_ROWS,
    page_budget: timedelta = PAGE_BUDGET,
    part_rows: int = PART_ROWS,
    pause: Callable[[float], None] = time.sleep,
    progress: Callable[[int, int], None] | None = None,
) -> Snapshot:
    """Read the live key at one instant and stage it as parts, put once each, side by side, while it is being read.

    ``attempt`` names the staging folder of the 1st, 2nd, … try; names may never come twice. A try during which somebody
    wrote is thrown away with what it staged, and repeated on a new connection after ``pause`` (given seconds, growing);
    ``progress`` is told rows read and rows in all after each page. A missing key gives no rows: only the caller, who
    knows the ledger, can tell an empty season from a lost one. A server that is out of memory and refuses the proof is
    read once more, and proved by a transaction of no commands.

    Raises SnapshotDisturbedError after ``tries`` disturbed tries, ForeignMemberError for a row that the board cannot
    have written, and what the proof connection and the store raise; whatever it is, nothing but staging was written.
    """
    numbers = count(1)

    def once(prove: Callable[[ProofConnection], object] = ProofConnection.exec) -> Snapshot:
        number = next(numbers)
        name = attempt(number)
        with Uploads(store, staging_dir(source.board.name, source.bounds.id, name)) as uploads:
            with connect() as proof:
                total = proof.watch(source.key).rows.get(source.key)
                live = pages(
                    proof,
                    source.key,
                    descending=source.board.descending,
                    page_rows=page_rows,
                    page_budget=page_budget,
                )
                standing = _stage(proof, live, total or 0, source, uploads, part_rows, progress, prove)
            parts = uploads.finish()
        return Snapshot(standing.facts(name, parts), total is not None, number - 1)

    def once_even_crowded() -> Snapshot:
        try:
            return once()
        except CrowdedError:
            return once(ProofConnection.unchanged)

    retrying = Retrying(
        retry=retry_if_exception_type(DisturbedError),
        stop=stop_after_attempt(tries),
        wait=wait_random_exponential(multiplier=0.2, max=_LONGEST_PAUSE),
        sleep=pause,
        reraise=True,
    )
    try:
        return retrying(once_even_crowded)
    except DisturbedError as error:
        raise SnapshotDisturbedError(
            f"{source.board.name}/{source.bounds.id}: the live key was written to in each of {tries} tries to read it",
            detail=f"{source.key}: {error.detail}",
            hint="stop what writes to it (a finished season takes no results), then release the season",
        ) from None


def _stage(
    proof: ProofConnection,
    live: Iterable[Page],
    total: int,
    source: Source,
    uploads: Uploads,
    part_rows: int,
    progress: Callable[[int, int], None] | None,
    prove: Callable[[ProofConnection], object],
) -> Standing:
    """Return the standing of the ``live`` pages, ``total`` rows, once they are proved and given to ``uploads``."""
    standing = Standing(source.board, source.bounds, source.key)
    cutter = PartCutter(standing.schema, part_rows)
    rows = 0
    waiting: list[Page] = []
    for page in live:
        rows += len(page)
        waiting.append(page)
        if progress:
            progress(rows, total)
        if rows == total:
            # At once: whatever is still to be encoded and put must not keep the window open.
            prove(proof)
        if rows == total or _is_block(waiting):
            uploads.put(cutter.add(standing.add(joined(waiting))))
            waiting.clear()
    if not total:
        prove(proof)
    uploads.put(cutter.finish())
    return standing


def _is_block(waiting: list[Page]) -> bool:
    return sum(map(len, waiting)) >= _BLOCK_ROWS or sum(page.members.nbytes for page in waiting) >= _BLOCK_BYTES
