"""How many rows the next page asks for, so that players hardly notice: a budget of server time, within bounds."""

from __future__ import annotations

from collections import deque
from datetime import timedelta

PAGE_ROWS = 10_000
PAGE_BUDGET = timedelta(milliseconds=2)
PAGE_BYTES = 4 * 2**20
HELD_ROWS, HELD_BYTES = 40 * PAGE_ROWS, 16 * PAGE_BYTES  #: of all sorted sets together, at most a page of each
_FIRST_ROWS = 500  # nothing is known yet: 32 MB of members of 64 KB
_LEAST_ROWS = 100
_GROWTH = 2
_REMEMBERED = 3  # measured pages
_UNMEASURED = 20  # pages in a row, after which one is measured


class Pacer:
    """The size of the next page, from what the pages before it took.

    A server that is busy with other commands, and a network that is, only ever make a page look dearer than it is.
    So the cheapest of the last few tells what a row costs the server. ``most`` bounds the rows, ``budget`` the time in
    which the server, busy with a page, serves nobody else; a page's bytes are bounded, by ``size``, through the width
    of the rows before.
    """

    def __init__(self, most: int, budget: timedelta, size: int = PAGE_BYTES) -> None:
        self._most = most
        self._size = size
        self._budget = budget.total_seconds()
        self._costs: deque[float] = deque(maxlen=_REMEMBERED)
        self._unmeasured = _UNMEASURED
        self._width = 1.0
        self._rows = min(_FIRST_ROWS, most)

    @property
    def rows(self) -> int:
        """How many rows to ask for next, at least one."""
        return max(1, min(self._rows, int(self._size / self._width)))

    @property
    def measure(self) -> bool:
        """Whether the next page should be requested while no other is under way, and its time be taken."""
        return self._unmeasured >= _UNMEASURED

    def measured(self, rows: int, seconds: float) -> None:
        """Take note of the server time that a page of ``rows`` rows took; pages are measured as long as they grow."""
        self._costs.append(max(seconds / rows, 1e-9))
        affordable = int(self._budget / min(self._costs))
        most = min(self._most, _GROWTH * max(rows, _LEAST_ROWS))
        self._rows = min(max(affordable, _LEAST_ROWS), most)
        if affordable <= most or most == self._most:
            self._unmeasured = 0

    def came(self, rows: int, size: int) -> None:
        """Take note of the bytes that came of a page; if hiredis has to read on, more than these."""
        self._unmeasured += 1
        self._width = max(size / rows, self._width / _GROWTH, 1.0)

    def decoded(self, rows: int, size: int) -> None:
        """Take note of the bytes of a page that was decoded."""
        self._width = max(self._width, size / rows)


def divided(most: int, several: int) -> tuple[int, int]:
    """Return the most rows, no more than ``most``, and bytes of a page where each of ``several`` sets may hold one."""
    return min(most, max(HELD_ROWS // several, _LEAST_ROWS)), min(PAGE_BYTES, HELD_BYTES // several)
