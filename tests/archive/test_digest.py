"""The digest of a standing, against its definition and against every way of cutting the rows."""

from __future__ import annotations

import hashlib
import struct
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.digest import StandingDigest
from leaderboard.sums import exact_sum

ROWS = st.lists(st.tuples(st.binary(max_size=9), st.floats(allow_nan=False)), max_size=30)
TYPES = st.sampled_from([pa.binary(), pa.large_binary()])


def by_definition(rows: list[tuple[bytes, float]]) -> str:
    parts = (
        b"".join(struct.pack("<I", len(member)) for member, _ in rows),
        b"".join(member for member, _ in rows),
        b"".join(struct.pack("<d", 0.0 if score == 0 else score) for _, score in rows),
    )
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


@given(ROWS, TYPES, st.lists(st.integers(0, 30), max_size=5))
def test_follows_its_definition_however_the_rows_come(
    rows: list[tuple[bytes, float]], kind: pa.DataType, cuts: list[int]
) -> None:
    """Slices of one array, empty ones among them, give what the definition gives row by row."""
    members = pa.array([b"before", *(member for member, _ in rows), b"after"], kind).slice(1, len(rows))
    scores = np.array([score for _, score in rows], dtype=np.float64)
    digest = StandingDigest()
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for start, end in pairwise(edges):
        digest.update(members.slice(start, end - start), scores[start:end])
    assert digest.hexdigest() == by_definition(rows)
    assert digest.rows == len(rows)


def test_text_and_bytes_have_one_digest() -> None:
    """Text is its UTF-8, in every Arrow type of it."""
    texts = ["", "p1", "ü", "\U0001f3c6"]
    digests = set()
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        digest = StandingDigest()
        digest.update(pa.array([text.encode() for text in texts], pa.binary()).cast(kind), np.arange(4.0))
        digests.add(digest.hexdigest())
    assert len(digests) == 1


def test_minus_zero_is_zero_and_nothing_else_is() -> None:
    """-0 counts as 0; neighbours, swapped members and shifted borders between members do not."""

    def of(members: list[bytes], scores: list[float]) -> str:
        digest = StandingDigest()
        digest.update(pa.array(members, pa.binary()), np.array(scores))
        return digest.hexdigest()

    assert of([b"a"], [-0.0]) == of([b"a"], [0.0])
    different = [
        of([b"a"], [0.0]),
        of([b"a"], [5e-324]),
        of([b"ab", b"c"], [1.0, 1.0]),
        of([b"a", b"bc"], [1.0, 1.0]),
        of([b"c", b"ab"], [1.0, 1.0]),
        of([], []),
    ]
    assert len(set(different)) == len(different)


def test_refuses_what_has_no_bytes() -> None:
    """Numbers, nulls and columns of unequal length are refused."""
    digest = StandingDigest()
    with pytest.raises(TypeError):
        digest.update(pa.array([1]), np.zeros(1))
    with pytest.raises(ValueError, match="null"):
        digest.update(pa.array([None], pa.binary()), np.zeros(1))
    with pytest.raises(ValueError, match="2 scores"):
        digest.update(pa.array([b"a"]), np.zeros(2))


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_c72_sums_are_exact(points: list[int]) -> None:
    """C72: sums of whole numbers are exact beyond 64 bits; the sum of nothing is 0."""
    assert exact_sum(np.array(points, dtype=np.int64)) == sum(points)
