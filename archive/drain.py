"""The pages of a watched sorted set in board order, each checked against its request and the page before it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from archive.columns import Page, as_arrow, decode_reply
from archive.pacing import PAGE_BUDGET, PAGE_ROWS, Pacer
from archive.proof import ProofConnection
from archive.refusals import WrongTypeError
from leaderboard.errors import FinaleError

_AHEAD = 2


class DrainError(FinaleError):
    """A page does not fit what was asked for, although nobody wrote to the key."""

    exit_code = 31


def pages(
    proof: ProofConnection,
    key: str,
    *,
    descending: bool,
    page_rows: int = PAGE_ROWS,
    page_budget: timedelta = PAGE_BUDGET,
) -> Iterator[Page]:
    """Yield the rows of the live ``key``, which ``proof`` watches, in pages of at most ``page_rows``.

    Board order: scores, then member bytes, both descending or both ascending. A page is as large as the server can make
    in ``page_budget``, and its reply a few MB. The next page is requested before this one is decoded. A missing key
    gives no page. ``proof`` may not be used for anything else before the last page has been taken. That each page fits
    proves nothing yet: EXEC does. Raises DisturbedError for a page that does not fit because somebody wrote to the key
    meanwhile, DrainError for one that does not fit all the same.
    """
    requests = _Requests(proof, key, descending, Pacer(page_rows, page_budget))
    last: Page | None = None
    requests.send()
    while requests.sent:
        start, size = requests.sent.popleft()
        arrival = proof.receive_page(size)
        requests.pacer.came(size, arrival.size)
        if arrival.whole:
            requests.send()
        page, by_columns = _page(proof, key, start, size, last, descending)
        requests.pacer.decoded(size, page.members.nbytes)
        requests.ahead = _AHEAD if by_columns else 1
        requests.send()
        yield page
        last = page


class _Requests:
    """The requests for pages under way, in board order: ``sent`` holds where each begins and its rows.

    ``ahead`` is how many may be. Two, sent one at a time: the server finds the next when it has finished one, and has
    served in between whoever came meanwhile.
    """

    def __init__(self, proof: ProofConnection, key: str, descending: bool, pacer: Pacer) -> None:
        self.sent: deque[tuple[int, int]] = deque()
        self.ahead = _AHEAD
        self.pacer = pacer
        self._proof = proof
        self._key = key
        self._rows = proof.watched.rows.get(key, 0)
        self._direction = ("REV",) if descending else ()
        self._next = 0

    def send(self) -> None:
        """Send one more, if it may be under way too; a page that is to be measured goes alone."""
        if self._next == self._rows or len(self.sent) >= (1 if self.pacer.measure else self.ahead):
            return
        start, size = self._next, min(self.pacer.rows, self._rows - self._next)
        self._proof.send("ZRANGE", self._key, start, start + size - 1, *self._direction, "WITHSCORES")
        self.sent.append((start, size))
        self._next += size
        if self.pacer.measure:
            seconds = self._proof.await_page()
            if seconds is not None:
                self.pacer.measured(size, seconds)


def _page(
    proof: ProofConnection, key: str, start: int, size: int, last: Page | None, descending: bool
) -> tuple[Page, bool]:
    """Return the page received, of ``size`` rows, that follows ``last``, and whether it came by columns.

    Raises what :func:`pages` raises.
    """
    by_columns = False
    try:
        reply = proof.page(size)
        page = reply if isinstance(reply, Page) else decode_reply(reply)
        by_columns = page is reply
        fault = _fault(page, last, size, descending)
    except (WrongTypeError, ValueError, TypeError) as error:
        fault = str(error)
    if fault:
        proof.forget_pending()
        proof.exec()
        raise DrainError(
            f"{key} at Redis {proof.address}: the page at position {start + 1:,} does not fit its request",
            detail=fault,
            hint="check that nothing between here and the server changes replies; nothing was archived",
        )
    return page, by_columns


def _fault(page: Page, last: Page | None, expected: int, descending: bool) -> str:
    """Return why ``page`` cannot follow ``last``; nothing if it can."""
    if len(page) != expected:
        return f"{expected:,} rows were expected, {len(page):,} came"
    if np.isnan(page.scores).any():
        return "one of its scores is no number"
    before, scores = page.scores[:-1], page.scores[1:]
    inverted = before < scores if descending else before > scores
    tied = np.flatnonzero(before == scores)
    if inverted.any() or (tied.size and not _ordered(page.members, tied, descending)):
        return "its rows are not in board order"
    if last is not None and not _follows(_row(page, 0), _row(last, -1), descending):
        return f"its first row {_row(page, 0)} cannot follow {_row(last, -1)}"
    return ""


def _ordered(members: Any, tied: NDArray[np.int64], descending: bool) -> bool:
    compare = pc.greater if descending else pc.less
    return bool(
        pc.all(compare(members.take(as_arrow(tied, pa.int64())), members.take(as_arrow(tied + 1, pa.int64())))).as_py()
    )


def _row(page: Page, index: int) -> tuple[float, bytes]:
    return float(page.scores[index]), page.members[index].as_py()


def _follows(row: tuple[float, bytes], last: tuple[float, bytes], descending: bool) -> bool:
    return row < last if descending else row > last
