"""What follows from a comparison: go on, put Redis right, or hold the season. Pure, the same wherever it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconcile.drift import Comparison

#: How often Redis is put right before a season is held: a failover may come twice, a foreign writer always comes again.
REPAIRS = 2


class Decision(StrEnum):
    AGREED = "agreed"
    ACCEPTED = "accepted"
    REPAIR = "repair"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a season allows. ``repairs``: up to so many drifting players Redis is put right unasked.

    ``own``: the ledger and the live key are Finale's, so that there is something to write and a right to. ``done``: how
    often that was done since a person last looked. ``accepted``: hashes of the differences that a person has accepted.
    """

    own: bool
    repairs: int
    done: int
    accepted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Verdict:
    decision: Decision
    why: str


def decide(found: Comparison, difference: str, allowed: Allowed) -> Verdict:
    """Return what is to be done about a comparison whose difference has the hash ``difference``.

    An acceptance covers the very difference that was accepted and no other. A broken side (a row without an id, sums
    that differ where no player does) is never repaired.
    """
    if not found.drift:
        if not found.tolerated and found.redis_points != found.ledger_points:
            return Verdict(Decision.HOLD, "no player differs, yet the sums of points do")
        return Verdict(Decision.AGREED, "every player is the same on both sides")
    if difference in allowed.accepted:
        return Verdict(Decision.ACCEPTED, "a person has accepted this very difference")
    if why := _against_repair(found, allowed):
        return Verdict(Decision.HOLD, why)
    return Verdict(Decision.REPAIR, f"{found.drift:,} players are within the {allowed.repairs:,} repaired unasked")


def _against_repair(found: Comparison, allowed: Allowed) -> str:
    if not allowed.own:
        return "the ledger or the live key is not Finale's, so nothing is written"
    if found.null_ids:
        return f"{found.null_ids:,} rows have no id"
    if found.drift > allowed.repairs:
        return f"{found.drift:,} players are more than the {allowed.repairs:,} repaired unasked"
    if allowed.done >= REPAIRS:
        return f"it was repaired {allowed.done} times already, so something else writes to the key"
    return ""
