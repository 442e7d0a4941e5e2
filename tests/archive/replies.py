"""Replies to ZRANGE … WITHSCORES as bytes, and what hiredis makes of them."""

from __future__ import annotations

import random
from typing import Any

import hiredis
import numpy as np

from archive.columns import LINE_END, Page, decode_bytes, decode_reply

Row = tuple[bytes, bytes]  # a member, and the text of its score


def rendered(rows: list[Row], protocol: int) -> bytes:
    """Return the reply that a server sends for ``rows``."""
    if protocol == 2:
        return b"*%d\r\n" % (2 * len(rows)) + b"".join(bulk(member) + bulk(score) for member, score in rows)
    pairs = (b"*2\r\n" + bulk(member) + b",%b\r\n" % score for member, score in rows)
    return b"*%d\r\n" % len(rows) + b"".join(pairs)


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


def by_columns(data: bytes, rows: int) -> tuple[Page, int] | None:
    """Return the page of ``rows`` rows that ``data`` begins with and its length in bytes, or None, as columns say."""
    return decode_bytes(np.frombuffer(data, np.uint8), rows)


def by_hiredis(data: bytes) -> tuple[Page, int] | None:
    """Return the page that ``data`` begins with and its length in bytes, or None, as hiredis says."""
    reader = hiredis.Reader(notEnoughData=Ellipsis)
    for used in reply_ends(data):
        reader.feed(data[used[0] : used[1]])
        try:
            reply: Any = reader.gets()
            if reply is Ellipsis:
                continue
            return decode_reply(reply), used[1]
        except (hiredis.ProtocolError, ValueError, TypeError, AttributeError):
            return None
    return None


def reply_ends(data: bytes) -> list[tuple[int, int]]:
    """Return pieces that end at line ends: where a reply can end."""
    ends = [index + 1 for index, byte in enumerate(data) if byte == LINE_END]
    return list(zip([0, *ends], ends, strict=False))


def content(page: Page) -> tuple[list[bytes], bytes]:
    """Return the members and the bits of the scores."""
    return page.members.to_pylist(), page.scores.tobytes()


def damaged(reply: bytes, chance: random.Random) -> bytes:
    """Return ``reply`` with one to three faults, of the kinds that lie about lengths, lines and types."""
    for _ in range(chance.randint(1, 3)):
        first, last = sorted(chance.choices(range(len(reply)), k=2))
        before, after = reply[:first], reply[first:]
        word = chance.choice([b"$", b"*", b",", b"\r\n", b"\n", b"0", b"1", b"-", b"_\r\n", b"$1\r\nx\r\n"])
        byte = bytes([chance.choice(b"0123456789$*,\r\n-+.einf")])
        cut = before + reply[last:]
        reply = chance.choice(
            [before + word + after, before + after[1:], before + byte + after[1:], cut, reply[:last] + after]
        )
        if not reply:
            return b"*0\r\n"
    return reply
