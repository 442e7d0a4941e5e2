"""The digest of a standing: over members and scores in board order, whatever the pages, batches and parts."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_OFFSETS: dict[Any, np.dtype[Any]] = {
    pa.string(): np.dtype("<i4"),
    pa.binary(): np.dtype("<i4"),
    pa.large_string(): np.dtype("<i8"),
    pa.large_binary(): np.dtype("<i8"),
}


def member_bytes(members: Any) -> tuple[NDArray[np.uint32], memoryview]:
    """Return the length of every member, and all members' bytes one after the other, without copying the bytes.

    ``members`` is an Arrow array (not chunked) of string, binary, large_string or large_binary, sliced or not.
    Raises TypeError for any other type and ValueError for a null.
    """
    dtype = _OFFSETS.get(members.type)
    if dtype is None:
        raise TypeError(f"members must be text or bytes, not {members.type}")
    if members.null_count:
        raise ValueError("a member is null")
    if not len(members):
        return np.empty(0, np.uint32), memoryview(b"")
    _, offset_buffer, data = members.buffers()
    offsets = np.frombuffer(offset_buffer, dtype, len(members) + 1, members.offset * dtype.itemsize)
    whole = memoryview(data) if data is not None else memoryview(b"")
    return np.diff(offsets).astype("<u4"), whole[int(offsets[0]) : int(offsets[-1])]


class StandingDigest:
    """SHA-256 over the concatenation of three SHA-256 digests, each over the whole standing in board order.

    1. the byte length of every member, as unsigned 32-bit little endian;
    2. the bytes of every member;
    3. every score as IEEE double, little endian, with -0 counted as 0 (Redis itself turns one into the other).
    """

    def __init__(self) -> None:
        self.rows = 0
        self._lengths = hashlib.sha256()
        self._members = hashlib.sha256()
        self._scores = hashlib.sha256()

    def update(self, members: Any, scores: NDArray[np.float64]) -> None:
        """Take the next rows: an Arrow array of text or bytes, and as many float64 scores."""
        if len(members) != scores.size:
            raise ValueError(f"{len(members)} members, {scores.size} scores")
        lengths, data = member_bytes(members)
        self._lengths.update(lengths.data)
        self._members.update(data)
        self._scores.update(np.ascontiguousarray(scores + 0.0, dtype="<f8").data)
        self.rows += scores.size

    def hexdigest(self) -> str:
        """Return the digest of the rows so far, 64 hexadecimal digits; more rows may follow."""
        parts = self._lengths.digest() + self._members.digest() + self._scores.digest()
        return hashlib.sha256(parts).hexdigest()
