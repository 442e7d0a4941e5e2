"""A season's live keys as they were at one instant (I3), staged as parts that may still be thrown away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from archive.duplicates import check_once
from archive.instant import Connect, Instant, joined_blocks
from archive.layout import staging_dir
from archive.merge import Block
from archive.pacing import PAGE_BUDGET, PAGE_ROWS
from archive.parts import PART_ROWS, PartCutter
from archive.proof import DisturbedError, ProofConnection
from archive.refusals import CrowdedError, MovedError
from archive.seal import StandingFacts
from archive.standing import Standing
from archive.store import Store
from archive.uploads import Uploads
from leaderboard.board import Board
from leaderboard.errors import SeasonHeldError
from leaderboard.season import Bounds

_LONGEST_PAUSE = 10  # seconds
_BLOCK_ROWS, _BLOCK_BYTES = 20_000, 8 * 2**20


class SnapshotDisturbedError(SeasonHeldError):
    """The live key was written to during every try to read it."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was staged. ``restarts``: how often it was disturbed before."""

    facts: StandingFacts
    restarts: int


@dataclass(frozen=True, slots=True)
class Source:
    """What a snapshot is taken of: a season's live key, its board as fixed when the season opened, and its bounds.

    Of a board with shards, ``key`` is what a person is shown for all of them, and ``shards`` are their names.
    """

    board: Board
    bounds: Bounds
    key: str
    shards: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The sorted sets that are read."""
        return self.shards or (self.key,)


def take(
    connect: Connect,
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
    """Read the live keys at one instant and stage them as one standing: parts, put once each while they are read.

    ``attempt`` names the staging folder of the 1st, 2nd, … try; names may never come twice. A try during which somebody
    wrote, or a slot of a cluster moved, is thrown away with what it staged, and repeated on new connections after
    ``pause`` (given seconds, growing), which also comes between the tries of a put. ``progress`` is told rows read and
    rows in all after each block. A missing key gives no rows: only the caller, who knows the ledger, can tell an empty
    season from a lost one. A server that is out of memory and refuses the proof is read once more, and proved by a
    transaction of no commands.

    Raises SnapshotDisturbedError after ``tries`` disturbed tries, ForeignMemberError for a row that the board cannot
    have written, DoublePlayerError for a player in two shards, and what the proof connection and the store raise;
    whatever it is, nothing but staging was written.
    """
    numbers = count(1)

    def once(prove: Callable[[ProofConnection], object] = ProofConnection.exec) -> Snapshot:
        number = next(numbers)
        name = attempt(number)
        folder = staging_dir(source.board.name, source.bounds.id, name)
        with Uploads(store, folder, pause) as uploads:
            with Instant(connect, source.keys) as instant:
                standing = _stage(instant, source, uploads, blocks(instant), part_rows, progress, prove)
            differ = instant.all_differ()  # while the last rows are being encoded
            parts = uploads.finish()
            facts = standing.facts(name, parts, instant.key_facts(standing.digest))
            if not differ:
                check_once(connect, source.keys, store, folder, parts)
        return Snapshot(facts, number - 1)

    def blocks(instant: Instant) -> Iterable[Block]:
        board = source.board
        return instant.blocks(
            descending=board.descending, cuts=board.layout.cuts, page_rows=page_rows, page_budget=page_budget
        )

    def once_even_crowded() -> Snapshot:
        try:
            return once()
        except CrowdedError:
            return once(ProofConnection.unchanged)

    retrying = Retrying(
        retry=retry_if_exception_type((DisturbedError, MovedError)),
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
    instant: Instant,
    source: Source,
    uploads: Uploads,
    blocks: Iterable[Block],
    part_rows: int,
    progress: Callable[[int, int], None] | None,
    prove: Callable[[ProofConnection], object],
) -> Standing:
    """Return the standing of all ``blocks``, once they are proved and given to ``uploads``."""
    standing = Standing(source.board, source.bounds, source.keys)
    cutter = PartCutter(standing.schema, part_rows)
    rows, total = 0, sum(instant.rows)
    waiting = _Waiting()
    proved = False

    def prove_at_once() -> None:
        """Prove once all was read: whatever is still to be merged, encoded and put must not keep the window open."""
        nonlocal proved
        if not proved and (rows == total or instant.complete):
            instant.prove(prove)
            proved = True

    for block in blocks:
        rows += len(block)
        waiting.add(block)
        if progress:
            progress(rows, total)
        prove_at_once()
        if rows == total or waiting.full:
            uploads.put(cutter.add(standing.add(waiting.taken())), prove_at_once)
    prove_at_once()  # also where there was no row
    uploads.put(cutter.finish())
    return standing


class _Waiting:
    """Blocks that are worked on at once, so that short ones cost no more than long ones."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._rows = self._size = 0

    def add(self, block: Block) -> None:
        """Take the next block."""
        self._blocks.append(block)
        self._rows += len(block)
        self._size += block.page.members.nbytes

    @property
    def full(self) -> bool:
        """Whether there is enough to be worked on."""
        return self._rows >= _BLOCK_ROWS or self._size >= _BLOCK_BYTES

    def taken(self) -> Block:
        """Return all that waited, as one."""
        block = joined_blocks(self._blocks)
        self._blocks, self._rows, self._size = [], 0, 0
        return block
