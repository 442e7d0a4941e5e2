"""Replies read from a redis-py connection: pages as columns where they can be, everything else by hiredis."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from redis import exceptions as driver
from redis._parsers import _HiredisParser

from archive.columns import LINE_END, Page, decode_bytes, headers, lines

_BUFFER = 2**20
_KEPT = 16 * 2**20  # a larger buffer, made for one page of long members, is given back
_PATIENCE = 0.05  # seconds without a byte in the middle of a page, after which hiredis goes on with it


@dataclass(frozen=True, slots=True)
class Arrival:
    """A reply, or the first part of it: its bytes, and when its first byte came (``time.monotonic``).

    ``at`` is None where it lay there already when it was looked for, so that nobody knows since when. ``whole`` is
    false where hiredis will have to read on.
    """

    size: int
    at: float | None
    whole: bool


class ColumnParser(_HiredisParser):
    """redis-py's own parser, which can also take the reply to a ZRANGE … WITHSCORES as columns.

    Such a reply is read by :meth:`receive_page` and then taken by :meth:`take_page`; between the two a further command
    may be sent. What does not look like a page, or stops in the middle, is fed to hiredis, which reads on.
    """

    def __init__(self, socket_read_size: int) -> None:
        super().__init__(socket_read_size)  # type: ignore[no-untyped-call]  # redis-py annotates its parsers in part
        self._page = bytearray(_BUFFER)
        self._held = 0
        self._first: float | None = None

    def await_reply(self) -> None:
        """Wait for the first byte of the next reply, for as long as the connection's timeout allows; note the time."""
        if not self.can_read(0) and self.can_read(self._socket_timeout):
            self._first = time.monotonic()

    def receive_page(self, rows: int) -> Arrival:
        """Read until the next reply has as many lines as ``rows`` rows, or cannot be theirs, or nothing more comes.

        Raises what redis-py raises for a broken connection or a timeout.
        """
        at, self._first = self._first, None
        self._held = found = 0
        if self._reader.has_data():  # hiredis has its beginning
            return Arrival(0, None, whole=False)
        late = at is None and not self.can_read(0)
        while found < lines(rows):
            if self._held and not (self._may_be_page(rows) and self.can_read(_PATIENCE)):
                break
            new = self._receive()
            if late:
                at, late = time.monotonic(), False
            found += int(np.count_nonzero(np.frombuffer(self._page, np.uint8, new, self._held) == LINE_END))
            self._held += new
        return Arrival(self._held, at, whole=found >= lines(rows))

    def take_page(self, rows: int) -> Page | None:
        """Return the page received, or None if hiredis, which has its bytes then, must be asked for the reply."""
        page, used = decode_bytes(np.frombuffer(self._page, np.uint8, self._held), rows) or (None, 0)
        if used < self._held:
            self._reader.feed(bytes(self._page[used : self._held]))
        self._held = 0
        if len(self._page) > _KEPT:
            self._page = bytearray(_BUFFER)
        return page

    def _may_be_page(self, rows: int) -> bool:
        return any(header.startswith(self._page[: min(self._held, len(header))]) for header in headers(rows))

    def _receive(self) -> int:
        """Read what is there, at least one byte, behind what is held; return how many bytes."""
        if self._held == len(self._page):
            larger = bytearray(2 * self._held)
            larger[: self._held] = self._page
            self._page = larger
        count: Any = self._sock.recv_into(memoryview(self._page)[self._held :])
        if not count:
            raise driver.ConnectionError("Connection closed by server.")
        return int(count)
