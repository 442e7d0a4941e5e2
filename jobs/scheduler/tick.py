"""One tick: does what is due by PostgreSQL's clock, oldest first. A missed or doubled one is harmless."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from jobs import identity
from jobs.boards.projection import apply_pending
from jobs.checks import live_check
from jobs.payout.correcting import finish_all
from jobs.payout.delivering import deliver_owed
from jobs.scheduler.pool import Pool
from jobs.scheduler.returned import returned_keys
from jobs.scheduler.upcoming import create_ahead, point_current_key
from jobs.scheduler.wanting import boards_wanting
from jobs.seasons import runner
from jobs.seasons.runner import Observer
from jobs.unforeseen import told
from jobs.wiring import Outside
from leaderboard.errors import FinaleError, LeaseHeldError, PausedError
from leaderboard.season import Season
from leaderboard.states import State, Step
from ledger import pausing, seasons

#: The part of an interval for which a board delivers: less than all of it, so that the next round finds it free again.
TURN = 0.9
#: Instead of a season or board: what is looked for among all that were cleaned.
EVERYWHERE = "cleaned seasons"


@dataclass(frozen=True, slots=True)
class Ticked:
    """What came of one season or board: the steps taken, or why it went no further."""

    name: str
    steps: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    error: FinaleError | None = None
    busy: bool = False
    drift: str = ""  #: what a check of a season that is being played found
    held: str = ""  #: why the season waits for a person, since an earlier run
    waits: str = ""  #: what a step has left to a later run, and why

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
            "drift": self.drift or None,
            "held": self.held or None,
            "waits": self.waits or None,
            "error": error,
            "exit_code": self.error.exit_code if self.error else 0,
        }


def tick(outside: Outside, *, who: str, observer: Observer, now: datetime | None = None) -> list[Ticked]:
    """Create the seasons ahead, write what is pending to the live boards, and take every step that is due.

    Boards are worked on side by side, ``[runner] workers`` at once, the seasons of each one after another, oldest
    first; one that fails, in whatever way, or is held does not stop the others. Seasons on hold, backfills before their
    seal and adopted keys are left alone, as are those that somebody else works on, and everything while it is paused.
    Last come the cleaned seasons whose live key is back. ``now`` is PostgreSQL's clock unless given, read again for
    each board. The observer is told by several threads.
    """
    given, now = now, now or outside.database.now()
    if (paused := pausing.find(outside.database)) is not None:
        return [Ticked("everything", held=paused.told)]
    boards = boards_wanting(outside, now)
    workers = min(outside.runner.workers, len(boards))
    if workers > 1:
        with closing(Pool(outside)) as pool, ThreadPoolExecutor(workers, "finale-board") as threads:
            futures = [threads.submit(_pooled, pool, name, given, who, observer) for name in boards]
            found = [one for future in futures for one in future.result()]
    else:
        found = [one for name in boards for one in _board(outside, name, given, who, observer)]
    return [*found, *tick_returned(outside, now)]


def _pooled(pool: Pool, name: str, given: datetime | None, who: str, observer: Observer) -> list[Ticked]:
    try:
        with pool.taken() as outside:
            return _board(outside, name, given, who, observer)
    except Exception as error:
        return [Ticked(name, error=told(name, error))]


def _board(outside: Outside, name: str, given: datetime | None, who: str, observer: Observer) -> list[Ticked]:
    try:
        now = given or outside.database.now()  # the boards before this one may have taken long
    except FinaleError as error:
        return [Ticked(name, error=error)]
    return tick_board(outside, name, now, who, observer)


def tick_board(outside: Outside, name: str, now: datetime, who: str, observer: Observer) -> list[Ticked]:
    """Do what is due on one board: what ``tick`` does, and the unit in which the scheduler does it.

    All deliveries of the board together have one turn; the next round goes on with what they leave.
    """
    outside = replace(outside, turn_ends=time.monotonic() + TURN * outside.runner.interval.total_seconds())
    found = [_ahead(outside, name, now, who)]
    try:
        known = seasons.unfinished(outside.database, name, outside.boards[name])
    except Exception as error:
        return [*_told(found), Ticked(name, error=told(name, error))]
    for season in known:
        if outside.working.stop.is_set():
            break
        found.append(_season(outside, season, now, who, observer))
    return _told([*found, *_owed(outside, name, who)])


def _owed(outside: Outside, name: str, who: str) -> list[Ticked]:
    """Bring interrupted corrections to their end, and send the grants that seasons past their deliver step owe."""
    try:
        found = [*finish_all(outside, name, who=who), *deliver_owed(outside, name, who=who)]
        return [Ticked(season.name, error=error) for season, error in found]
    except Exception as error:
        return [Ticked(name, error=told(name, error))]


def _told(found: list[Ticked]) -> list[Ticked]:
    """Return what somebody should hear of."""
    return [one for one in found if any((one.steps, one.created, one.error, one.busy, one.held, one.drift, one.waits))]


def tick_returned(outside: Outside, now: datetime) -> list[Ticked]:
    try:
        return [Ticked(season.name, error=error) for season, error in returned_keys(outside, now)]
    except Exception as error:
        return [Ticked(EVERYWHERE, error=told(EVERYWHERE, error))]


def _ahead(outside: Outside, name: str, now: datetime, who: str) -> Ticked:
    board = outside.boards[name]
    try:
        created = create_ahead(outside, board, now, who=who)
        point_current_key(outside, board, now)
    except Exception as error:
        return Ticked(name, error=told(name, error))
    return Ticked(name, created=tuple(created))


def _season(outside: Outside, season: Season, now: datetime, who: str, observer: Observer) -> Ticked:
    try:
        if season.state in (State.OPEN, State.CLOSING) and season.board.ledger == "own" and season.frozen_at is None:
            apply_pending(outside, season, identity.holder())
        if not season.timing.is_due(now):
            checked = live_check.check_due(outside, season, now, who=who)
            return Ticked(season.name, drift=checked.words if checked else "")
        if season.hold is not None:
            return Ticked(season.name, held=season.hold.reason)
        run = runner.run(outside, season, who=who, observer=observer)
    except LeaseHeldError:
        return Ticked(season.name, busy=True)
    except PausedError as paused:
        return Ticked(season.name, held=paused.message)
    except Exception as error:
        return Ticked(season.name, error=told(season.name, error))
    # Any other step that waits does so for a stored time, which is nothing to be told of in every round.
    waits = run.waits[1].why if run.waits and run.waits[0] is Step.DELIVER else ""
    return Ticked(season.name, steps=tuple(str(step.step) for step in run.steps), waits=waits)
