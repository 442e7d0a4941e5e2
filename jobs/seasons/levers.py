"""Levers as a person pulls them: what each would do and how long that takes, and doing it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from jobs.output import as_text
from jobs.scheduler.upcoming import MOST_AT_ONCE
from jobs.seasons import runner
from jobs.seasons.closing import check_holdable
from jobs.seasons.leasing import leased, withdraw_own_fence
from jobs.steps.seal import sweep_own
from jobs.steps.step import Acting
from jobs.wiring import Outside
from leaderboard import levers as verdicts
from leaderboard.calendar import seasons_from
from leaderboard.levers import Extension
from leaderboard.season import Bounds, Season, unstored
from leaderboard.states import State, Step
from ledger import levers, seals, seasons, totals
from ledger.levers import Following
from live.keyspace import kinds, sizes

Told = dict[str, Any]


def plan_extend(outside: Outside, season: Season, until: datetime) -> Told:
    """Return what extending would come to, and raise what it would refuse, without changing anything."""
    found = levers.following(outside.database, season, until)
    if not found:
        found = [
            (unstored(season.board, bounds, State.SCHEDULED), False) for bounds in _missing(outside, season, until)
        ]
    return _told_extension(season, verdicts.extend(season, until, outside.database.now(), found))


def extend(outside: Outside, season: Season, until: datetime, *, who: str, because: str) -> Told:
    """Let the season last until then; the next one begins later. Raises WrongStateError and ConfigError."""
    plan_extend(outside, season, until)  # what is refused has made no season
    for bounds in _missing(outside, season, until):
        seasons.create(outside.database, season.board, bounds, outside.database.now(), who=who)
    done = levers.extend(outside.database, season, until, _extension(until), who=who, because=because)
    return _told_extension(season, done)


def _extension(until: datetime) -> Callable[[Season, datetime, Following], Extension]:
    def verdict(season: Season, now: datetime, following: Following) -> Extension:
        return verdicts.extend(season, until, now, following)

    return verdict


def _missing(outside: Outside, season: Season, until: datetime) -> list[Bounds]:
    """Return the calendar's seasons that the longer one would reach into and that the ledger does not have yet.

    They must be there to be moved: one that overlaps a stored season is never made.
    """
    calendar = season.board.calendar
    reached = [
        bounds
        for bounds in islice(seasons_from(calendar, season.bounds.ends_at), MOST_AT_ONCE)
        if bounds.starts_at >= season.bounds.ends_at and bounds.starts_at < until
    ]
    known = {one.id for one in seasons.of_board(outside.database, season.board.name)}
    return [bounds for bounds in reached if bounds.id not in known]


def _told_extension(season: Season, done: Extension) -> Told:
    told: Told = {
        "season": season.name,
        "ends_at": as_text(done.bounds.ends_at),
        "ended_at_before": as_text(season.bounds.ends_at),
        "closes_at": as_text(done.closes_at),
        "next_season": None,
    }
    if done.following is not None:
        told["next_season"] = {"season": done.following.id, "starts_at": as_text(done.following.starts_at)}
    return told


def plan_reopen(outside: Outside, season: Season, until: datetime | None, grace: timedelta) -> Told:
    """Return what reopening would come to, and raise what it would refuse, without changing anything."""
    now = outside.database.now()
    found = levers.following(outside.database, season, until) if until else []
    sealing = seals.find(outside.database, season.key, "standings") is not None
    done = verdicts.reopen(season, now, until=until, closes_at=(until or now) + grace, sealing=sealing, following=found)
    return {**_told_extension(season, done), "from": str(season.state), **expected(outside, season, Step.CLOSE)}


def reopen(
    outside: Outside, season: Season, until: datetime | None, grace: timedelta, *, who: str, because: str
) -> Told:
    """Take results again in a season that has ended and is not sealed: its snapshot is thrown away, late results count.

    Raises WrongStateError, LeaseHeldError while a runner works on it, and ConfigError where the scores cannot hold the
    late results.
    """
    plan_reopen(outside, season, until, grace)
    with leased(outside, season, who) as (lease, _):

        def verdict(fresh: Season, now: datetime, sealing: bool, following: Following) -> Extension:
            closes_at = (until or now) + grace
            return verdicts.reopen(fresh, now, until=until, closes_at=closes_at, sealing=sealing, following=following)

        done, late = levers.reopen(outside.database, lease, season, until, verdict, who=who, because=because)
        results = {"installation": {"id": seasons.installation(outside.database)}}
        now = outside.database.now()
        sweep_own(Acting(outside, season, now, who, False, results, lambda *_: None, lease))
    return {**_told_extension(season, done), "from": str(season.state), "late_counted": late}


def plan_cancel(outside: Outside, season: Season) -> Told:
    """Return what cancelling would come to, and raise what it would refuse, without changing anything."""
    verdicts.check_cancellable(season, levers.has_results(outside.database, season))
    span = {"starts_at": as_text(season.bounds.starts_at), "ends_at": as_text(season.bounds.ends_at)}
    return {"season": season.name, **span}


def cancel(outside: Outside, season: Season, *, who: str, because: str) -> Told:
    """Let a season that never opened not take place; what is played in its time counts nowhere on this board."""
    told = plan_cancel(outside, season)
    with leased(outside, season, who) as (lease, _):
        levers.cancel(outside.database, lease, season, who=who, because=because)
        withdraw_own_fence(outside, season, lease)
    return told


def plan_retry(outside: Outside, season: Season) -> Told:
    """Return what a retry would come to, and raise what it would refuse, without changing anything."""
    verdicts.check_retryable(season)
    step = runner.due_step(season)
    return {
        "season": season.name,
        "step": str(step),
        "attempts": season.attempts,
        "last_error": season.last_error,
        "retry_at": as_text(season.retry_at) if season.retry_at else None,
        **expected(outside, season, step),
    }


def retry(outside: Outside, season: Season, *, who: str, because: str) -> Told:
    """Let the next round try the failed step again, however often it has failed."""
    told = plan_retry(outside, season)
    levers.retry(outside.database, season, who=who, because=because)
    return told


def plan_hold(outside: Outside, season: Season) -> Told:
    """Return what a hold would come to. Raises WrongStateError for a season that is held, or to which nothing more is
    done.
    """
    check_holdable(season)
    if season.hold is not None:
        raise seasons.held_already(outside.database, season)
    return {"season": season.name, "state": str(season.state), "step": str(runner.due_step(season))}


def hold(outside: Outside, season: Season, *, who: str, because: str) -> Told:
    """Stop the season until somebody releases it. Raises WrongStateError if it is on hold already."""
    told = plan_hold(outside, season)
    seasons.hold_by_hand(outside.database, season, who=who, because=because)
    return {**told, "because": because, "next": "after the hold is released"}


def told_of_early_end(outside: Outside, season: Season) -> Told:
    """Return what ending the season, or its grace, now comes to: where results until its planned end go, and how long
    its close takes.
    """
    now, end = outside.database.now(), as_text(season.bounds.ends_at)
    told: Told = {"season": season.name, **expected(outside, season, runner.due_step(season))}
    if now >= season.bounds.ends_at:
        return {**told, "results": f"the grace ends now: results played before {end} that come from now on are late"}
    return {
        **told,
        "results": "the season ends now, and no grace follows: results played until now that come later are late; "
        f"results played from now until {end} count in no season of {season.board.name}: an import keeps them as late, "
        "and they count if the season is reopened until then, before its seal; the next season begins when it was to "
        "begin",
    }


def expected(outside: Outside, season: Season, step: Step | None) -> Told:
    """Return how long the steps from ``step`` until the delivery will take, by what earlier ones took."""
    order = list(Step)
    steps = order[order.index(step) : order.index(Step.CLEAN)] if step else []
    past = levers.past(outside.database, season.board.name)
    seconds = verdicts.expected_seconds(past, [str(one) for one in steps], _rows(outside, season))
    return {"expected_seconds": None if seconds is None else round(seconds, 1)}


def _rows(outside: Outside, season: Season) -> int | None:
    if season.board.ledger == "own":
        return totals.summed(outside.database, season.key).players
    types = kinds(outside.redis, season.standing_keys)
    there = [key for key, kind in types.items() if kind == "zset"]
    return sum(sizes(outside.redis, there).values()) if there else None
