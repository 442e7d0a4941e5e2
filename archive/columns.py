"""A page of a sorted set as columns, straight from the bytes of a WITHSCORES reply: no Python object a row.

A row is four lines ended by CRLF in either protocol, ``$n member $m score`` in RESP2 and ``*2 $n member ,score`` in
RESP3. Two ways lead to columns: where all rows have the same widths (ids of one length, scores of as many digits) the
reply is a table of bytes; otherwise the line ends, reshaped, are a table, as long as no member holds a line break.
Neither is trusted: every length line is compared with what was found.
Rule: Redis serialization protocol specification.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

LINE_END = 10
_RETURN, _STAR, _TWO, _COMMA, _DOLLAR = b"\r*2,$"
_LONGEST_SCORE = 40  # characters; the longest that any server writes has 24
_BEGINS_SCORE = np.isin(np.arange(256), list(b"-0123456789i"))
_ENDLESS = frozenset([b"inf", b"-inf"])
_MOST_BYTES = 2**31 - 1  # Arrow's offsets into one array
_LENGTHS = np.arange(100_000)  # of members, as length lines tell them
_DIGITS = 1 + (np.array([[10], [100], [1_000], [10_000]]) <= _LENGTHS).sum(axis=0)
#: the first, second, … digit of each length, as text
_CHARACTERS = [
    (_LENGTHS // 10 ** np.maximum(_DIGITS - place, 0) % 10 + ord("0")).astype(np.uint8) for place in range(1, 6)
]
_FIRST_ROW = (re.compile(rb"\$(0|[1-9]\d*)\r\n"), re.compile(rb"\*2\r\n\$(0|[1-9]\d*)\r\n"))
_SECOND_LENGTH = re.compile(rb"\r\n\$([1-9]\d*)\r\n")

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Page:
    """Consecutive rows in board order: an Arrow binary array of members, and as many float64 scores."""

    members: Any
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.members)


def as_arrow(values: NDArray[Any], kind: Any) -> Any:
    """Return contiguous numbers as an Arrow array of type ``kind``, of the same width, over the same memory.

    ``pyarrow.array`` does that too, but imports pandas to do it: 0.2 seconds and 50 MB.
    """
    return pa.Array.from_buffers(kind, values.size, [None, pa.py_buffer(values)])


def as_numpy(array: Any, dtype: type[Any]) -> NDArray[Any]:
    """Return a whole Arrow array of numbers without nulls as numpy's, over the same memory."""
    return np.frombuffer(array.buffers()[1], dtype, len(array))


def joined(pages: list[Page]) -> Page:
    """Return the rows of all ``pages``, at least one, as one."""
    if len(pages) == 1:
        return pages[0]
    return Page(pa.concat_arrays([page.members for page in pages]), np.concatenate([page.scores for page in pages]))


def lines(rows: int) -> int:
    """Return how many lines a reply of ``rows`` rows has, its header among them."""
    return 4 * rows + 1


def headers(rows: int) -> tuple[bytes, bytes]:
    """Return the first line of a reply of ``rows`` rows in RESP2 and in RESP3."""
    return b"*%d\r\n" % (2 * rows), b"*%d\r\n" % rows


def decode_bytes(data: Bytes, rows: int) -> tuple[Page, int] | None:
    """Return the page of ``rows`` rows, at least one, that ``data`` begins with, and how many bytes it takes.

    The page has its own memory. None means that this is not such a reply, or one that cannot be told apart so, such as
    one with a line break in a member: the general parser must decide.
    """
    resp2, resp3 = headers(rows)
    begins = data[: len(resp2)].tobytes()
    if data.size > _MOST_BYTES or not begins.startswith((resp2, resp3)):
        return None
    is_resp3 = begins.startswith(resp3)
    start = len(resp3 if is_resp3 else resp2)
    return _as_table(data, start, rows, is_resp3) or _by_lines(data, rows, is_resp3)


def _as_table(data: Bytes, start: int, rows: int, is_resp3: bool) -> tuple[Page, int] | None:
    """Return the page if every row has the widths of the first."""
    found = _first_row(data, start, is_resp3)
    if found is None:
        return None
    member, score, width = found
    end = start + rows * width
    if end > data.size:
        return None
    flat = data[start:end]
    table = flat.reshape(rows, width)
    free = np.zeros(width, bool)
    free[member] = free[score] = True
    if not ((flat == np.tile(table[0], rows)) | np.tile(free, rows)).all():
        return None
    scores = _doubles(*_column(table, score, pa.string()), table[:, score.start])
    return None if scores is None else (Page(_column(table, member, pa.binary())[0], scores), end)


def _first_row(data: Bytes, start: int, is_resp3: bool) -> tuple[slice, slice, int] | None:
    """Return where in the first row its member and its score are, and its width; None if it is no row."""
    text = data[start : start + 64].tobytes()
    told = _FIRST_ROW[is_resp3].match(text)
    if told is None:
        return None
    member = slice(told.end(), told.end() + int(told[1]))
    text = data[start + member.stop : start + member.stop + 64].tobytes()
    if is_resp3:
        length = text.find(b"\r\n", 3) - 3
        if not text.startswith(b"\r\n,") or length < 1:
            return None
        score = slice(member.stop + 3, member.stop + 3 + length)
    else:
        told = _SECOND_LENGTH.match(text)
        if told is None or not text.startswith(b"\r\n", told.end() + int(told[1])):
            return None
        score = slice(member.stop + told.end(), member.stop + told.end() + int(told[1]))
    return member, score, score.stop + 2


def _column(table: NDArray[np.uint8], place: slice, kind: Any) -> tuple[Any, Integers]:
    """Return the bytes at ``place`` in each row as an Arrow array of text or bytes, copied, and their lengths."""
    rows, length = table.shape[0], place.stop - place.start
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(length)
    pieces = table[:, place].copy()
    values = pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(offsets), pa.py_buffer(pieces)])
    return values, np.full(rows, length)


def _by_lines(data: Bytes, rows: int, is_resp3: bool) -> tuple[Page, int] | None:
    """Return the page if no member has a line break."""
    ends = np.flatnonzero(data == LINE_END)[: lines(rows)]
    if ends.size < lines(rows) or (data[ends - 1] != _RETURN).any():
        return None
    starts = np.ascontiguousarray(ends[:-1].reshape(rows, 4).T) + 1
    lengths = np.ascontiguousarray(ends[1:].reshape(rows, 4).T) - 1 - starts
    if is_resp3:
        member, fits = 2, _is_pair(data, starts, lengths) and _tells(data, starts[1], lengths[1], lengths[2])
        starts[3] += 1  # behind the comma
        lengths[3] -= 1
    else:
        member, fits = 1, _tells(data, starts[0], lengths[0], lengths[1]) and _tells(data, starts[2], *lengths[2:])
    if not fits:
        return None
    scores = _doubles(_values(data, starts[3], lengths[3], pa.string()), lengths[3], data[starts[3]])
    if scores is None:
        return None
    return Page(_values(data, starts[member], lengths[member], pa.binary()), scores), int(ends[-1]) + 1


def _is_pair(data: Bytes, starts: Integers, lengths: Integers) -> bool:
    """Return whether the first line of each row is ``*2`` and the last begins with a comma."""
    first, last = starts[0], starts[3]
    pair = (lengths[0] == 2) & (data[first] == _STAR) & (data[first + 1] == _TWO) & (data[last] == _COMMA)
    return bool(pair.all())


def _tells(data: Bytes, starts: Integers, lengths: Integers, told: Integers) -> bool:
    """Return whether each line is ``$`` and ``told`` in decimal, written as the server writes it."""
    if told.max() >= _LENGTHS.size:  # very long members are few to a page, and quick for any parser
        return False
    digits = _DIGITS[told]
    if (lengths != 1 + digits).any() or (data[starts] != _DOLLAR).any():
        return False
    for place in range(1, int(digits.max()) + 1):
        right = data[starts + place] == _CHARACTERS[place - 1][told]
        if not (right | (place > digits)).all():
            return False
    return True


def _values(data: Bytes, starts: Integers, lengths: Integers, kind: Any) -> Any:
    """Return pieces of ``data`` as an Arrow array of text or bytes, copied."""
    # An array over the whole reply, in which every second value is a piece and those between are what parts them.
    offsets = np.empty(2 * starts.size, np.int32)
    offsets[0::2] = starts
    offsets[1::2] = starts + lengths
    pieces = pa.Array.from_buffers(kind, offsets.size - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return pieces.take(as_arrow(np.arange(0, offsets.size - 1, 2, dtype=np.int32), pa.int32()))


def _doubles(text: Any, lengths: Integers, first: Bytes) -> NDArray[np.float64] | None:
    """Return the scores as the doubles they are; None for text that other parsers might read in another way.

    ``text`` is an Arrow array, ``lengths`` and ``first`` its lengths and first characters.
    """
    if not lengths.all() or lengths.max() > _LONGEST_SCORE or not _BEGINS_SCORE[first].all():
        return None
    try:
        scores: NDArray[np.float64] = as_numpy(text.cast(pa.float64()), np.float64)
    except pa.ArrowInvalid:
        return None
    if ((scores == 0) & (lengths > len("-0"))).any():  # a number too small for a double, which some parsers refuse
        return None
    endless = np.flatnonzero(~np.isfinite(scores))
    if endless.size and not _ENDLESS.issuperset(text.take(as_arrow(endless, pa.int64())).cast(pa.binary()).to_pylist()):
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
