"""Whether a lever may be pulled, and what it comes to: pure verdicts, the same in a dry run and for real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from leaderboard.codec import codec_for
from leaderboard.errors import WrongStateError
from leaderboard.season import Bounds, Season
from leaderboard.states import State, may_follow, reached


@dataclass(frozen=True, slots=True)
class Extension:
    """The new bounds of a season, and of the one after it if that begins later for it."""

    bounds: Bounds
    closes_at: datetime
    following: Bounds | None = None


def extend(season: Season, until: datetime, now: datetime, following: Sequence[tuple[Season, bool]] = ()) -> Extension:
    """Return what extending ``season`` to ``until`` comes to; its grace stays as long as it was.

    ``following`` are the seasons that would overlap, in order, each with whether it has results. Raises WrongStateError
    once the season's cutoff has passed, or the next one has begun or has results; ConfigError if the scores' time does
    not reach that far.
    """
    if season.adopted or season.state not in (State.SCHEDULED, State.OPEN) or now >= season.bounds.ends_at:
        why = "adopted" if season.adopted else f"{season.state}"
        raise WrongStateError(
            f"{season.name} cannot be extended: it is {why}, and its cutoff was {_utc(season.bounds.ends_at)}"
            if now >= season.bounds.ends_at
            else f"{season.name} cannot be extended: it is {why}",
            hint=f"before its seal it can be reopened: finale season reopen {season.board.name} {season.id}",
        )
    if until <= season.bounds.ends_at:
        raise WrongStateError(
            f"{season.name} ends at {_utc(season.bounds.ends_at)} anyway, which is not before {_utc(until)}",
            hint="to end it earlier: finale close --now, at that time",
        )
    return _lengthened(season, until, following)


def _lengthened(season: Season, until: datetime, following: Sequence[tuple[Season, bool]]) -> Extension:
    bounds = Bounds(season.bounds.starts_at, until, season.id)
    codec_for(season.board, bounds)
    grace = season.closes_at - season.bounds.ends_at
    if not following:
        return Extension(bounds, until + grace)
    (after, has_results), *more = following
    if has_results or after.state is not State.SCHEDULED:
        raise WrongStateError(
            f"{season.name} cannot last until {_utc(until)}: {after.name} has "
            f"{'results already' if has_results else 'begun'}",
            detail=f"{after.name} starts at {_utc(after.bounds.starts_at)}",
            hint=f"let it last until {_utc(after.bounds.starts_at)} at most",
        )
    if more or until >= after.bounds.ends_at:
        raise WrongStateError(
            f"{season.name} cannot last until {_utc(until)}: nothing would be left of {after.name}",
            detail=f"{after.name} ends at {_utc(after.bounds.ends_at)}",
            hint=_out_of_the_way(after),
        )
    return Extension(bounds, until + grace, Bounds(until, after.bounds.ends_at, after.id))


def _out_of_the_way(after: Season) -> str:
    by_hand = f"finale season cancel {after.board.name} {after.id}"
    if after.key:
        return f"first: {by_hand}"
    return (
        f"let it end before {_utc(after.bounds.ends_at)}; or, as {after.name} is not in the ledger yet: "
        f"give the board a larger ahead, then finale tick, then {by_hand}"
    )


def reopen(
    season: Season,
    now: datetime,
    *,
    until: datetime | None,
    closes_at: datetime,
    sealing: bool,
    following: Sequence[tuple[Season, bool]] = (),
) -> Extension:
    """Return the bounds of a season that is reopened: results count again until ``closes_at``.

    ``until`` ends it later than it ended; else only its grace begins anew. ``sealing``: its seal is committed, put or
    not. Raises WrongStateError after the seal, for an adopted key, for one that the freeze has renamed, and as
    ``extend``.
    """
    where = f"see: finale season show {season.board.name} {season.id}"
    if season.adopted or not may_follow(season.state, State.OPEN) or season.state is State.SCHEDULED or sealing:
        why = (
            "its key was adopted" if season.adopted else "its seal is committed" if sealing else f"it is {season.state}"
        )
        raise WrongStateError(
            f"{season.name} cannot be reopened: {why}",
            detail="only a season that has ended and is not sealed yet takes results again",
            hint=where,
        )
    if season.renames and (season.frozen_at is not None or reached(season.state, State.FROZEN)):
        raise WrongStateError(
            f"{season.name} cannot be reopened: its live key has been given its private name",
            detail='freeze = "rename" is not undone, since others may have written to the old name since',
            hint=where,
        )
    if closes_at <= now or (until is not None and until <= now):
        raise WrongStateError(
            f"{season.name} would be closed again at once: {_utc(closes_at)} has passed",
            hint="give a later --until, or a longer --grace",
        )
    if until is None:
        return Extension(season.bounds, closes_at)
    lengthened = _lengthened(season, until, following)
    return Extension(lengthened.bounds, closes_at, lengthened.following)


def check_again(season: Season, *, sealing: bool) -> None:
    """Raise WrongStateError where the snapshot can be taken no more: its seal is committed, put or not."""
    if sealing or reached(season.state, State.SEALED):
        raise not_again(season, sealing=sealing)


def not_again(season: Season, *, sealing: bool) -> WrongStateError:
    """Return the error of a snapshot that is not taken again."""
    name = f"{season.board.name} {season.id}"
    why = f"it is {season.state}" if reached(season.state, State.SEALED) or not sealing else "its seal is committed"
    return WrongStateError(
        f"{season.name} takes no snapshot again: {why}",
        detail="the seal is in the store, or may still get there, and a sealed archive never changes",
        hint=f"release it without --again; who shall not be paid is excluded by the reward table, or, once it is "
        f"delivered: finale rewards correct {name} --exclude PLAYER",
    )


def check_cancellable(season: Season, has_results: bool) -> None:
    """Raise WrongStateError unless the season was never opened and nothing was played in it."""
    if season.state is not State.SCHEDULED or has_results:
        why = "has results already" if has_results and season.state is State.SCHEDULED else f"is {season.state}"
        raise WrongStateError(
            f"{season.name} {why}; only a season that never opened is cancelled",
            hint=f"to end it now: finale close {season.board.name} {season.id} --now",
        )


def check_retryable(season: Season) -> None:
    """Raise WrongStateError unless a step of the season has failed and waits to be tried again."""
    name = f"{season.board.name} {season.id}"
    if season.hold is not None:
        raise WrongStateError(
            f"{season.name} is on hold: {season.hold.reason}", hint=f"let it go on with: finale season release {name}"
        )
    if not season.attempts and season.retry_at is None:
        raise WrongStateError(f"no step of {season.name} has failed", hint=f"see: finale season show {name}")


@dataclass(frozen=True, slots=True)
class Past:
    """How long a step of an earlier season took, and over how many rows; None: not known."""

    step: str
    seconds: float
    rows: int | None


def expected_seconds(past: Sequence[Past], steps: Sequence[str], rows: int | None) -> float | None:
    """Return how long ``steps`` over ``rows`` will take, by the median of earlier times; None if there are none.

    A season of more rows takes as much longer as it has more; one of fewer is not thought faster than the fastest.
    """
    total, known = 0.0, False
    for step in steps:
        times = [one.seconds * _growth(one.rows, rows) for one in past if one.step == step]
        if times:
            total, known = total + median(times), True
    return total if known else None


def _growth(before: int | None, now: int | None) -> float:
    return max(1.0, now / before) if before and now else 1.0


def _utc(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC"
