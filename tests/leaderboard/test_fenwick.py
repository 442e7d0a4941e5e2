"""Ranks of a whole board at once: equal to counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.errors import InputError
from leaderboard.fenwick import MOST, Fenwick

POINTS = st.lists(st.integers(-20, 20), min_size=1, max_size=60)


@given(
    points=POINTS, asked=st.lists(st.integers(-25, 25)), descending=st.booleans(), more=st.lists(st.integers(-20, 20))
)
def test_it_equals_counting(points: list[int], asked: list[int], descending: bool, more: list[int]) -> None:
    """Below, rank and k-th are what counting and sorting give, built at once or with changes."""
    tree = Fenwick.of(np.array(points, dtype=np.int64), -20, 20)
    for one in more:
        tree.add(one)
    if more:
        tree.add(more[0], -1)
    everyone = sorted([*points, *more[1:]], reverse=descending)
    assert tree.players == len(everyone)
    of = np.array(asked, dtype=np.int64)
    assert tree.below(of).tolist() == [sum(one < each for one in everyone) for each in asked]
    better = [sum((one > each) if descending else (one < each) for one in everyone) for each in asked]
    assert tree.ranks(of, descending=descending).tolist() == [count + 1 for count in better]
    positions = np.arange(1, len(everyone) + 1)
    assert tree.kth(positions, descending=descending).tolist() == everyone


@given(points=POINTS)
def test_the_range_follows_from_the_points(points: list[int]) -> None:
    """Least and most need not be given; one player more at a time comes to the same tree."""
    built = Fenwick.of(np.array(points, dtype=np.int64))
    grown = Fenwick(min(points), max(points))
    for one in points:
        grown.add(one)
    assert (built.least, built.most) == (min(points), max(points))
    assert built._tree.tolist() == grown._tree.tolist()


def test_a_million_at_once() -> None:
    """Ranks of a million, compared with those from sorting."""
    points = np.random.default_rng(7).integers(0, 100_000, 1_000_000)
    ranks = Fenwick.of(points).ranks(points)
    ordered = np.sort(points)
    assert np.array_equal(ranks, points.size - np.searchsorted(ordered, points, side="right") + 1)


def test_what_is_not_counted_is_refused() -> None:
    """Points outside the range, a position that nobody has, a range that is none or too wide: each with the numbers."""
    tree = Fenwick.of(np.array([1, 5]))
    for wrong in (
        lambda: tree.add(6),
        lambda: Fenwick.of(np.array([1, 9]), 0, 5),
        lambda: Fenwick.of(np.array([], dtype=np.int64)),
        lambda: tree.kth(np.array([0])),
        lambda: tree.kth(np.array([3])),
        lambda: Fenwick(3, 2),
        lambda: Fenwick(0, MOST),
    ):
        with pytest.raises(InputError):
            wrong()
    assert tree.players == 2
    assert Fenwick.of(np.array([], dtype=np.int64), 0, 3).ranks(np.array([2])).tolist() == [1]
