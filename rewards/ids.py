"""Grant ids: they name a grant, not the run that computed it, so that the same grant always has the same id (C78)."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_HEX = np.array([list(b"%02x" % byte) for byte in range(256)], dtype=np.uint8)
_HYPHENS = (8, 13, 18, 23)
_TEXT = np.array([at for at in range(36) if at not in _HYPHENS])


def line_key(board: str, season: str, rule: str, item: str) -> bytes:
    """Return the 32 bytes that stand for board, season, rule and item: SHA-256 over the four, in this order.

    Each is its UTF-8 bytes after their number, as 4 bytes, most significant first, so that none runs into the next.
    """
    fields = [text.encode() for text in (board, season, rule, item)]
    return sha256(b"".join(len(field).to_bytes(4, "big") + field for field in fields)).digest()


def grant_ids(players: pa.Array, keys: list[bytes], lines: NDArray[np.intp]) -> pa.Array:
    """Return the ids of grants to ``players`` (binary), each by the key at its index in ``lines``, as text.

    An id is the text form of the UUID made of the first 16 bytes of SHA-256 over ``line_key`` and the player's bytes::

        uuid.UUID(bytes=sha256(line_key(board, season, rule, item) + player).digest()[:16])
    """
    digests = b"".join(
        [
            sha256(keys[line] + player).digest()[:16]
            for player, line in zip(players.to_pylist(), lines.tolist(), strict=True)
        ]
    )
    text = np.full((lines.size, 36), ord("-"), dtype=np.uint8)
    text[:, _TEXT] = _HEX[np.frombuffer(digests, dtype=np.uint8)].reshape(-1, 32)
    offsets = np.arange(0, 36 * lines.size + 1, 36, dtype=np.int32)
    return pa.StringArray.from_buffers(lines.size, pa.py_buffer(offsets), pa.py_buffer(text))
