"""CRC-32 of many strings at once is that of each."""

from __future__ import annotations

from zlib import crc32

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from leaderboard.crc import crc32s

LONG = st.integers(250, 300).flatmap(lambda size: st.binary(min_size=size, max_size=size))


@given(st.lists(st.binary(max_size=20) | LONG, max_size=30))
@example([])
@example([b""])
@example([b"", b"\x00", b"\x00" * 256, b"\xff" * 256, b"\xff" * 257, b"x" * 65_536])
@example([b"player_%09d" % number for number in range(1_000)])
def test_every_sum_is_zlibs(members: list[bytes]) -> None:
    """Empty and long strings, those of one width and of many, whatever their bytes."""
    lengths = np.array([len(member) for member in members], np.uint32)
    assert crc32s(lengths, b"".join(members)).tolist() == [crc32(member) for member in members]


def test_bytes_of_a_larger_buffer() -> None:
    """A view into other memory, as a slice of an Arrow array has it."""
    whole = memoryview(b"..aabbb..")
    assert crc32s(np.array([2, 3], np.uint32), whole[2:7]).tolist() == [crc32(b"aa"), crc32(b"bbb")]
