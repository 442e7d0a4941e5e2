"""The plan: tasks from counts alone that hold every row once, equal scores together, each at a known first position."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.plan import CountsError, Span, Task, plan

doubles = st.one_of(
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, inf, -inf, 2.0**53, 1e17, 3.3, 1.0]), st.floats(allow_nan=False)
)
boards = st.lists(st.lists(doubles, max_size=40), min_size=1, max_size=5)


class Sets:
    """Sorted sets of scores only, counted as Redis counts; notes how often it was asked."""

    def __init__(self, scores: Sequence[Sequence[float]], *, descending: bool) -> None:
        self.scores = [sorted(each, reverse=descending) for each in scores]
        self.descending = descending
        self.asked = 0

    def scores_at(self, places: Sequence[tuple[int, int]]) -> list[float]:
        self.asked += 1
        return [self.scores[number][at] for number, at in places]

    def counts(self, spans: Sequence[Span]) -> list[list[int]]:
        return [[sum(_told(span, score) for score in each) for each in self.scores] for span in spans]

    def plan(self, **options: object) -> list[Task]:
        totals = [len(each) for each in self.scores]
        return plan(totals, self.scores_at, self.counts, descending=self.descending, **options)  # type: ignore[arg-type]  # passed on as they came


def _told(span: Span, score: float) -> bool:
    """Return whether ZCOUNT with this range counts the score, read from the text that is sent."""
    low, high = span.minimum, span.maximum
    above = score > float(low[1:]) if low.startswith("(") else score >= float(low)
    return above and (score < float(high[1:]) if high.startswith("(") else score <= float(high))


@given(boards, st.booleans(), st.integers(1, 20), st.lists(doubles, max_size=3))
def test_i3_every_row_is_in_one_task_at_the_position_that_follows_from_those_before(
    scores: list[list[float]], descending: bool, task_rows: int, cuts: list[float]
) -> None:
    """I3: the tasks in order, each read from where it begins, are the whole board, with inf and 5e-324 among them."""
    sets = Sets(scores, descending=descending)
    ascending = sorted({cut + 0.0 for cut in cuts if abs(cut) != inf})
    tasks = sets.plan(task_rows=task_rows, cuts=ascending)
    merged = sorted((score for each in scores for score in each), reverse=descending)
    found: list[float] = []
    ends: list[tuple[int, int]] = []
    taken = [0] * len(scores)
    for task in tasks:
        assert sum(taken) == len(found)
        rows = [each[at : at + count] for each, at, count in zip(sets.scores, taken, task.rows, strict=True)]
        assert all(score in task.span for each in rows for score in each)
        sources = [number for number, each in enumerate(rows) if each]
        assert sum(task.rows) <= task_rows or len(sources) == 1 or len({s + 0.0 for each in rows for s in each}) == 1
        ends += [(number, task.rows[number]) for number in sources]
        found += sorted((score for each in rows for score in each), reverse=descending)
        taken = [at + count for at, count in zip(taken, task.rows, strict=True)]
    assert found == merged
    assert len(tasks) <= len(ends)


def test_equal_scores_are_never_in_two_tasks() -> None:
    """However many there are: a task of one score alone may be larger than a task."""
    sets = Sets([[7.0] * 500 + [8.0] * 3, [7.0] * 400 + [1.0]], descending=True)
    assert [task.rows for task in sets.plan(task_rows=10)] == [(3, 0), (500, 400), (0, 1)]


def test_bands_need_no_question_but_their_counts() -> None:
    """Where shards begin at the cuts, nothing has to be searched: a task a band, from the highest on a high board."""
    bands = [[float(score) for score in range(low, low + 100)] for low in (0, 100, 200)]
    high = Sets(bands, descending=True)
    assert [task.rows for task in high.plan(cuts=[100, 200], task_rows=50)] == [(0, 0, 100), (0, 100, 0), (100, 0, 0)]
    low = Sets(bands, descending=False)
    assert [task.rows for task in low.plan(cuts=[100, 200], task_rows=50)] == [(100, 0, 0), (0, 100, 0), (0, 0, 100)]
    assert high.asked == low.asked == 0


def test_many_tasks_take_few_questions() -> None:
    """Ranges are parted side by side: 64 tasks of 8 sorted sets take a few rounds, not one a task."""
    sets = Sets([[float(8 * row + number) for row in range(80)] for number in range(8)], descending=True)
    tasks = sets.plan(task_rows=10)
    assert 64 <= len(tasks) <= 160
    assert sets.asked <= 12


def test_no_rows_are_no_tasks() -> None:
    assert Sets([[], []], descending=True).plan() == []


def test_counts_that_contradict_each_other_are_refused() -> None:
    """Somebody writes while it is being planned: a plan from such counts would leave rows out."""
    sets = Sets([[1.0, 2.0], [3.0]], descending=True)
    with pytest.raises(CountsError, match="ranges"):
        plan([2, 2], sets.scores_at, sets.counts, descending=True)

    def moved(places: Sequence[tuple[int, int]]) -> list[float]:
        return [99.0 for _ in places]

    with pytest.raises(CountsError, match="those of its parts"):
        plan(
            [2, 1],
            moved,
            lambda spans: [[2, 1]] if len(spans) == 1 else [[0, 0]] * len(spans),
            descending=True,
            cuts=[],
            task_rows=1,
        )
