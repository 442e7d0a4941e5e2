"""Replies read from a redis-py connection: pages as columns where they can be, everything else by hiredis."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from redis import exceptions as driver
from redis._parsers import _HiredisParser

from archive.columns import LINE_END, Page, decode_bytes, headers, lines

_BUFFER = 2**16  # the first; it doubles until a page fits
_SPARE = 4  # times what a page took: a larger buffer, made for one page of long members, is given back
_KEPT = 16 * 2**20  # and one that is larger than this in any case
_PATIENCE = 0.05  # seconds without a byte in the middle of a page, after which hiredis goes on with it


@dataclass(frozen=True, slots=True)
class Arrival:
    """The bytes of a reply that have come, and whether it is ``whole``: false where hiredis will have to read on."""

    size: int
    whole: bool


class ColumnParser(_HiredisParser):
    """redis-py's own parser, which can also take the reply to a ZRANGE … WITHSCORES as columns.

    Such a reply is read by :meth:`receive_page` and then taken by :meth:`take_page`; further commands may be sent
    meanwhile. What does not look like a page, or stops in the middle, is read by ``read_response``, which gives hiredis
    the bytes that are held here first.
    """

    def __init__(self, socket_read_size: int) -> None:
        super().__init__(socket_read_size)  # type: ignore[no-untyped-call]  # redis-py annotates its parsers in part
        self._page = bytearray()  # made when a page is read: most connections of many shards only wait
        self._held = 0

    def await_reply(self) -> float | None:
        """Wait for the reply to the last command to begin, as long as the timeout allows; return when it did.

        All others must have been received. The time is ``time.monotonic``'s; None if the reply had begun before, so
        that nobody knows when, or did not.
        """
        if self.can_read(0) or not self.can_read(self._socket_timeout):
            return None
        return time.monotonic()

    def receive_page(self, rows: int) -> Arrival:
        """Read until the next reply has as many lines as ``rows`` rows, or cannot be theirs, or nothing more comes.

        Raises what redis-py raises for a broken connection or a timeout.
        """
        if self._reader is None:
            raise driver.ConnectionError("Connection closed by this side.")
        if self._reader.has_data():  # hiredis has its beginning
            return Arrival(0, whole=False)
        found = self._count(0)
        while found < lines(rows):
            if self._held and not (self._may_be_page(rows) and self.can_read(_PATIENCE)):
                break
            before = self._held
            self._receive()
            found += self._count(before)
        return Arrival(self._held, whole=found >= lines(rows))

    def take_page(self, rows: int) -> Page | None:
        """Return the page received, or None if ``read_response`` must be asked for the reply."""
        page, used = decode_bytes(np.frombuffer(self._page, np.uint8, self._held), rows) or (None, 0)
        if used:
            self._held -= used
            self._page[: self._held] = self._page[used : used + self._held]
        if len(self._page) > max(_BUFFER, min(_SPARE * used, _KEPT)):
            self.give_back()
        return page

    def give_back(self) -> None:
        """Give back the memory into which pages are received, if nothing is held in it."""
        if not self._held:
            self._page = bytearray()

    def read_response(self, *given: Any, **named: Any) -> Any:
        """Return the next reply as hiredis reads it."""
        if self._held:
            self._reader.feed(bytes(self._page[: self._held]))
            self._held = 0
        return super().read_response(*given, **named)

    def _may_be_page(self, rows: int) -> bool:
        return any(header.startswith(self._page[: min(self._held, len(header))]) for header in headers(rows))

    def _count(self, start: int) -> int:
        """Return the line ends among what is held from ``start`` on."""
        return int(np.count_nonzero(np.frombuffer(self._page, np.uint8, self._held)[start:] == LINE_END))

    def _receive(self) -> None:
        """Read what is there, at least one byte, behind what is held."""
        if self._held == len(self._page):
            self._page = self._page + bytearray(max(len(self._page), _BUFFER))
        count: Any = self._sock.recv_into(memoryview(self._page)[self._held :])
        if not count:
            raise driver.ConnectionError("Connection closed by server.")
        self._held += int(count)
