"""Who may act on a season, until when, and the fence that shuts out whoever was taken over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from leaderboard.errors import FinaleError, LeaseHeldError, LeaseLostError
from ledger import journal
from ledger.database import Database


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to act on one season. Every update carries ``fence``; one with an old fence matches no row."""

    key: int
    holder: str
    fence: int

    @property
    def params(self) -> dict[str, object]:
        """The values that a fenced statement is given."""
        return {"key": self.key, "holder": self.holder, "fence": self.fence}


@dataclass(frozen=True, slots=True)
class LeaseRow:
    holder: str
    fence: int
    acquired_at: datetime
    expires_at: datetime
    alive: bool


def told(holder: str) -> str:
    """Return a holder as a person is told of it: what stands before the ``#`` that tells processes apart."""
    return holder.partition(" #")[0]


def find(database: Database, key: int) -> LeaseRow | None:
    """Return the season's lease as it stands, None if nobody ever took it."""
    row = database.row("leases.find", {"key": key})
    return LeaseRow(**row) if row else None


def acquire(
    database: Database, key: int, name: str, holder: str, length: timedelta, *, who: str = "", dead: str | None = None
) -> Lease:
    """Take the lease of the season ``key`` for ``length`` and return it with a fence higher than any before.

    ``dead`` names a holder known to have ended, whose lease need not run out. A lease that was not given back is taken
    over, which the journal keeps in the name of ``who``. Raises LeaseHeldError, with the holder and since when, while
    somebody else has it.
    """
    values = {"key": key, "holder": holder, "length": length, "dead": dead}
    with database.transaction():
        before = database.row("leases.lock_free", values)
        row = database.row("leases.acquire", {**values, "locked": before is not None})
        if before and row and not before["given_back"]:
            why = "its process has ended" if before["alive"] else "its lease ran out"
            detail = {"from": told(before["holder"]), "why": why, "by": told(holder)}
            journal.write(database, key, "taken over", who=who or told(holder), fence=row["fence"], detail=detail)
    if row is not None:
        return Lease(key, holder, row["fence"])
    now = find(database, key)
    assert now is not None
    raise LeaseHeldError(
        f"{name} is being worked on by {told(now.holder)} since {now.acquired_at:%Y-%m-%d %H:%M:%S} UTC",
        detail=f"its lease runs until {now.expires_at:%H:%M:%S} UTC and is renewed while it lives",
        hint="wait until it is done, or until its lease has run out, and run the command again",
    )


def give_back(database: Database, lease: Lease) -> None:
    """Let the next runner in at once."""
    database.row("leases.give_back", lease.params)


def check(database: Database, lease: Lease) -> None:
    """Raise LeaseLostError unless the lease is still this runner's; inside a transaction it stays so until the end."""
    if database.row("leases.check", lease.params) is None:
        raise lost(lease)


def lost(lease: Lease) -> LeaseLostError:
    """Return the error of a runner that another one has taken over from."""
    return LeaseLostError(
        "another runner has taken this season over; nothing more was changed by this one",
        detail=f"fence {lease.fence} of {told(lease.holder)} is no longer the season's",
        hint="see who works on it with: finale season show",
    )


@dataclass
class Heartbeat:
    """Renews a lease from a thread of its own, over a connection of its own, until stopped.

    ``lost`` is set as soon as a renewal matches no row, or none succeeded for the length of the lease; then
    ``on_silence`` is called too, since whoever holds the lease may be waiting for the same server.
    """

    url: str
    lease: Lease
    length: timedelta
    on_silence: Callable[[], None] = lambda: None
    lost: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Heartbeat:
        self._thread = threading.Thread(target=self._run, name="finale-heartbeat", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread:
            # It is waited for no longer than a lease: a server that hangs must not hang the runner too.
            self._thread.join(self.length.total_seconds())

    def _run(self) -> None:
        third = self.length.total_seconds() / 3
        renewed, pause = time.monotonic(), third
        database: Database | None = None
        try:
            while not self._stop.wait(pause):
                try:
                    # Connected only now: most steps end before their lease needs to be renewed at all.
                    database = database or Database(self.url, connect_timeout=third, statement_timeout=third)
                    if database.row("leases.renew", {**self.lease.params, "length": self.length}) is None:
                        self.lost.set()
                        return
                    renewed, pause = time.monotonic(), third
                except FinaleError:
                    # The connection is made anew, until the lease must have run out.
                    if time.monotonic() - renewed >= self.length.total_seconds():
                        self.lost.set()
                        self.on_silence()
                        return
                    if database is not None:
                        database.close()
                    database, pause = None, third / 3
        finally:
            if database is not None:
                database.close()
