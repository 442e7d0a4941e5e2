"""What is overdue: the one rule, for the metric and for the note."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from jobs.scheduler.notify import Note
from ledger import agenda
from ledger.monitoring import Seen

#: How long a step may be due before somebody is told.
OVERDUE = timedelta(minutes=10)
#: For so long each round must have found it: what was paused or held, or could not be asked, is about to be done.
SETTLED = timedelta(minutes=1)


def overdue(row: dict[str, Any], seen: Seen) -> timedelta:
    """Return how long the season's step has been due that waits for no person and is not being worked on; else none.

    A runner that works on it for too long is another matter: of that ``finale_lease_age_seconds`` tells. But a step
    that has failed stays overdue while it is tried again: an alert would else begin anew with each try. A delivery that
    gets on is worked on between its turns too.
    """
    timing = agenda.timing(row)
    at, worked_on = timing.due_since, (row["leased"] or row["delivering"]) and not row["attempts"]
    if at is None or seen.paused or row["held_at"] is not None or worked_on or timing.by_hand:
        return timedelta(0)
    return max(timedelta(0), seen.now - at)


@dataclass
class Overdue:
    """Keeps since when each season was found overdue by every round; a daemon that has just come knows of none."""

    _since: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def found(self, seen: Seen) -> list[Note]:
        """Return what is to be told after this round."""
        late = [(row, how_long) for row in seen.seasons if (how_long := overdue(row, seen))]
        self._since = {_name(row): self._since.get(_name(row), seen.now) for row, _ in late}
        return [
            _note(row) for row, how_long in late if how_long > OVERDUE and seen.now - self._since[_name(row)] >= SETTLED
        ]

    def forget(self) -> None:
        """Note a round that could not look."""
        self._since.clear()


def _name(row: dict[str, Any]) -> tuple[str, str]:
    return row["board"], row["season"]


def _note(row: dict[str, Any]) -> Note:
    timing = agenda.timing(row)
    return Note(
        "overdue", "/".join(_name(row)), str(timing.step), f"due since {timing.due_since:%Y-%m-%d %H:%M:%S} UTC"
    )
