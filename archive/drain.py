"""The pages of a watched sorted set in board order, each checked against its request and the page before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from archive.proof import ProofConnection
from archive.refusals import WrongTypeError
from leaderboard.errors import FinaleError

PAGE_ROWS = 10_000


class DrainError(FinaleError):
    """A page does not fit what was asked for, although nobody wrote to the key."""

    exit_code = 31


@dataclass(frozen=True, slots=True)
class Page:
    """Consecutive rows in board order: an Arrow binary array of members, and as many float64 scores."""

    members: Any
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.members)


def pages(proof: ProofConnection, key: str, *, descending: bool, page_rows: int = PAGE_ROWS) -> Iterator[Page]:
    """Yield the rows of the live ``key``, which ``proof`` watches, in pages of ``page_rows`` (the last may be shorter).

    Board order: scores, then member bytes, both descending or both ascending. The next page is requested before this
    one is decoded. A missing key gives no page. ``proof`` may not be used for anything else before the last page has
    been taken. That each page fits proves nothing yet: EXEC does. Raises DisturbedError for a page that does not fit
    because somebody wrote to the key meanwhile, DrainError for one that does not fit all the same.
    """
    rows = proof.watched.rows.get(key, 0)
    last: Page | None = None
    if rows:
        _request(proof, key, 0, page_rows, descending)
    for start in range(0, rows, page_rows):
        following = start + page_rows
        try:
            reply = proof.read()
            if following < rows:
                _request(proof, key, following, page_rows, descending)
            page = decode(reply)
            fault = _fault(page, last, min(page_rows, rows - start), descending)
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
        last = page
        yield page


def _request(proof: ProofConnection, key: str, start: int, page_rows: int, descending: bool) -> None:
    direction = ("REV",) if descending else ()
    proof.send("ZRANGE", key, start, start + page_rows - 1, *direction, "WITHSCORES")


def decode(reply: list[Any]) -> Page:
    """Return a WITHSCORES reply as a page; raise ValueError if it is none.

    RESP2 sends members and the text of scores alternately, RESP3 a pair a row; the text of one score differs between
    versions of the server and may have an exponent, its double does not (C04, C07).
    """
    if reply and isinstance(reply[0], list):
        members, scores = map(list, zip(*reply, strict=True))
    else:
        members, scores = reply[::2], reply[1::2]
    if len(members) != len(scores):
        raise ValueError(f"{len(members)} members came with {len(scores)} scores")
    doubles = np.fromiter(map(float, scores), np.float64, len(scores))
    return Page(pa.array(members, pa.binary()), doubles)


def _fault(page: Page, last: Page | None, expected: int, descending: bool) -> str:
    """Return why ``page`` cannot follow ``last``; nothing if it can."""
    if len(page) != expected:
        return f"{expected:,} rows were expected, {len(page):,} came"
    before, scores = page.scores[:-1], page.scores[1:]
    inverted = before < scores if descending else before > scores
    tied = np.flatnonzero(before == scores)
    if inverted.any() or not _ordered(page.members.take(tied), page.members.take(tied + 1), descending):
        return "its rows are not in board order"
    if last is not None and not _follows(_row(page, 0), _row(last, -1), descending):
        return f"its first row {_row(page, 0)} cannot follow {_row(last, -1)}"
    return ""


def _ordered(first: Any, second: Any, descending: bool) -> bool:
    compare = pc.greater if descending else pc.less
    return bool(pc.all(compare(first, second), min_count=0).as_py())


def _row(page: Page, index: int) -> tuple[float, bytes]:
    return float(page.scores[index]), page.members[index].as_py()


def _follows(row: tuple[float, bytes], last: tuple[float, bytes], descending: bool) -> bool:
    return row < last if descending else row > last
