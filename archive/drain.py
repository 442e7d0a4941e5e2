"""The pages of a watched sorted set in board order, each checked against its request and the page before it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from archive.columns import Page, as_arrow, decode_reply
from archive.pacing import PAGE_BUDGET, PAGE_BYTES, PAGE_ROWS, Pacer
from archive.proof import ProofConnection
from archive.refusals import WrongTypeError
from leaderboard.errors import FinaleError


class DrainError(FinaleError):
    """A page does not fit what was asked for, although nobody wrote to the key."""

    exit_code = 31


class Paging:
    """The pages of the live ``key``, which ``proof`` watches, one after the other: asked for, received, decoded.

    At most one page is under way: with a second behind it, players would wait for two. While one that was received is
    still to be decoded, the next may be asked for if :meth:`receive` said so. Every method raises what
    :func:`pages` raises.
    """

    def __init__(self, proof: ProofConnection, key: str, *, descending: bool, pacer: Pacer) -> None:
        self.asked = 0  #: rows, from the first on
        self._proof = proof
        self._key = key
        self._descending = descending
        self._pacer = pacer
        self._under_way = self._received = self._taken = 0
        self._last: Page | None = None

    @property
    def rest(self) -> int:
        """The rows not asked for yet; none of a missing key."""
        return self._proof.watched.rows.get(self._key, 0) - self.asked

    def request(self) -> bool:
        """Ask for the next page; return whether there is one."""
        size = min(self._pacer.rows, self.rest)
        if size:
            direction = ("REV",) if self._descending else ()
            self._proof.send("ZRANGE", self._key, self.asked, self.asked + size - 1, *direction, "WITHSCORES")
            if self._pacer.measure and (seconds := self._proof.await_page()) is not None:
                self._pacer.measured(size, seconds)
        self._under_way = size
        self.asked += size
        return bool(size)

    def receive(self) -> bool:
        """Wait for the page under way; return whether the next may be asked for before this one is decoded."""
        arrival = self._proof.receive_page(self._under_way)
        self._pacer.came(self._under_way, arrival.size)
        self._received, self._under_way = self._under_way, 0
        return arrival.whole

    def page(self) -> Page:
        """Return the page received, checked against its request and the page before it."""
        size, self._received = self._received, 0
        try:
            reply = self._proof.page(size)
            page = reply if isinstance(reply, Page) else decode_reply(reply)
            fault = _fault(page, self._last, size, self._descending)
        except (WrongTypeError, ValueError, TypeError) as error:
            fault = str(error)
        if fault:
            self._proof.forget_pending()
            self._proof.unchanged()
            raise DrainError(
                f"{self._key} at Redis {self._proof.address}: "
                f"the page at position {self._taken + 1:,} does not fit its request",
                detail=fault,
                hint="check that nothing between here and the server changes replies; nothing was archived",
            )
        self._pacer.decoded(size, page.members.nbytes)
        self._last = page
        self._taken += size
        if not self._under_way and not self.rest:
            self._proof.rest()
        return page


def pages(
    proof: ProofConnection,
    key: str,
    *,
    descending: bool,
    page_rows: int = PAGE_ROWS,
    page_budget: timedelta = PAGE_BUDGET,
    page_bytes: int = PAGE_BYTES,
) -> Iterator[Page]:
    """Yield the rows of the live ``key``, which ``proof`` watches, in pages of at most ``page_rows``.

    Board order: scores, then member bytes, both descending or both ascending. A page is as large as the server can make
    in ``page_budget``, and its reply about ``page_bytes`` at most. The next page is requested before this one is
    decoded. A missing key gives no page. ``proof`` may not be used for anything else before the last page has been
    taken. That each page fits proves nothing yet: EXEC does. Raises DisturbedError for a page that does not fit because
    somebody wrote to the key meanwhile, DrainError for one that does not fit all the same.
    """
    paging = Paging(proof, key, descending=descending, pacer=Pacer(page_rows, page_budget, page_bytes))
    under_way = paging.request()
    while under_way:
        if paging.receive():
            under_way = paging.request()
            page = paging.page()
        else:
            page = paging.page()
            under_way = paging.request()
        yield page


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
