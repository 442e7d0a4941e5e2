"""A live key as it was at one instant (I3), staged as parts that may still be thrown away."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from archive.drain import PAGE_ROWS, pages
from archive.layout import parse_part, staging_dir
from archive.parts import PART_ROWS, Part, PartWriter
from archive.proof import DisturbedError, ProofConnection
from archive.seal import StandingFacts
from archive.standing import Standing
from archive.store import Store, settle
from leaderboard.board import Board
from leaderboard.errors import FinaleError, SeasonHeldError
from leaderboard.season import Bounds

_IN_FLIGHT = 2  # parts held in memory while they are put
_LONGEST_PAUSE = 10  # seconds


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
    part_rows: int = PART_ROWS,
    pause: Callable[[float], None] = time.sleep,
    progress: Callable[[int, int], None] | None = None,
) -> Snapshot:
    """Read the live key at one instant and stage it as parts, put once each, side by side, while it is being read.

    ``attempt`` names the staging folder of the 1st, 2nd, … try; names may never come twice. A try during which somebody
    wrote is thrown away with what it staged, and repeated on a new connection after ``pause`` (given seconds, growing);
    ``progress`` is told rows read and rows in all after each page. A missing key gives no rows: only the caller, who
    knows the ledger, can tell an empty season from a lost one.

    Raises SnapshotDisturbedError after ``tries`` disturbed tries, ForeignMemberError for a row that the board cannot
    have written, and what the proof connection and the store raise; whatever it is, nothing but staging was written.
    """
    numbers = count(1)

    def once() -> Snapshot:
        number = next(numbers)
        uploads = _Uploads(store, source, attempt(number))
        with uploads:
            with connect() as proof:
                standing, existed = _read(proof, source, uploads, page_rows, part_rows, progress)
            parts = uploads.finish()
        return Snapshot(standing.facts(uploads.attempt, parts), existed, number - 1)

    retrying = Retrying(
        retry=retry_if_exception_type(DisturbedError),
        stop=stop_after_attempt(tries),
        wait=wait_random_exponential(multiplier=0.2, max=_LONGEST_PAUSE),
        sleep=pause,
        reraise=True,
    )
    try:
        return retrying(once)
    except DisturbedError as error:
        raise SnapshotDisturbedError(
            f"{source.board.name}/{source.bounds.id}: the live key was written to in each of {tries} tries to read it",
            detail=f"{source.key}: {error.detail}",
            hint="stop what writes to it (a finished season takes no results), then release the season",
        ) from None


def _read(
    proof: ProofConnection,
    source: Source,
    uploads: _Uploads,
    page_rows: int,
    part_rows: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[Standing, bool]:
    standing = Standing(source.board, source.bounds, source.key)
    writer = PartWriter(standing.schema, part_rows)
    watched = proof.watch(source.key)
    total = watched.rows.get(source.key, 0)
    rows = 0
    for page in pages(proof, source.key, descending=source.board.descending, page_rows=page_rows):
        rows += len(page)
        if progress:
            progress(rows, total)
        if rows == total:
            # At once: whatever is still to be encoded and put must not keep the window open.
            proof.exec()
        uploads.put(writer.add(standing.add(page)))
    if not total:
        proof.exec()
    uploads.put(writer.finish())
    return standing, source.key in watched.rows


class _Uploads:
    """Puts of one attempt's parts, a few at a time, in a folder of its own; thrown away if the block fails."""

    def __init__(self, store: Store, source: Source, attempt: str) -> None:
        self.attempt = attempt
        self._store = store
        self._folder = staging_dir(source.board.name, source.bounds.id, attempt)
        self._pool = ThreadPoolExecutor(_IN_FLIGHT, thread_name_prefix="finale-put")
        self._running: deque[Future[bool]] = deque()
        self._parts: list[Part] = []

    def __enter__(self) -> _Uploads:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        if isinstance(error, Exception):
            self._throw_away()

    def put(self, parts: list[tuple[Part, bytes]]) -> None:
        """Start to put ``parts``; wait, and raise what an earlier put raised, while too many are under way."""
        for part, data in parts:
            if len(self._running) == _IN_FLIGHT:
                self._running.popleft().result()
            self._running.append(self._pool.submit(settle, self._store, f"{self._folder}/{part.name}", data))
            self._parts.append(part)

    def finish(self) -> tuple[Part, ...]:
        """Wait until all parts are stored; return them."""
        while self._running:
            self._running.popleft().result()
        return tuple(self._parts)

    def _throw_away(self) -> None:
        # What cannot be removed now lies where no reader globs, and is swept by age.
        with suppress(FinaleError):
            for found in self._store.list(self._folder):
                if parse_part(found.path):
                    self._store.delete(found.path)
