"""The switch that stops every runner of this ledger at once, wherever it runs, until it is turned back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from leaderboard.errors import PausedError, WrongStateError
from ledger import journal
from ledger.database import Database


@dataclass(frozen=True, slots=True)
class Pause:
    since: datetime
    who: str
    because: str

    @property
    def told(self) -> str:
        """One line for a person."""
        why = f": {self.because}" if self.because else ""
        return f"paused since {self.since:%Y-%m-%d %H:%M:%S} UTC by {self.who}{why}"


def find(database: Database) -> Pause | None:
    """Return the pause in force, None if there is none."""
    row = database.row("pausing.find")
    return Pause(**row) if row else None


def check(database: Database) -> None:
    """Raise PausedError while everything is paused."""
    if (found := find(database)) is not None:
        raise error(found)


def error(found: Pause) -> PausedError:
    """Return the error of whoever is kept from working by a pause."""
    return PausedError(f"everything is {found.told}", hint="let it go on with: finale resume")


def pause(database: Database, *, who: str, because: str) -> None:
    """Let no runner begin another step. Raises WrongStateError, naming who did it, if that is so already."""
    with database.transaction():
        if database.row("pausing.pause", {"who": who, "because": because}) is None:
            found = find(database)
            raise WrongStateError(
                f"everything is already {found.told if found else 'paused'}",
                detail="one pause is in force at a time, with the name and the reason of whoever began it",
                hint="let it go on with: finale resume",
            )
        journal.write(database, journal.EVERYTHING, "paused", who=who, detail={"because": because})


def resume(database: Database, *, who: str, because: str) -> Pause:
    """End the pause and return what it was. Raises WrongStateError if there is none."""
    with database.transaction():
        row = database.row("pausing.resume")
        if row is None:
            raise WrongStateError(
                "nothing is paused",
                hint="finale journal tells of earlier pauses; a season that is held: finale season release",
            )
        ended = Pause(**row)
        detail = {"because": because, "paused_since": ended.since.isoformat(), "paused_by": ended.who}
        journal.write(database, journal.EVERYTHING, "resumed", who=who, detail=detail)
    return ended
