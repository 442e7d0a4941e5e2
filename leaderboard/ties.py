"""Who stands first among equal points, and the units of a time that is packed into a score."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from leaderboard.fields import Strict

Unit = Literal["millisecond", "second", "minute", "hour", "day"]

UNIT_MICROSECONDS: dict[Unit, int] = {
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
}


class Ties(Strict):
    """Who stands first among equal points.

    ``first_to_reach``: whoever held the points first, at the resolution of ``unit``; the time is packed into the score,
    below ``multiplier``. ``shared``: equal points share a rank. ``member``: the order of the ids' bytes, a rank each.
    """

    by: Literal["first_to_reach", "shared", "member"] = "first_to_reach"
    unit: Unit = "second"
    multiplier: int = Field(default=2**24, ge=2, le=2**52)
