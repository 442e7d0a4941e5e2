"""Positions and ranks, and that pages do not show in them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.ranking import Ranker

SCORES = st.lists(st.integers(-3, 3).map(float), max_size=40)


def ranked(pages, *, shared=True):
    ranker = Ranker(shared)
    out = [ranker.add(np.array(page, dtype=np.float64)) for page in pages]
    return [int(p) for page, _ in out for p in page], [int(r) for _, page in out for r in page]


@pytest.mark.parametrize(
    ("scores", "ranks"),
    [
        ([], []),
        ([7], [1]),
        ([9, 9, 8], [1, 1, 3]),
        ([9, 8, 8, 8, 1], [1, 2, 2, 2, 5]),
        ([0, 0, 0], [1, 1, 1]),
        ([1, 0, -1], [1, 2, 3]),
        ([0.0, -0.0], [1, 1]),
        ([-5, -5, 2, 3, 3], [1, 1, 3, 4, 4]),
    ],
)
def test_c74_equal_scores_share_a_rank_and_the_next_one_counts_them(scores, ranks):
    """C74: 1, 1, 3 (never 1, 1, 2), whether scores fall or rise. C75: zero and below zero are scores like any other."""
    positions, found = ranked([scores])
    assert found == ranks
    assert positions == list(range(1, len(scores) + 1))


def test_c74_by_member_every_rank_is_its_position():
    """C74: the other convention, ties = "member", is chosen by the board and gives each rank once."""
    assert ranked([[9, 9], [9, 8]], shared=False) == ([1, 2, 3, 4], [1, 2, 3, 4])


@given(SCORES.map(lambda scores: sorted(scores, reverse=True)))
def test_c74_the_rank_is_one_more_than_the_players_with_a_better_score(scores):
    """C74: checked against the definition itself."""
    assert ranked([scores])[1] == [1 + sum(other > score for other in scores) for score in scores]


@given(SCORES.map(sorted), st.lists(st.integers(0, 40)), st.booleans())
def test_i3_ranks_do_not_depend_on_where_pages_end(scores, cuts, shared):
    """I3: the same standing in one page or in many, empty ones among them."""
    edges = [0, *sorted(min(cut, len(scores)) for cut in cuts), len(scores)]
    pages = [scores[a:b] for a, b in pairwise(edges)]
    assert ranked(pages, shared=shared) == ranked([scores], shared=shared)


def test_columns_are_int64_and_the_given_scores_stay_as_they_were():
    scores = np.array([2.0, 2.0, 1.0])
    positions, ranks = Ranker().add(scores)
    assert positions.dtype == ranks.dtype == np.int64
    assert scores.tolist() == [2.0, 2.0, 1.0]
    empty = Ranker().add(np.empty(0))
    assert [column.dtype for column in empty] == [np.int64, np.int64]
