"""One tick: does what is due by PostgreSQL's clock, oldest first. A missed or doubled one is harmless."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs import identity, runner
from jobs.closing import goes_on_by_hand
from jobs.projection import apply_pending
from jobs.returned import returned_keys
from jobs.runner import Observer
from jobs.upcoming import create_ahead, point_current_key
from jobs.wiring import Outside
from leaderboard.errors import FinaleError, LeaseHeldError
from leaderboard.season import Season
from leaderboard.states import State, Step
from ledger import seasons


@dataclass(frozen=True, slots=True)
class Ticked:
    """What came of one season or board: the steps taken, or why it went no further."""

    name: str
    steps: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    error: FinaleError | None = None
    busy: bool = False
    held: str = ""  #: why the season waits for a person, since an earlier run

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        error = (
            {"message": self.error.message, "detail": self.error.detail, "hint": self.error.hint}
            if self.error
            else None
        )
        return {
            "name": self.name,
            "steps": list(self.steps),
            "created": list(self.created),
            "busy": self.busy,
            "held": self.held or None,
            "error": error,
            "exit_code": self.error.exit_code if self.error else 0,
        }


def tick(outside: Outside, *, who: str, observer: Observer, now: datetime | None = None) -> list[Ticked]:
    """Create the seasons ahead, write what is pending to the live boards, and take every step that is due.

    Each season is on its own: one that fails or is held does not stop the others. Seasons on hold, backfills before
    their seal and adopted keys are left alone, as are those that somebody else works on. Last come the cleaned seasons
    whose live key is back. ``now`` is PostgreSQL's clock unless given.
    """
    now = now or outside.database.now()
    found = [_ahead(outside, name, now, who) for name in outside.boards]
    known = sorted(seasons.every(outside.database, outside.boards), key=lambda one: (one.bounds.ends_at, one.name))
    found += [_season(outside, season, now, who, observer) for season in known if season.board.name in outside.boards]
    found += _returned(outside, now)
    return [one for one in found if one.steps or one.created or one.error or one.busy or one.held]


def _returned(outside: Outside, now: datetime) -> list[Ticked]:
    try:
        return [Ticked(season.name, error=error) for season, error in returned_keys(outside, now)]
    except FinaleError as error:
        return [Ticked("cleaned seasons", error=error)]


def _ahead(outside: Outside, name: str, now: datetime, who: str) -> Ticked:
    board = outside.boards[name]
    try:
        created = create_ahead(outside, board, now, who=who)
        point_current_key(outside, board, now)
    except FinaleError as error:
        return Ticked(name, error=error)
    return Ticked(name, created=tuple(created))


def _season(outside: Outside, season: Season, now: datetime, who: str, observer: Observer) -> Ticked:
    try:
        if season.state in (State.OPEN, State.CLOSING) and season.board.ledger == "own" and season.frozen_at is None:
            apply_pending(outside, season, identity.holder())
        if not is_due(season, now):
            return Ticked(season.name)
        if season.hold is not None:
            return Ticked(season.name, held=season.hold.reason)
        run = runner.run(outside, season, who=who, observer=observer)
    except LeaseHeldError:
        return Ticked(season.name, busy=True)
    except FinaleError as error:
        return Ticked(season.name, error=error)
    return Ticked(season.name, steps=tuple(str(step.step) for step in run.steps))


def is_due(season: Season, now: datetime) -> bool:
    """Return whether the season's stored bounds let a step be taken at ``now`` without a person (I7)."""
    step = runner.due_step(season)
    if step is None or goes_on_by_hand(season):
        return False
    waits_for = {
        Step.OPEN: season.bounds.starts_at,
        Step.CLOSE: season.bounds.ends_at,
        Step.FREEZE: season.closes_at,
        Step.CLEAN: season.keep_until,
    }
    at = waits_for.get(step)
    return at is None or at <= now
