"""What most likely happened to a player who drifts, as far as the last results show it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from leaderboard.codec import to_microseconds
from reconcile.drift import Drift


class Cause(StrEnum):
    """The most likely cause, in the words of the report."""

    NEVER_APPLIED = "never applied"
    ROLLED_BACK = "rolled back by a failover"
    TWICE = "applied twice"
    VOID = "void not applied"
    LATE = "late result applied"
    FOREIGN = "written by someone else"
    BROKEN = "the ledger's total is broken"
    UNTOLD = "not told by the data"


@dataclass(frozen=True, slots=True)
class Match:
    """One result of a player in the season. ``late``: it came after the freeze; ``voided``: it does not count."""

    match_id: str
    points: int
    played_at: datetime
    recorded_at: datetime
    late: bool = False
    voided: bool = False


@dataclass(frozen=True, slots=True)
class Counting:
    """How results become a player's points, and how their times are told: microseconds of the start and the unit."""

    aggregate: Literal["sum", "best", "last"]
    descending: bool
    unit: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """A drifting player with the most likely cause. ``since``: from when on results are missing in Redis."""

    drift: Drift
    cause: Cause
    since: datetime | None
    words: str
    matches: tuple[Match, ...]  #: the last ones, the last recorded first


SHOWN = 3  #: last results that a report shows of a player


def explain(drift: Drift, matches: Sequence[Match], counting: Counting, *, whole: bool) -> Explained:
    """Return the most likely cause of one player's drift.

    ``matches`` are the player's results in the season, the last recorded first; ``whole`` whether they are all of them.
    """
    counted = [match for match in matches if not match.late and not match.voided]
    cause, since, words = _cause(drift, counted, matches, counting, whole)
    return Explained(drift, cause, since, words, tuple(matches[:SHOWN]))


_Found = tuple[Cause, datetime | None, str]


def _cause(drift: Drift, counted: Sequence[Match], matches: Sequence[Match], counting: Counting, whole: bool) -> _Found:
    if whole and counted and (held := _held(counted, counting)) and held[0] != drift.ledger_points:
        return Cause.BROKEN, None, f"its results make {held[0]:,} points; see finale reconcile --deep"
    if drift.kind == "only_ledger":
        return _missing(counted, whole)
    for find in () if drift.rows else (_behind, _voided, _late, _twice):
        if found := find(drift, counted, matches, counting, whole):
            return found
    return Cause.FOREIGN, None, _foreign(drift, matches)


def _foreign(drift: Drift, matches: Sequence[Match]) -> str:
    if drift.rows:
        return drift.in_redis
    if drift.kind == "only_redis" and not matches:
        return "the ledger has no result of this player"
    if drift.kind == "reached_at_differs":
        return "the points are right and their time is no result's, as when a score is changed by hand"
    return "no results of the ledger make these points"


def _missing(counted: Sequence[Match], whole: bool) -> _Found:
    if not counted:
        return Cause.UNTOLD, None, "the ledger has a total, and no result of this player that makes it"
    first = counted[-1].recorded_at if whole else None
    return Cause.NEVER_APPLIED, first, "Redis has no score"


def _behind(
    drift: Drift, counted: Sequence[Match], _: Sequence[Match], counting: Counting, whole: bool
) -> _Found | None:
    """Redis stands where the player stood before the last results."""
    for missing in range(1, len(counted) + (not whole)):
        before = counted[missing:]
        if _same(drift, before, counted, counting, whole):
            since = counted[missing - 1].recorded_at
            return Cause.NEVER_APPLIED, since, f"Redis stands where it was before the last {_results(missing)}"
    return None


def _same(drift: Drift, before: Sequence[Match], counted: Sequence[Match], counting: Counting, whole: bool) -> bool:
    """Return whether ``before``, the earlier of the ``counted`` results, give what Redis has."""
    if not whole:
        # Earlier results are not known: only sums can be told from the later ones.
        lost = sum(match.points for match in counted[: len(counted) - len(before)])
        return counting.aggregate == "sum" and drift.difference == -lost and lost != 0
    held = _held(before, counting)
    if held is None or held[0] != drift.redis_points:
        return False
    return (
        drift.redis_reached_at is None or counting.unit is None or _floored(held[1], counting) == drift.redis_reached_at
    )


def _voided(
    drift: Drift, counted: Sequence[Match], matches: Sequence[Match], counting: Counting, whole: bool
) -> _Found | None:
    return _with(drift, counted, [match for match in matches if match.voided], counting, whole, Cause.VOID)


def _late(
    drift: Drift, counted: Sequence[Match], matches: Sequence[Match], counting: Counting, whole: bool
) -> _Found | None:
    late = [match for match in matches if match.late and not match.voided]
    return _with(drift, counted, late, counting, whole, Cause.LATE)


def _with(
    drift: Drift, counted: Sequence[Match], extra: Sequence[Match], counting: Counting, whole: bool, cause: Cause
) -> _Found | None:
    """Redis counts results that do not count: one of them, or all."""
    for some in (*([match] for match in extra), *([list(extra)] if len(extra) > 1 else [])):
        if counting.aggregate == "sum":
            fits = drift.difference == sum(match.points for match in some) != 0
        else:
            held = _held([*counted, *some], counting) if whole else None
            fits = held is not None and held[0] == drift.redis_points
        if fits:
            named = ", ".join(match.match_id for match in some[:SHOWN])
            return cause, None, f"Redis counts {_results(len(some))} more: {named}"
    return None


def _twice(drift: Drift, counted: Sequence[Match], _: Sequence[Match], counting: Counting, __: bool) -> _Found | None:
    if counting.aggregate != "sum" or not drift.difference:
        return None
    for match in counted:
        if match.points == drift.difference:
            return Cause.TWICE, None, f"Redis has the points of match {match.match_id} once more"
    return None


def _held(matches: Sequence[Match], counting: Counting) -> tuple[int, datetime] | None:
    """Return the points after all of ``matches``, and since when they were held, both by the time of playing."""
    first_held: dict[int, datetime] = {}
    points = 0
    ordered = sorted(matches, key=lambda match: (match.played_at, match.match_id.encode()))
    for number, match in enumerate(ordered, 1):
        if number < len(ordered) and ordered[number].played_at == match.played_at:
            continue  # matches of one instant take effect together
        points = _points(ordered[:number], counting)
        first_held.setdefault(points, match.played_at)
    return (points, first_held[points]) if ordered else None


def _points(played: Sequence[Match], counting: Counting) -> int:
    if counting.aggregate == "sum":
        return sum(match.points for match in played)
    if counting.aggregate == "best":
        return (max if counting.descending else min)(match.points for match in played)
    return played[-1].points


def _floored(instant: datetime, counting: Counting) -> int:
    assert counting.unit is not None
    epoch, size = counting.unit
    return epoch + (to_microseconds(instant) - epoch) // size * size


def _results(count: int) -> str:
    return "result" if count == 1 else f"{count} results"
