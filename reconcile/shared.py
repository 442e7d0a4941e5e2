"""What many drifting players have in common, said once: a time since which results are missing, a shard. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

_FEW = 10  #: players below whom nothing is said to be shared by a place
_MOST_PLACES = 4  #: a quarter of the places at most, and no more than these, are named
_MOST_OF_THEM = 0.5  #: of the players active since a time, so many must drift for the time to tell them from the others
_ALL_OF_THEM = 0.95  #: of the players active since a time, so many are missing where a failover lost them all


@dataclass(frozen=True, slots=True)
class Shared:
    """One thing that ``players`` of the drifting ones share, in words; ``since`` where it is a time."""

    kind: str  #: ``rollback``, ``unapplied`` or ``place``
    players: int
    words: str
    since: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        since = None if self.since is None else _text(self.since)
        return {"kind": self.kind, "players": self.players, "words": self.words, "since": since}


def shared_time(
    since: Sequence[datetime], active_since: Callable[[datetime], int], *, lost_buckets: int = 0
) -> Shared | None:
    """Return what the times since which results are missing in Redis, one a player, have in common; None for nothing.

    ``active_since`` tells how many players have results recorded since a time: where nearly all of them are missing, or
    the freeze has found ``lost_buckets`` whose writes the server had lost, a failover has rolled the server back. Where
    most of those active since then are right, as after an import of everything, the time explains nothing.
    """
    if len(since) < 2:
        return None
    first, last = min(since), max(since)
    active = active_since(first)
    window = f"between {_text(first)} and {_text(last)}" if first != last else f"at {_text(first)}"
    if lost_buckets or (active and len(since) >= _ALL_OF_THEM * active):
        said = f"{lost_buckets} buckets had lost writes" if lost_buckets else "nobody active since then is right"
        words = (
            f"rolled back by a failover since {_text(first)}: {len(since):,} players lack what was recorded {window}"
        )
        return Shared("rollback", len(since), f"{words}; {said}", first)
    if len(since) < _MOST_OF_THEM * active:
        return None
    words = f"{len(since):,} players lack results recorded {window}, of {active:,} active since then"
    return Shared("unapplied", len(since), words, first)


def shared_place(places: Mapping[str, int], everywhere: int, what: str) -> Shared | None:
    """Return that the drift is in a few places only; None where it is spread.

    ``places`` counts drifting players by the place they are in, of ``everywhere`` places called ``what``.
    """
    found = Counter(places)
    players = found.total()
    few = min(_MOST_PLACES, everywhere // 4 if everywhere >= 4 else 1)
    if players < _FEW or everywhere < 2 or not 0 < len(found) <= few:
        return None
    named = ", ".join(f"{place} ({count:,})" for place, count in sorted(found.items()))
    return Shared("place", players, f"all {players:,} are in {len(found)} of {everywhere} {what}: {named}")


def _text(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
