"""Several sorted sets read side by side and ahead of whoever merges them: a thread a server, within bounded memory."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import accumulate

from archive.columns import Page
from archive.digest import StandingDigest
from archive.drain import Paging
from archive.fingerprints import Prints, fingerprints
from archive.plan import Task

AHEAD_BYTES = 48 * 2**20  #: of pages that wait to be merged, and a page of each sorted set that is waited for
_THREADS = 8


class Reading:
    """One sorted set as it is read: the pages that have come and nobody has taken, and the digest of all that came.

    ``prints`` is room for the fingerprints of its members, if they are wanted.
    """

    def __init__(self, server: str, paging: Paging, prints: Prints | None = None) -> None:
        self.server = server
        self.paging = paging
        self._prints = prints
        self.digest = StandingDigest()
        self.waiting: deque[Page] = deque()
        self.wanted = False  #: whether somebody can do nothing before its next page comes
        self.coming = paging.rest  #: rows that have not come yet
        self._ends: list[int] = []

    def part(self, tasks: Sequence[Task], number: int) -> None:
        """Take note of what each task has of it; it is the sorted set of that ``number``."""
        self._ends = list(accumulate(task.rows[number] for task in tasks))

    def next_page(self) -> Page:
        """Return the page received, once digest and fingerprints have its rows."""
        page = self.paging.page()
        if self._prints is not None:
            self._prints[self.digest.rows : self.digest.rows + len(page)] = fingerprints(page.members)
        self.digest.update(page.members, page.scores)
        return page

    @property
    def turn(self) -> tuple[int, int]:
        """What to read first: what an earlier task needs, and of one task where least is waiting."""
        return bisect_right(self._ends, self.paging.asked), sum(map(len, self.waiting))


class Ahead:
    """Reads ``readings`` in threads, one a server but a few in all, in the order of ``tasks``; stops with the block.

    Each server is asked for one page at a time, so players wait for one page at most, and for the next before that one
    is decoded. Whoever falls behind by ``AHEAD_BYTES`` is waited for, except that a sorted set without which nobody can
    go on is always read a page further.
    """

    def __init__(self, readings: Sequence[Reading], tasks: Sequence[Task]) -> None:
        self._readings = readings
        self._changed = threading.Condition()
        self._size = 0
        self._stopped = False
        self._error: BaseException | None = None
        for number, reading in enumerate(readings):
            reading.part(tasks, number)
        servers = {server: at % _THREADS for at, server in enumerate(dict.fromkeys(one.server for one in readings))}
        shares = [[one for one in readings if servers[one.server] == at] for at in range(min(_THREADS, len(servers)))]
        self._unfinished = len(shares)
        self._threads = [
            threading.Thread(target=self._run, args=(share,), name="finale-read", daemon=True) for share in shares
        ]

    def __enter__(self) -> Ahead:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    @property
    def complete(self) -> bool:
        """Whether every row has been read, taken or not; the connections are free for the proof then."""
        with self._changed:
            return not self._unfinished and self._error is None

    def pages(self, reading: Reading) -> Iterator[Page]:
        """Yield the pages of one sorted set as they come; raises what reading any of them raised."""
        while (page := self._taken(reading)) is not None:
            yield page

    def _taken(self, reading: Reading) -> Page | None:
        with self._changed:
            while self._error is None and not reading.waiting:
                if not reading.coming:
                    return None
                reading.wanted = True
                self._changed.notify_all()
                self._changed.wait()
            if self._error is not None:
                raise self._error
            page = reading.waiting.popleft()
            self._size -= _bytes(page)
            self._changed.notify_all()
            return page

    def _run(self, share: Sequence[Reading]) -> None:
        error: BaseException | None = None
        try:
            self._read(share)
        except BaseException as raised:  # it is raised where the pages are taken
            error = raised
        with self._changed:
            self._unfinished -= 1
            self._error = self._error or error
            self._changed.notify_all()

    def _read(self, share: Sequence[Reading]) -> None:
        under_way = self._next(share, wait=True)
        if under_way is not None:
            under_way.paging.request()
        while under_way is not None:
            arrived = under_way
            under_way = self._next(share, wait=False) if arrived.paging.receive() else None
            if under_way is not None:
                under_way.paging.request()
            page = arrived.next_page()
            with self._changed:
                arrived.waiting.append(page)
                arrived.wanted = False
                arrived.coming -= len(page)
                self._size += _bytes(page)
                self._changed.notify_all()
            if under_way is None:
                under_way = self._next(share, wait=True)
                if under_way is not None:
                    under_way.paging.request()

    def _next(self, share: Sequence[Reading], *, wait: bool) -> Reading | None:
        """Return of which sorted set to ask for a page now; None if of none, or, if it may not ``wait``, not yet."""
        with self._changed:
            while not self._stopped and self._error is None:
                unread = [reading for reading in share if reading.paging.rest]
                wanted = [reading for reading in unread if reading.wanted]
                if wanted and wait:
                    return wanted[0]
                if self._size < AHEAD_BYTES or not unread:
                    return min(unread, key=lambda reading: reading.turn, default=None)
                if not wait:
                    return None
                self._changed.wait()
            return None


def _bytes(page: Page) -> int:
    return int(page.members.nbytes) + page.scores.nbytes
