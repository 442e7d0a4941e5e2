"""Grants as PostgreSQL's binary COPY takes them, built column by column: no Python object a row.

Rule: PostgreSQL documentation, COPY, "Binary Format". Each field is its bytes after their number, as 4 bytes, most
significant first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
_ROWS = 65_536
_COMMON = 6  # fields of grants and corrections alike, after the ids
_NOTHING = pa.scalar(b"", pa.binary())
_DIGITS = np.zeros(256, np.uint8)  # what a hexadecimal digit stands for
_DIGITS[list(b"0123456789abcdef")] = range(16)
_TEXT = np.array([at for at in range(36) if at not in (8, 13, 18, 23)])


def rows(batch: pa.RecordBatch, key: int, correction: int | None = None) -> Iterator[memoryview]:
    """Yield the rows of a batch of grants as the season ``key`` has them: season_id, then the batch's columns.

    These are ``grant_id`` (text, as uuid), ``player_id``, ``rule``, ``item`` (text or binary), ``amount``,
    ``position`` and ``rank`` (int64). Of a ``correction`` its number follows season_id, and ``corrects`` (as uuid)
    follows ``grant_id``. What is yielded goes between ``HEADER`` and ``TRAILER``.
    """
    numbers = (key,) if correction is None else (key, correction)
    for start in range(0, batch.num_rows, _ROWS):
        yield _encoded(batch.slice(start, _ROWS), numbers)


def _encoded(batch: pa.RecordBatch, numbers: tuple[int, ...]) -> memoryview:
    texts = [field for name in ("player_id", "rule", "item") for field in _text(batch.column(name).cast(pa.binary()))]
    joined = pc.binary_join_element_wise(_head(batch, numbers), *texts, _tail(batch), _NOTHING)
    _, offsets, data = joined.buffers()
    ends = np.frombuffer(offsets, np.int32, len(joined) + 1, joined.offset * 4)
    return memoryview(data)[int(ends[0]) : int(ends[-1])]


def _head(batch: pa.RecordBatch, numbers: tuple[int, ...]) -> pa.Array:
    """Return, for each row, the number of fields, the ``numbers`` and the ids, one of each number."""
    ids = ("grant_id", "corrects")[: len(numbers)]
    first = _int2(len(numbers) + len(ids) + _COMMON) + b"".join(_int4(4) + _int4(number) for number in numbers)
    head = np.empty((batch.num_rows, len(first) + 20 * len(ids)), np.uint8)
    head[:, : len(first)] = np.frombuffer(first, np.uint8)
    for at, name in enumerate(ids):
        field = head[:, len(first) + 20 * at :][:, :20]
        field[:, :4] = np.frombuffer(_int4(16), np.uint8)
        field[:, 4:] = _uuids(batch.column(name))
    return _as_binary(head)


def _uuids(ids: pa.Array) -> NDArray[np.uint8]:
    """Return the 16 bytes of each UUID written as text."""
    _, offsets, data = ids.buffers()
    first = int(np.frombuffer(offsets, np.int32, 1, 4 * ids.offset)[0])
    text = np.frombuffer(data, np.uint8, 36 * len(ids), first).reshape(-1, 36)[:, _TEXT]
    return (_DIGITS[text[:, 0::2]] << 4 | _DIGITS[text[:, 1::2]]).astype(np.uint8, copy=False)


def _tail(batch: pa.RecordBatch) -> pa.Array:
    """Return, for each row, the three numbers."""
    numbers = np.empty((batch.num_rows, 3), [("size", ">i4"), ("value", ">i8")])
    numbers["size"] = 8
    for at, name in enumerate(("amount", "position", "rank")):
        numbers["value"][:, at] = batch.column(name).to_numpy()
    return _as_binary(numbers.view(np.uint8).reshape(batch.num_rows, -1))


def _text(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return, for each value, its length and itself."""
    lengths = pc.binary_length(values).to_numpy().astype(">i4")
    return _as_binary(lengths.view(np.uint8).reshape(-1, 4)), values


def _as_binary(table: NDArray[np.uint8]) -> pa.Array:
    """Return the rows of a table of bytes as an Arrow array of bytes."""
    count, width = table.shape
    offsets = np.arange(0, width * count + 1, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(table)])


def _int2(value: int) -> bytes:
    return value.to_bytes(2, "big")


def _int4(value: int) -> bytes:
    return value.to_bytes(4, "big")
