"""Closing and cleaning one season on a person's word: what may be done, and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jobs.output import as_text
from jobs.seasons.verdicts import Act, Held, Verdict, Wait
from leaderboard.board import Board
from leaderboard.calendar import season_called
from leaderboard.errors import FinaleError, NotDueError, UnknownNameError, WrongStateError
from leaderboard.season import Bounds, Season
from leaderboard.states import STARTS, State, Step, reached, step_from
from ledger import levers, pausing, seasons

if TYPE_CHECKING:  # the runner brings every step and all that they need, which telling of a season does not
    from jobs.endpoints import Ledger
    from jobs.seasons.runner import Observer, Run
    from jobs.wiring import Outside


def find(outside: Outside | Ledger, board: str, season: str) -> Season:
    """Return a season of a configured board, or of one that the ledger still knows. Raises UnknownNameError."""
    known = outside.boards.get(board)
    if known is None and not seasons.of_board(outside.database, board):
        known = outside.settings.board(board)
    return seasons.find(outside.database, board, season, known)


def untaken(outside: Outside, board: str, season: str) -> Bounds | None:
    """Return the bounds of a season that has begun and that ``close`` would take on; None for any other.

    Only a board without a ledger of Finale's has such: nothing but the calendar tells of a season that others have
    filled.
    """
    known = outside.boards.get(board)
    if known is None or known.ledger == "own" or not known.calendar.opens:
        return None
    bounds = season_called(known.calendar, season)
    if bounds is None or bounds.starts_at > outside.database.now():
        return None
    return None if any(one.id == season for one in seasons.of_board(outside.database, board)) else bounds


def take_on(outside: Outside, board: str, season: str, *, who: str) -> Season:
    """Return a season to be closed, made first if it is one that ``untaken`` tells of. Raises UnknownNameError."""
    if bounds := untaken(outside, board, season):
        seasons.create(outside.database, outside.boards[board], bounds, outside.database.now(), who=who)
    try:
        return find(outside, board, season)
    except UnknownNameError:
        known = outside.boards.get(board)
        scheduled = season_called(known.calendar, season) if known else None
        if scheduled is None:
            raise
        assert known is not None
        raise _not_in_ledger(known, scheduled, outside.database.now()) from None


def _not_in_ledger(board: Board, bounds: Bounds, now: datetime) -> FinaleError:
    """Return why a season that the calendar has cannot be closed: nobody has played in it yet, as far as is known."""
    name = f"{board.name}/{bounds.id}"
    if not board.calendar.opens:
        return UnknownNameError(
            f"the ledger has no {name}",
            detail=f"the calendar of {board.name} opens no seasons (opens = false): they are adopted",
            hint=f"finale archive adopt KEY --board {board.name} --season {bounds.id}",
        )
    if now < bounds.ends_at:
        return NotDueError(
            f"{name} has not ended: it ends at {bounds.ends_at:%Y-%m-%d %H:%M:%S} UTC",
            detail="the ledger does not have it yet",
            hint="finale tick creates the seasons that are running and the next ones",
        )
    return UnknownNameError(
        f"{name} ended at {bounds.ends_at:%Y-%m-%d %H:%M:%S} UTC, and the ledger has no result of it",
        hint="import its results first: finale results import FILE --board BOARD",
    )


def close(
    outside: Outside,
    season: Season,
    *,
    who: str,
    observer: Observer,
    until: Step = Step.CLEAN,
    early: bool = False,
    because: str = "",
) -> Run:
    """Take a season that has ended through every step that is due, and return what was done.

    ``early`` ends it now, without a grace, or the grace that runs; the journal keeps ``because``. Raises NotDueError
    for one that has not ended or whose grace runs, and what ``runner.run`` raises: it has not been ended early then.
    Closing a closed season again does nothing.
    """
    from jobs.seasons import runner

    def cut_short(fresh: Season) -> None:
        if _may_be_cut_short(fresh, now := outside.database.now()):
            levers.cut_short(outside.database, fresh, now, who=who, because=because)

    cuts = early and season.hold is None and _may_be_cut_short(season, outside.database.now())
    first = cut_short if cuts else None
    run = runner.run(outside, season, who=who, observer=observer, until=until, forced=early, first=first)
    if run.waits is not None and run.waits[0] is not Step.CLEAN:
        step, wait = run.waits
        if wait.until is None:
            raise _stopped(outside, season, wait.why)
        sends = step is Step.DELIVER  # what it waits for is its next try, which no --now brings on
        retry = f"send at once with: finale rewards retry {season.board.name} {season.id}"
        raise NotDueError(
            f"{season.name}: {wait.why}{'' if sends else f'; {step} is due'} at {wait.until:%Y-%m-%d %H:%M:%S} UTC",
            detail=f"steps taken now: {', '.join(taken.step for taken in run.steps) or 'none'}",
            hint=f"run it again then, or {retry if sends else 'end it at once with --now'}",
        )
    return run


def _stopped(outside: Outside, season: Season, why: str) -> FinaleError:
    """Return why a step stopped in the middle: a person has said so since it began."""
    from jobs.seasons import runner

    season = find(outside, season.board.name, season.id)
    if season.hold is not None:
        error: FinaleError = runner.held(season)
    elif (paused := pausing.find(outside.database)) is not None:
        error = pausing.error(paused)
    else:
        error = NotDueError(f"{season.name} was stopped, and may go on by now", hint="run it again")
    error.detail = why if not error.detail else f"{error.detail}; {why}"
    return error


def _may_be_cut_short(season: Season, now: datetime) -> bool:
    """Return whether there is a rest of the season to cut off. Raises WrongStateError for one that has not begun."""
    if reached(season.state, State.FROZEN) or season.frozen_at is not None or now >= season.closes_at:
        return False
    if now <= season.bounds.starts_at:
        raise WrongStateError(
            f"{season.name} cannot be closed early: it begins at {season.bounds.starts_at:%Y-%m-%d %H:%M:%S} UTC",
            hint=f"a season that shall not take place: finale season cancel {season.board.name} {season.id}",
        )
    return True


def clean(
    outside: Outside, season: Season, *, who: str, observer: Observer, early: bool = False, because: str = ""
) -> Run:
    """Forget the live key of a delivered season, if its retention has passed or ``early`` ends that now.

    Raises WrongStateError before delivery, NotDueError while the key is kept, and what ``runner.run`` raises.
    """
    from jobs.seasons import runner

    _check_delivered(season)

    def forget_retention(fresh: Season) -> None:
        levers.forget_retention(outside.database, fresh, who=who, because=because)

    first = forget_retention if early and season.hold is None and season.state is State.DELIVERED else None
    run = runner.run(outside, season, who=who, observer=observer, until=Step.CLEAN, first=first)
    if run.waits is not None:
        _, wait = run.waits
        raise NotDueError(
            f"{season.name}: {wait.why}",
            hint="run it again then, or clean it at once with --now" if wait.until else "",
        )
    return run


def _check_delivered(season: Season) -> None:
    if not reached(season.state, State.DELIVERED):
        raise WrongStateError(
            f"{season.name} is {season.state}; only a season that was sealed, rewarded and delivered is cleaned",
            hint=f"first: finale close {season.board.name} {season.id}",
        )


def plan_close(outside: Outside, season: Season, *, who: str, until: Step, early: bool) -> list[dict[str, Any]]:
    """Return what ``close`` would decide, and raise what it would refuse, without changing anything."""
    if early and season.hold is None and _may_be_cut_short(season, now := outside.database.now()):
        ends_at = min(now, season.bounds.ends_at)
        season = replace(season, bounds=replace(season.bounds, ends_at=ends_at), closes_at=now)
    return _planned(outside, season, who, until, early)


def plan_clean(outside: Outside, season: Season, *, who: str, early: bool) -> list[dict[str, Any]]:
    """Return what ``clean`` would decide, and raise what it would refuse, without changing anything."""
    _check_delivered(season)
    if early and season.state is State.DELIVERED:
        season = replace(season, keep_until=outside.database.now())
    return _planned(outside, season, who, Step.CLEAN, False)


def plan_take_on(until: Step) -> list[dict[str, Any]]:
    """Return what ``close`` would decide about a season that it would take on."""
    return _followed(Step.OPEN, Act("take the season on, which the ledger does not have yet"), until)


def _planned(outside: Outside, season: Season, who: str, until: Step, forced: bool) -> list[dict[str, Any]]:
    from jobs.seasons import runner

    if season.hold is not None:
        return [{"step": str(step_from(season.state)), "verdict": "held", "why": season.hold.reason}]
    planned = runner.look_and_plan(outside, season, who=who, forced=forced)
    if planned is None or list(Step).index(planned[0]) > list(Step).index(until):
        return []
    return _followed(*planned, until)


def _followed(step: Step, verdict: Verdict, until: Step) -> list[dict[str, Any]]:
    """Return the verdict on the next step, and the steps that would follow it; plain JSON values."""
    found: dict[str, Any] = {"step": str(step), "verdict": type(verdict).__name__.lower()}
    match verdict:
        case Act(why):
            found["why"] = why
        case Wait(at, why):
            found |= {"why": why, "until": as_text(at) if at else None}
        case Held(reason, detail, hint):
            found |= {"verdict": "hold", "why": reason, "detail": detail, "hint": hint}
    following = [
        {"step": str(later), "verdict": "follows", "why": "decided when it is reached"}
        for later in STARTS
        if list(Step).index(step) < list(Step).index(later) <= list(Step).index(until)
    ]
    return [found, *following] if isinstance(verdict, Act) else [found]


def goes_on_by_hand(season: Season) -> str:
    """Return the command that takes the season's next step, if nothing but a person does, and why; else nothing."""
    if not season.timing.by_hand:
        return ""
    name = f"{season.board.name} {season.id}"
    if not season.adopted:
        return f"finale close {name} (a backfill)"
    if reached(season.state, State.DELIVERED):
        return f"finale clean {name} --now (an adopted key)"
    return f"finale close {name} (an adopted key)"


def next_step(season: Season) -> Mapping[str, Any]:
    """Return what happens next to a season, and when; plain JSON values."""
    step = season.timing.step
    if season.hold is not None:
        return {"step": str(step), "when": "after the hold is released", "at": None}
    if step is None:
        return {"step": None, "when": "nothing more", "at": None}
    at = season.timing.waits_until
    when = f"at {at:%Y-%m-%d %H:%M:%S} UTC" if at else "at the next run"
    if by_hand := goes_on_by_hand(season):
        at, when = None, f"by hand: {by_hand}"
    return {"step": str(step), "when": when, "at": as_text(at) if at else None}


def check_holdable(season: Season) -> None:
    """Raise WrongStateError for a season to which nothing more is done."""
    if step_from(season.state) is None:
        raise WrongStateError(
            f"{season.name} is {season.state}; nothing is done to it any more, so nothing is held",
            hint=f"what was paid is put right with: finale rewards correct {season.board.name} {season.id}; "
            "what is still being sent stops with: finale pause"
            if season.state is State.CLEANED
            else "",
        )
