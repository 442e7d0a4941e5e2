"""Rows of several sorted sets, each in board order, as one stream in board order, a block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from archive.columns import Page, as_arrow, as_numpy, joined

HELD_BYTES = 8 * 2**20  #: of all sources together


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of the standing, and the number of the sorted set from which each came."""

    page: Page
    origins: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.page)


class Rows:
    """The rows of one sorted set as they are taken, in board order: its pages, joined as far as they are held."""

    def __init__(self, number: int, pages: Iterator[Page]) -> None:
        self.number = number
        self._pages = pages
        self._held: list[Page] = []
        self._rows = 0
        self.size = 0  #: the bytes of what is held

    def __len__(self) -> int:
        return self._rows

    def more(self) -> None:
        """Hold a page more."""
        page = next(self._pages)
        self._held.append(page)
        self._rows += len(page)
        self.size += _bytes(page)

    def held(self, most: int) -> Page:
        """Return the rows, at least one and at most ``most``, that can be taken now."""
        self._held = [joined(self._held)]
        return _slice(self._held[0], 0, most)

    def drop(self, rows: int) -> None:
        """Forget the next ``rows`` rows: they have been taken."""
        (page,) = self._held
        self._rows = len(page) - rows
        rest = _slice(page, rows, self._rows)
        self._held = [rest] if self._rows else []
        self.size = _bytes(rest) if self._rows else 0


def _bytes(page: Page) -> int:
    return int(page.members.nbytes) + page.scores.nbytes


def _slice(page: Page, start: int, rows: int) -> Page:
    return Page(page.members.slice(start, rows), page.scores[start : start + rows])


def merged(sources: Sequence[Rows], rows: Sequence[int], *, descending: bool) -> Iterator[Block]:
    """Yield the next ``rows[n]`` rows of each source ``n`` in board order: by score, then by the members' bytes.

    A source that stands alone passes its pages on. Otherwise a block has what is certain: all rows, if they are few
    enough to be held, else those that no row still to come can stand before. So, however many rows have one score, no
    more than ``HELD_BYTES`` are held, or one page of each source.
    """
    left = {source.number: count for source, count in zip(sources, rows, strict=True) if count}
    by_number = {source.number: source for source in sources}
    while left:
        _hold([by_number[number] for number in left], left)
        held = {number: by_number[number].held(count) for number, count in left.items()}
        taken = _certain(held, left, descending)
        pages = {number: _slice(held[number], 0, count) for number, count in taken.items() if count}
        yield _in_order(pages, descending)
        for number, count in taken.items():
            if count:
                by_number[number].drop(count)
            left[number] -= count
            if not left[number]:
                del left[number]


def _hold(sources: Sequence[Rows], left: dict[int, int]) -> None:
    """Let the sources hold what is left of each, or as much of it as goes into memory; at least a row of each."""
    most = HELD_BYTES if len(sources) > 1 else 0
    while short := [source for source in sources if len(source) < left[source.number]]:
        least = min(short, key=len)
        if len(least) and sum(source.size for source in sources) >= most:
            break
        least.more()


def _certain(held: dict[int, Page], left: dict[int, int], descending: bool) -> dict[int, int]:
    """Return how many of the held rows of each source can be told apart from everything still to come."""
    ends = [_row(page, -1) for number, page in held.items() if len(page) < left[number]]
    if not ends or len(held) == 1:
        return {number: len(page) for number, page in held.items()}
    horizon = max(ends) if descending else min(ends)
    return {number: _up_to(page, horizon, descending) for number, page in held.items()}


def _row(page: Page, index: int) -> tuple[float, bytes]:
    return float(page.scores[index]) + 0.0, page.members[index].as_py()


def _up_to(page: Page, horizon: tuple[float, bytes], descending: bool) -> int:
    """Return how many rows of ``page`` do not stand behind the row ``horizon``."""
    score, member = horizon
    scores = -page.scores if descending else page.scores
    low = int(np.searchsorted(scores, -score if descending else score, "left"))
    high = int(np.searchsorted(scores, -score if descending else score, "right"))
    while low < high:
        middle = (low + high) // 2
        here = page.members[middle].as_py()
        if here >= member if descending else here <= member:
            low = middle + 1
        else:
            high = middle
    return low


def _in_order(pages: dict[int, Page], descending: bool) -> Block:
    """Return rows of several pages as one block in board order."""
    page = joined(list(pages.values()))
    origins = np.repeat(list(pages), [len(one) for one in pages.values()])
    if len(pages) == 1:
        return Block(page, origins)
    scores = page.scores + 0.0
    order = np.argsort(-scores if descending else scores)
    tied = _tied(scores[order])
    if tied.size:
        order[tied] = _by_member(page.members, scores, order[tied], descending)
    return Block(Page(page.members.take(as_arrow(order, pa.int64())), page.scores[order]), origins[order])


def _tied(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the indices of sorted scores that are equal to a neighbour's."""
    same = scores[1:] == scores[:-1]
    either = np.zeros(scores.size, bool)
    either[1:] |= same
    either[:-1] |= same
    return np.flatnonzero(either)


def _by_member(members: Any, scores: NDArray[np.float64], rows: NDArray[np.int64], descending: bool) -> Any:
    """Return ``rows``, which are ordered by score, with those of equal scores ordered by member."""
    where = as_arrow(rows, pa.int64())
    table = pa.table({"score": as_arrow(scores[rows], pa.float64()), "member": members.take(where)})
    direction = "descending" if descending else "ascending"
    indices = pc.sort_indices(table, sort_keys=[("score", direction), ("member", direction)])
    return rows[as_numpy(indices, np.uint64)]
