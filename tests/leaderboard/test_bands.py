"""Score bands: which band a score is in, and the rank that is estimated from their counts, within its bound."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from leaderboard.bands import Bands, Scale, estimate, scale_of
from leaderboard.board import Board

EXACT = st.integers(-(2**53) + 1, 2**53 - 1)


def board(**fields: Any) -> Board:
    return Board.model_validate({"name": "b", "calendar": {"every": "month"}, **fields})


@given(score=EXACT, width=st.integers(1, 2**53 - 1))
def test_the_band_of_a_whole_score_is_exact(score: int, width: int) -> None:
    """As whole numbers divide, also where the quotient of two doubles would be rounded up."""
    assume(abs(score // width * width) < 2**53)
    scale = Scale(float(width), (), 1.0)
    assert scale.of(np.array([float(score)])).tolist() == [score // width]
    least, end = scale.bounds(score // width)
    assert least <= score < end


@given(score=st.integers(-50, 50), cuts=st.sets(st.integers(-40, 40), min_size=1, max_size=6))
def test_the_band_between_cuts(score: int, cuts: set[int]) -> None:
    """As many cuts as are not above the score; the lower cut is the band's, the upper is not."""
    scale = Scale(None, tuple(map(float, sorted(cuts))), 1.0)
    (band,) = scale.of(np.array([float(score)])).tolist()
    assert band == sum(cut <= score for cut in cuts)
    least, end = scale.bounds(band)
    assert least <= score < end


@pytest.mark.parametrize("packed", [False, True])
@given(
    points=st.lists(st.integers(0, 60), min_size=1, max_size=50),
    bands=st.one_of(
        st.builds(Bands, width=st.integers(1, 30)),
        st.builds(Bands, cuts=st.sets(st.integers(1, 60), min_size=1).map(lambda cuts: tuple(sorted(cuts)))),
    ),
    descending=st.booleans(),
)
def test_the_true_rank_is_within_the_bound(packed: bool, points: list[int], bands: Bands, descending: bool) -> None:
    """The bound is less than the players of the own band; one-point bands are exact where points share a rank."""
    factor = 2**24 if packed else 1
    scale = scale_of(bands, multiplier=factor if packed else None, fraction=False)
    scores = np.array(points, dtype=np.float64) * factor + (np.arange(len(points)) if packed else 0)
    counts = Counter(scale.of(scores).tolist())
    for score, band in zip(scores.tolist(), scale.of(scores).tolist(), strict=True):
        found = estimate(scale, counts, score, descending=descending, one_rank_a_score=not packed)
        assert found is not None
        better = sum((other > score) if descending else (other < score) for other in scores.tolist())
        assert abs(found.rank - (better + 1)) <= found.error < counts[band]
        assert found.players == len(points)
        least, end = scale.bounds(band)
        if not packed and end - least == 1:
            assert found.error == 0


def test_counts_that_do_not_know_the_band_tell_nothing() -> None:
    """A player whose band has nobody is not guessed about."""
    assert estimate(Scale(10.0, (), 1.0), {3: 5}, 1.0, descending=True, one_rank_a_score=True) is None


def test_how_bands_are_written() -> None:
    """A list is cuts, a table a width; a season keeps what it opened with."""
    assert board(bands=[100, 500]).bands == Bands(cuts=(100, 500))
    assert board(bands={"width": 50}, ties="shared").scale == Scale(50.0, (), 1.0)
    assert board(bands={"width": 50}).scale == Scale(50.0 * 2**24, (), 2.0**24)
    assert board().scale is None
    opened = board(bands=[1])
    assert board(bands=[2, 3]).with_fixed_of(opened).bands == opened.bands
    assert Board.model_validate(opened.definition()) == opened


@pytest.mark.parametrize(
    ("bands", "more", "word"),
    [
        ({}, {}, "either a width"),
        ({"width": 5, "cuts": [1]}, {}, "either a width"),
        ({"width": 0}, {}, "holds nobody"),
        ([3, 3], {}, "ascending"),
        ([5, 3], {}, "ascending"),
        ([1.5], {}, "whole number"),
        ({"width": 2**40}, {}, "past what"),
        ({"width": 10}, {"ledger": "none"}, "Finale's own ledger"),
    ],
)
def test_bands_that_cannot_be(bands: Any, more: Any, word: str) -> None:
    """Each fault with what is wrong."""
    with pytest.raises(ValidationError, match=word):
        board(bands=bands, **more)
