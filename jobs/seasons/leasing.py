"""Who acts on a season (I9): its lease, kept alive by a heartbeat, and the lease's fence beside each live key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from jobs import identity
from jobs.wiring import Outside
from leaderboard.errors import LeaseLostError, OutcomeUnknownError, UnavailableError
from leaderboard.season import Season
from leaderboard.states import State, reached
from ledger import leases
from ledger.leases import Heartbeat, Lease
from live.fence import raise_fence, withdraw_fence


@contextmanager
def leased(outside: Outside, season: Season, who: str) -> Iterator[tuple[Lease, Heartbeat]]:
    """Hold the season's lease, its fence raised beside the live key unless that is cleaned. Raises LeaseHeldError."""
    length = outside.runner.lease
    found = leases.find(outside.database, season.key)
    dead = found.holder if found and found.alive and identity.has_ended(found.holder) else None
    lease = leases.acquire(outside.database, season.key, season.name, identity.holder(who), length, who=who, dead=dead)
    outside.working.begin(lease)
    with Heartbeat(outside.database.url, lease, length, on_silence=outside.database.cut) as heartbeat:
        try:
            if not reached(season.state, State.CLEANED):
                raise_own_fence(outside, season, lease)
            yield lease, heartbeat
        finally:
            outside.working.end(lease)
            with suppress(UnavailableError, OutcomeUnknownError):  # where it cannot be given back, it runs out
                leases.give_back(outside.database, lease)


def raise_own_fence(outside: Outside, season: Season, lease: Lease) -> None:
    """Raise the fence beside each live key; one raised too late, after a take-over, would outlive a cleaned season."""
    for key in season.own_keys:
        raise_fence(outside.redis, key, lease.fence)
    try:
        leases.check(outside.database, lease)
    except LeaseLostError:
        withdraw_own_fence(outside, season, lease)
        raise


def withdraw_own_fence(outside: Outside, season: Season, lease: Lease) -> None:
    """Take this lease's fence away from beside each live key; safe to repeat."""
    for key in season.own_keys:
        withdraw_fence(outside.redis, key, lease.fence)
