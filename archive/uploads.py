"""Parts on their way to staging: encoded one at a time and put a few at a time, while the next is being gathered."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from archive.layout import parse_part
from archive.objects import Store, settle
from archive.parts import Cut, Part
from leaderboard.errors import FinaleError

_IN_FLIGHT = 2  # encoded parts held in memory while they are put


class Uploads:
    """Puts of the parts of one attempt into a ``folder`` of its own; thrown away if the block fails.

    At most one part is encoded and ``_IN_FLIGHT`` are put at any time, so that memory stays flat.
    """

    def __init__(self, store: Store, folder: str) -> None:
        self._store = store
        self._folder = folder
        self._encoder = ThreadPoolExecutor(1, thread_name_prefix="finale-encode")
        self._putter = ThreadPoolExecutor(_IN_FLIGHT, thread_name_prefix="finale-put")
        self._encoding: Future[tuple[Part, bytes]] | None = None
        self._putting: deque[Future[bool]] = deque()
        self._parts: list[Part] = []

    def __enter__(self) -> Uploads:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._encoder.shutdown(cancel_futures=True)
        self._putter.shutdown(cancel_futures=True)
        if isinstance(error, Exception):
            self._throw_away()

    def put(self, cuts: Iterable[Cut]) -> None:
        """Start to encode and put parts; wait while too many are under way. Raises what an earlier one raised."""
        for cut in cuts:
            self._put_encoded()
            self._encoding = self._encoder.submit(cut.encoded)

    def finish(self) -> tuple[Part, ...]:
        """Wait until all parts are stored; return them."""
        self._put_encoded()
        while self._putting:
            self._putting.popleft().result()
        return tuple(self._parts)

    def _put_encoded(self) -> None:
        if self._encoding is None:
            return
        part, data = self._encoding.result()
        self._encoding = None
        if len(self._putting) == _IN_FLIGHT:
            self._putting.popleft().result()
        self._putting.append(self._putter.submit(settle, self._store, f"{self._folder}/{part.name}", data))
        self._parts.append(part)

    def _throw_away(self) -> None:
        # What cannot be removed now lies where no reader globs, and is swept by age.
        with suppress(FinaleError):
            for found in self._store.list(self._folder):
                if parse_part(found.path):
                    self._store.delete(found.path)
