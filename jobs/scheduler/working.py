"""What this process is working on, so that it can stop between two steps, or hand over in the middle of one."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from ledger.leases import Lease


@dataclass(frozen=True)
class Working:
    """``stop`` is set when no further step shall begin. Any thread may use it."""

    stop: threading.Event = field(default_factory=threading.Event)
    _held: set[Lease] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, lease: Lease) -> None:
        """Note a lease that has been taken."""
        with self._lock:
            self._held.add(lease)

    def end(self, lease: Lease) -> None:
        """Forget a lease that has been given back or lost."""
        with self._lock:
            self._held.discard(lease)

    def held(self) -> list[Lease]:
        """Return the leases that are held now."""
        with self._lock:
            return list(self._held)
