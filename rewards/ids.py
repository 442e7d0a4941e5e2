"""Grant ids: they name a grant, not the run that computed it, so that the same grant always has the same id (C78)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_TEXT = np.array([at for at in range(36) if at not in (8, 13, 18, 23)])  # the others are hyphens
_HEX = 2 * sha256().digest_size
_NOTHING = pa.scalar(b"", pa.binary())


def line_key(board: str, season: str, rule: str, item: str) -> bytes:
    """Return the 32 bytes that stand for board, season, rule and item: SHA-256 over the four, in this order.

    Each is its UTF-8 bytes after their number, as 4 bytes, most significant first, so that none runs into the next.
    """
    fields = [text.encode() for text in (board, season, rule, item)]
    return sha256(b"".join(len(field).to_bytes(4, "big") + field for field in fields)).digest()


def grant_id(key: bytes, player: bytes) -> str:
    """Return one id: the text of the UUID made of the first 16 bytes of SHA-256 over the key and the player's bytes."""
    return str(UUID(bytes=sha256(key + player).digest()[:16]))


class GrantIds:
    """Computes ids by the thousand: hashing them one by one in Python takes longer than everything else together."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Take the keys of all lines that may be granted, by their number."""
        import duckdb

        self._keys = pa.array(keys, pa.binary())
        self._connection = duckdb.connect(config={"threads": 1})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def of(self, players: pa.Array, lines: NDArray[np.intp]) -> pa.Array:
        """Return, as text, what ``grant_id`` gives for each of ``players`` (binary) and the key at its number."""
        hashed = pc.binary_join_element_wise(self._keys.take(pa.array(lines)), players, _NOTHING)
        text = np.full((lines.size, 36), ord("-"), dtype=np.uint8)
        begin = 0
        for chunk in self._hashed(pa.table({"message": hashed})):
            text[begin : begin + len(chunk), _TEXT] = _digits(chunk)
            begin += len(chunk)
        offsets = np.arange(0, 36 * lines.size + 1, 36, dtype=np.int32)
        return pa.StringArray.from_buffers(lines.size, pa.py_buffer(offsets), pa.py_buffer(text))

    def _hashed(self, messages: pa.Table) -> list[Any]:
        """Return SHA-256 of each message in hexadecimal, in order, in arrays."""
        with self._connection.cursor() as cursor:  # of its own, since several threads may ask at once
            found = cursor.from_arrow(messages).project("sha256(message) as digest").to_arrow_table()
        chunks: list[Any] = found["digest"].chunks
        return chunks


def _digits(hashes: pa.Array) -> NDArray[np.uint8]:
    """Return the first 32 hexadecimal digits of each hash, as a table of bytes."""
    _, offsets, data = hashes.buffers()
    first = int(np.frombuffer(offsets, np.int32, 1, 4 * hashes.offset)[0])
    return np.frombuffer(data, np.uint8, _HEX * len(hashes), first).reshape(-1, _HEX)[:, :32]
