"""The plan by which one standing is read from several sorted sets: the score space cut into tasks, from counts alone.

Every task has a range of scores of its own, so equal scores are never in two tasks. How many rows each sorted set has
in it is counted beforehand, so a task's first position, one more than the rows of those before, is known before a row
is read. Nothing is sorted, and what is held in memory is a few numbers a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import inf

TASK_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class Span:
    """A range of scores, its ends in it unless they are ``open``."""

    low: float = -inf
    high: float = inf
    low_open: bool = False
    high_open: bool = False

    @property
    def minimum(self) -> str:
        """The lower end as ZCOUNT takes it; every double is told exactly."""
        return f"{'(' if self.low_open else ''}{self.low + 0.0!r}"

    @property
    def maximum(self) -> str:
        """The upper end as ZCOUNT takes it."""
        return f"{'(' if self.high_open else ''}{self.high + 0.0!r}"

    def __contains__(self, score: float) -> bool:
        above = self.low < score if self.low_open else self.low <= score
        return above and (score < self.high if self.high_open else score <= self.high)

    def parted(self, pivot: float) -> tuple[Span, Span, Span]:
        """Return the scores of this range below ``pivot``, those equal to it, and those above it."""
        return (
            replace(self, high=pivot, high_open=True),
            Span(pivot, pivot),
            replace(self, low=pivot, low_open=True),
        )


@dataclass(frozen=True, slots=True)
class Task:
    """A part of the standing that can be made by itself: the next ``rows[n]`` rows of each sorted set ``n``."""

    span: Span
    rows: tuple[int, ...]


#: Given sorted sets with a place in board order (0 the first), returns the score of each.
ScoresAt = Callable[[Sequence[tuple[int, int]]], Sequence[float]]
#: Given ranges, returns how many rows each sorted set has in each.
Counts = Callable[[Sequence[Span]], Sequence[Sequence[int]]]


class CountsError(ValueError):
    """Counts that contradict each other: the sorted sets are not what they were."""


def plan(
    totals: Sequence[int],
    scores_at: ScoresAt,
    counts: Counts,
    *,
    descending: bool,
    cuts: Sequence[float] = (),
    task_rows: int = TASK_ROWS,
) -> list[Task]:
    """Return tasks, in board order, that together have every row of sorted sets of ``totals`` rows.

    A task has rows of one sorted set alone, of one score alone, or at most ``task_rows``. ``cuts`` are tried first, as
    scores at which sorted sets begin: where they are bands, nothing else has to be asked. Else a range with too many
    rows is parted at the score in the middle of the sorted set that has most of them, again and again, all such ranges
    at once. Raises CountsError.
    """
    spans = _bands(cuts, descending)
    pieces = [_Piece(span, tuple(rows)) for span, rows in zip(spans, _counted(counts, spans), strict=True)]
    counted = list(accumulate((piece.rows for piece in pieces), _added))[-1]
    if counted != tuple(totals):
        raise CountsError(f"the sorted sets have {tuple(totals)} rows, their ranges {counted}")
    while any(piece.too_large(task_rows) for piece in pieces):
        pieces = _parted(pieces, scores_at, counts, descending, task_rows)
    return [Task(piece.span, piece.rows) for piece in _joined(pieces, task_rows, descending)]


@dataclass(frozen=True, slots=True)
class _Piece:
    span: Span
    rows: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.rows)

    @property
    def alone(self) -> bool:
        """Whether the rows of at most one sorted set are in it."""
        return sum(map(bool, self.rows)) <= 1

    def too_large(self, task_rows: int) -> bool:
        return self.total > task_rows and not self.alone and self.span.low != self.span.high


def _bands(cuts: Sequence[float], descending: bool) -> list[Span]:
    ends = [-inf, *cuts, inf]
    spans = [Span(low, high, high_open=high != inf) for low, high in pairwise(ends)]
    return spans[::-1] if descending else spans


def _parted(
    pieces: Sequence[_Piece], scores_at: ScoresAt, counts: Counts, descending: bool, task_rows: int
) -> list[_Piece]:
    """Return the pieces, each that is too large in three: before its pivot, at it, behind it."""
    starts = list(accumulate((piece.rows for piece in pieces), _added, initial=(0,) * len(pieces[0].rows)))
    large = [number for number, piece in enumerate(pieces) if piece.too_large(task_rows)]
    middles = []
    for number in large:
        rows = pieces[number].rows
        most = max(range(len(rows)), key=rows.__getitem__)
        middles.append((most, starts[number][most] + rows[most] // 2))
    parted: dict[int, list[Span]] = {}
    for number, pivot in zip(large, scores_at(middles), strict=True):
        if pivot not in pieces[number].span:
            raise CountsError(f"a row with the score {pivot!r} is not where it was counted")
        below, equal, above = pieces[number].span.parted(pivot)
        parted[number] = [above, equal, below] if descending else [below, equal, above]
    counted = iter(_counted(counts, [span for spans in parted.values() for span in spans[:2]]))
    result: list[_Piece] = []
    for number, piece in enumerate(pieces):
        spans = parted.get(number)
        if spans is None:
            result.append(piece)
            continue
        before, at = next(counted), next(counted)
        behind = tuple(whole - one - two for whole, one, two in zip(piece.rows, before, at, strict=True))
        if min(behind) < 0 or not sum(at):
            raise CountsError(f"the rows of a range are {piece.rows}, those of its parts {before} and {at}")
        result += [_Piece(part, rows) for part, rows in zip(spans, (before, at, behind), strict=True)]
    return result


def _counted(counts: Counts, spans: Sequence[Span]) -> list[tuple[int, ...]]:
    return [tuple(rows) for rows in counts(spans)]


def _added(one: tuple[int, ...], piece: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one, piece, strict=True))


def _joined(pieces: Iterable[_Piece], task_rows: int, descending: bool) -> list[_Piece]:
    """Return the pieces without empty ones, neighbours in one where together they are no larger than a task."""
    result: list[_Piece] = []
    for piece in pieces:
        last = result[-1] if result else None
        if not piece.total:
            continue
        if last is not None and last.total + piece.total <= task_rows:
            low, high = (piece.span, last.span) if descending else (last.span, piece.span)
            span = Span(low.low, high.high, low.low_open, high.high_open)
            result[-1] = _Piece(span, _added(last.rows, piece.rows))
        else:
            result.append(piece)
    return result
