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
from archive.pacing import PAGE_BUDGET, PAGE_ROWS, Pacer
from archive.proof import ProofConnection
from archive.refusals import WrongTypeError
from leaderboard.errors import FinaleError


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
    pacer: Pacer | None = None,
) -> Iterator[Page]:
    """Yield the rows of the live ``key``, which ``proof`` watches, in pages of at most ``page_rows``.

    Board order: scores, then member bytes, both descending or both ascending. A page is as large as the server can make
    in ``page_budget``, and its reply a few MB; a ``pacer`` of several keys of one server learns that once for all of
    them. The next page is requested before this one is decoded. A missing key gives no page. ``proof`` may not be used
    for anything else before the last page has been taken. That each page fits proves nothing yet: EXEC does. Raises
    DisturbedError for a page that does not fit because somebody wrote to the key meanwhile, DrainError for one that
    does not fit all the same.
    """
    pacer = pacer or Pacer(page_rows, page_budget)
    last: Page | None = None
    start, size = 0, _request(proof, key, 0, descending, pacer)
    while size:
        arrival = proof.receive_page(size)
        pacer.came(size, arrival.size)
        following = _request(proof, key, start + size, descending, pacer) if arrival.whole else None
        page = _page(proof, key, start, size, last, descending)
        pacer.decoded(size, page.members.nbytes)
        if following is None:
            following = _request(proof, key, start + size, descending, pacer)
        yield page
        last, start, size = page, start + size, following


def _request(proof: ProofConnection, key: str, start: int, descending: bool, pacer: Pacer) -> int:
    """Ask for the page that begins at ``start``; return its rows, 0 behind the last.

    One page is under way at a time: with a second behind it, players would wait for two.
    """
    size = min(pacer.rows, proof.watched.rows.get(key, 0) - start)
    if size:
        direction = ("REV",) if descending else ()
        proof.send("ZRANGE", key, start, start + size - 1, *direction, "WITHSCORES")
        if pacer.measure and (seconds := proof.await_page()) is not None:
            pacer.measured(size, seconds)
    return size


def _page(proof: ProofConnection, key: str, start: int, size: int, last: Page | None, descending: bool) -> Page:
    """Return the page received, of ``size`` rows, that follows ``last``; raise what :func:`pages` raises."""
    try:
        reply = proof.page(size)
        page = reply if isinstance(reply, Page) else decode_reply(reply)
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
    return page


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
