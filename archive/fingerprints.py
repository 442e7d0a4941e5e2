"""Fingerprints of members, by which to see that all differ without comparing the members themselves."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.digest import member_bytes

MOST_ROWS = 10_000_000  #: of which fingerprints are kept: 80 MB
_LONG = 256  # bytes; longer members are few to a page
# Odd numbers without a pattern, as splitmix64 has them.
_ONE, _TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

Prints = NDArray[np.uint64]


def fingerprints(members: Any) -> Prints:
    """Return 64 bits for each member of an Arrow array of text or bytes: the same for the same bytes.

    Different members have the same ones about as seldom as random numbers; nothing protects from somebody who tries.
    """
    lengths, data = member_bytes(members)
    flat = np.frombuffer(data, np.uint8)
    if not lengths.size or (lengths == lengths[0]).all():
        width = int(lengths[0]) if lengths.size else 0
        return _long(flat, width) if width > _LONG else _mixed(flat.reshape(lengths.size, width))
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    found = np.empty(lengths.size, np.uint64)
    for width in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == width)
        pieces = flat[starts[rows, None] + np.arange(width)]
        found[rows] = _long(pieces.ravel(), width) if width > _LONG else _mixed(pieces)
    return found


def all_differ(prints: Prints) -> bool:
    """Return whether no two fingerprints are equal; sorts them in place."""
    prints.sort()
    return not (prints[1:] == prints[:-1]).any()


def _mixed(pieces: NDArray[np.uint8]) -> Prints:
    rows, width = pieces.shape
    padded = np.zeros((rows, -(-width // 8) * 8), np.uint8)
    padded[:, :width] = pieces
    mixed = np.full(rows, width, np.uint64) * _TWO
    for word in padded.view("<u8").T:
        mixed = (mixed ^ word) * _ONE
        mixed ^= mixed >> np.uint64(29)
    mixed *= _TWO
    mixed ^= mixed >> np.uint64(32)
    return mixed


def _long(flat: NDArray[np.uint8], width: int) -> Prints:
    digests = [sha256(flat[at : at + width].tobytes()).digest()[:8] for at in range(0, flat.size, width)]
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)
