"""The digest that names grants, or rows of a correction, to whoever has seen and approved exactly these."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa


@dataclass(slots=True)
class GrantsDigest:
    """Folds ids and amounts in order; it does not depend on batches or parts."""

    _ids: Any = field(default_factory=hashlib.sha256)
    _amounts: Any = field(default_factory=hashlib.sha256)

    def add(self, batch: pa.RecordBatch) -> None:
        """Fold the next rows in, which have ``grant_id`` and ``amount``."""
        self._ids.update(_bytes(batch.column("grant_id")))
        self._amounts.update(np.ascontiguousarray(batch.column("amount").to_numpy(), dtype="<i8").data)

    def text(self) -> str:
        """Return 64 hexadecimal digits.

        SHA-256 over two digests, one after the other: SHA-256 over the ids as text, 36 bytes each, in order, and
        SHA-256 over the amounts as 8 bytes each, least significant first. An id stands for board, season, player, rule
        and item.
        """
        return hashlib.sha256(self._ids.digest() + self._amounts.digest()).hexdigest()


def _bytes(texts: pa.Array) -> memoryview:
    """Return the bytes of all texts, one after the other, without copying them."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4)
    return memoryview(data)[int(ends[0]) : int(ends[-1])]
