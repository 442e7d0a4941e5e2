"""A page of a sorted set as columns, straight from the bytes of a WITHSCORES reply: no Python object a row.

A row is four lines ended by CRLF in either protocol, ``$n member $m score`` in RESP2 and ``*2 $n member ,score`` in
RESP3, so the line ends, reshaped, are a table. That is only true while no member holds a line break, which the length
lines tell: each is compared with the length found. Rule: Redis serialization protocol specification.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

LINE_END = 10
_RETURN, _STAR, _TWO, _COMMA, _DOLLAR, _ZERO = b"\r*2,$0"
_POWERS = 10 ** np.arange(1, 19, dtype=np.int64)
_LONGEST_SCORE = 40  # characters; the longest that any server writes has 24
_MOST_BYTES = 2**31 - 1  # Arrow's offsets into one array

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Page:
    """Consecutive rows in board order: an Arrow binary array of members, and as many float64 scores."""

    members: Any
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.members)


def lines(rows: int) -> int:
    """Return how many lines a reply of ``rows`` rows has, its header among them."""
    return 4 * rows + 1


def headers(rows: int) -> tuple[bytes, bytes]:
    """Return the first line of a reply of ``rows`` rows in RESP2 and in RESP3."""
    return b"*%d\r\n" % (2 * rows), b"*%d\r\n" % rows


def decode_bytes(data: Bytes, ends: Integers, rows: int) -> Page | None:
    """Return the reply of ``rows`` rows that ends with the last of its line ``ends``, as a page with its own memory.

    ``ends`` are the positions of all line feeds in ``data`` so far, ``lines(rows)`` of them. None means that this is
    not such a reply, or one that cannot be told apart so (a member with a line break): the general parser must decide.
    """
    if ends[-1] > _MOST_BYTES or (data[ends - 1] != _RETURN).any():
        return None
    starts = np.ascontiguousarray(ends[:-1].reshape(rows, 4).T) + 1
    lengths = np.ascontiguousarray(ends[1:].reshape(rows, 4).T) - 1 - starts
    header = data[: ends[0] + 1].tobytes()
    if header == headers(rows)[0]:
        member, fits = 1, _tells(data, starts[0], lengths[0], lengths[1]) and _tells(data, starts[2], *lengths[2:])
    elif header == headers(rows)[1]:
        member, fits = 2, _is_pair(data, starts, lengths) and _tells(data, starts[1], lengths[1], lengths[2])
        starts[3] += 1  # behind the comma
        lengths[3] -= 1
    else:
        return None
    scores = _doubles(data, starts[3], lengths[3]) if fits else None
    return None if scores is None else Page(_values(data, starts[member], lengths[member], pa.binary()), scores)


def _is_pair(data: Bytes, starts: Integers, lengths: Integers) -> bool:
    """Return whether the first line of each row is ``*2`` and the last begins with a comma."""
    first, last = starts[0], starts[3]
    pair = (lengths[0] == 2) & (data[first] == _STAR) & (data[first + 1] == _TWO) & (data[last] == _COMMA)
    return bool(pair.all())


def _tells(data: Bytes, starts: Integers, lengths: Integers, told: Integers) -> bool:
    """Return whether each line is ``$`` and ``told`` in decimal, written as the server writes it."""
    digits = 1 + np.searchsorted(_POWERS, told, side="right")
    if (lengths != 1 + digits).any() or (data[starts] != _DOLLAR).any():
        return False
    rest = told
    for place in range(int(digits.max())):
        rest, digit = np.divmod(rest, 10)
        right = data[starts + np.maximum(digits - place, 0)] == digit + _ZERO
        if not (right | (place >= digits)).all():
            return False
    return True


def _values(data: Bytes, starts: Integers, lengths: Integers, kind: Any) -> Any:
    """Return pieces of ``data`` as an Arrow array of text or bytes, copied."""
    # An array over the whole reply, in which every second value is a piece and those between are what parts them.
    offsets = np.empty(2 * starts.size, np.int32)
    offsets[0::2] = starts
    offsets[1::2] = starts + lengths
    pieces = pa.Array.from_buffers(kind, offsets.size - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return pieces.take(pa.array(np.arange(0, offsets.size - 1, 2, dtype=np.int32)))


def _doubles(data: Bytes, starts: Integers, lengths: Integers) -> NDArray[np.float64] | None:
    """Return the scores as the doubles they are; None for text that other parsers might read in another way."""
    if lengths.max() > _LONGEST_SCORE:
        return None
    text = _values(data, starts, lengths, pa.string())
    try:
        scores: NDArray[np.float64] = text.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    endless = np.flatnonzero(~np.isfinite(scores))
    if endless.size and not {b"inf", b"-inf"}.issuperset(text.take(pa.array(endless)).cast(pa.binary()).to_pylist()):
        return None
    return scores


def decode_reply(reply: list[Any]) -> Page:
    """Return a WITHSCORES reply, as the general parser gives it, as a page; raise ValueError if it is none.

    RESP2 sends members and the text of scores alternately, RESP3 a pair a row; the text of one score differs between
    versions of the server and may have an exponent, its double does not (C04, C07).
    """
    if reply and isinstance(reply[0], list):
        members, scores = map(list, zip(*reply, strict=True))
    else:
        members, scores = reply[::2], reply[1::2]
    if len(members) != len(scores):
        raise ValueError(f"{len(members)} members came with {len(scores)} scores")
    doubles = np.fromiter(map(float, scores), np.float64, len(scores))
    return Page(pa.array(members, pa.binary()), doubles)
