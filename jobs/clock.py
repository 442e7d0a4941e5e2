"""How far this machine's clock is from PostgreSQL's, which decides what is due (I7)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from jobs.wiring import Outside
from leaderboard.errors import ClockError


def skew(outside: Outside) -> timedelta:
    """Return how far this machine's clock is ahead of PostgreSQL's, at least: the way there and back is allowed for."""
    return offset(outside.database.now)


def offset(ask: Callable[[], datetime]) -> timedelta:
    """Return how far this machine's clock is ahead of the one that ``ask`` tells, at least; otherwise as ``skew``."""
    before = datetime.now(UTC)
    decides = ask()
    after = datetime.now(UTC)
    if before <= decides <= after:
        return timedelta(0)
    return before - decides if before > decides else after - decides


def check_clock(outside: Outside) -> timedelta:
    """Return the skew. Raises ClockError if it is more than ``[runner] max_skew``."""
    found, bound = skew(outside), outside.runner.max_skew
    if abs(found) > bound:
        ahead = "ahead of" if found > timedelta(0) else "behind"
        raise ClockError(
            f"this machine's clock is {abs(found).total_seconds():,.1f} seconds {ahead} PostgreSQL's",
            detail=f"runner.max_skew allows {bound.total_seconds():g} seconds; PostgreSQL's clock decides what is due",
            hint="set both machines' clocks by NTP; one of the two is wrong, and seasons end by PostgreSQL's",
        )
    return found
