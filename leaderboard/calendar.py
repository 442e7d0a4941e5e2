"""Which season an instant belongs to, and which ones follow: a calendar's seasons with their UTC bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache

from leaderboard.calendar_rule import Calendar
from leaderboard.periods import Period
from leaderboard.season import Bounds
from leaderboard.states import State
from leaderboard.walltime import shown, to_utc


def season_at(calendar: Calendar, instant: datetime) -> Bounds | None:
    """Return the season that contains the aware ``instant``, None in an off-season; raise ValueError if it is naive."""
    season = next(seasons_from(calendar, instant), None)
    return season if season is not None and instant in season else None


def season_called(calendar: Calendar, season: str) -> Bounds | None:
    """Return the season that has the id ``season``; None if the calendar has none."""
    period = calendar.period
    if period is None:
        return next((bounds for bounds in _listed(calendar) if bounds.id == season), None)
    number = period.find(season)
    if number is None or season in calendar.skip:
        return None
    try:
        starts_at, ends_at = _start(calendar, period, number), _start(calendar, period, number + 1)
    except OverflowError:
        return None
    return Bounds(starts_at, ends_at, season) if starts_at < ends_at else None


def seasons_from(calendar: Calendar, instant: datetime) -> Iterator[Bounds]:
    """Return the seasons in order, from the one that contains the aware ``instant``, or else the next one.

    A list ends with its last season; a period goes on as far as Python's dates, and gives no season that reaches out of
    the years 1 to 9999. Raises ValueError for a naive instant.
    """
    if instant.utcoffset() is None:
        raise ValueError(f"{instant.isoformat()} has no UTC offset")
    period = calendar.period
    if period is None:
        return (season for season in _listed(calendar) if season.ends_at > instant)
    return _repeating(calendar, period, instant)


@lru_cache(maxsize=128)
def _listed(calendar: Calendar) -> tuple[Bounds, ...]:
    return tuple(Bounds(starts_at, ends_at, season_id) for starts_at, ends_at, season_id in calendar.listed())


def _repeating(calendar: Calendar, period: Period, instant: datetime) -> Iterator[Bounds]:
    try:
        number = _number_at(calendar, period, instant)
        starts_at = _start(calendar, period, number)
        while True:
            ends_at = _start(calendar, period, number + 1)
            season = period.id(number)
            # Where a zone jumped over a whole date (Apia, 2011-12-30), that day has no instant and is no season.
            if starts_at < ends_at and season not in calendar.skip:
                yield Bounds(starts_at, ends_at, season)
            number, starts_at = number + 1, ends_at
    except OverflowError:
        return


def _number_at(calendar: Calendar, period: Period, instant: datetime) -> int:
    """Return the last repetition that has started at ``instant``: guessed from the wall, which folds can set back."""
    at = timedelta(hours=calendar.at.hour, minutes=calendar.at.minute, seconds=calendar.at.second)
    number = period.number((shown(instant, calendar.zone) - at).date())
    while _start(calendar, period, number) > instant:
        number -= 1
    while _start(calendar, period, number + 1) <= instant:
        number += 1
    return number


def _start(calendar: Calendar, period: Period, number: int) -> datetime:
    return to_utc(datetime.combine(period.first_day(number), calendar.at), calendar.zone)


def fitted(bounds: Bounds, before: Bounds | None, stored: Sequence[tuple[Bounds, State]]) -> Bounds | None:
    """Return a new season of the calendar with its bounds fitted to the stored ones, which stand; None if nothing fits.

    ``before`` is the calendar's season just before it. Zone data may have changed since the stored seasons were made,
    so that the calendar disagrees with them by an hour: where one season would follow the other without a gap, it still
    does, and nothing overlaps. A season that has begun may have been ended early, so what follows it is not drawn back.
    """
    starts_at, ends_at = bounds.starts_at, bounds.ends_at
    for other, state in stored:
        follows = before is not None and before.id == other.id and before.ends_at == bounds.starts_at
        if follows and state is State.SCHEDULED:
            starts_at = other.ends_at
        elif other.starts_at <= bounds.starts_at < other.ends_at:
            starts_at = max(starts_at, other.ends_at)
        elif bounds.starts_at < other.starts_at < bounds.ends_at:
            ends_at = min(ends_at, other.starts_at)
    return Bounds(starts_at, ends_at, bounds.id) if starts_at < ends_at else None


def differences(calendar: Calendar, stored: Iterable[Bounds]) -> list[tuple[Bounds, Bounds | None]]:
    """Return the stored seasons whose bounds are not what the calendar says today, each with what it says."""
    said = ((bounds, season_called(calendar, bounds.id)) for bounds in stored)
    return [(bounds, other) for bounds, other in said if bounds != other]
