"""Fingerprints: the same for the same bytes, however they stand in a page; others for others."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archive.fingerprints import all_differ, fingerprints
from tests.archive.boards import members

LONG = st.sampled_from([b"x" * 257, b"x" * 300, b"y" * 300, b"x" * 65_536])


@settings(deadline=None)
@given(st.lists(members | LONG, max_size=20), st.integers(0, 20))
def test_they_depend_on_the_bytes_alone(rows: list[bytes], start: int) -> None:
    """In a page of mixed lengths, in a slice, and alone."""
    whole = pa.array(rows, pa.binary())
    found = fingerprints(whole).tolist()
    assert fingerprints(whole.slice(start)).tolist() == found[start:]
    assert [fingerprints(pa.array([row], pa.binary()))[0] for row in rows] == found
    assert all_differ(fingerprints(whole)) == (len(set(rows)) == len(rows))


@pytest.mark.parametrize("width", [1, 2, 3, 8, 9, 16, 17])
def test_numbered_ids_differ(width: int) -> None:
    """Ids that differ in a digit or two, of any width, as games number them; and padding is no byte."""
    ids = [b"%0*d" % (width, number) for number in range(min(10**width, 200_000))]
    ids += [b"\x00" * length for length in range(12)]
    assert all_differ(fingerprints(pa.array(ids, pa.binary())))
