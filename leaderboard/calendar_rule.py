"""When a board's seasons begin and end, as its owner writes it: a period repeated for ever, or a list."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, time
from itertools import pairwise
from zoneinfo import ZoneInfo

from pydantic import field_validator, model_validator

from leaderboard.fields import Instant, Strict, named
from leaderboard.periods import Period, Weekday, parse_every, repeated
from leaderboard.walltime import check_zone, to_utc, zone_called


class ExplicitSeason(Strict):
    """One season of a listed calendar. Local times are read in the calendar's time zone."""

    id: str
    starts_at: Instant
    ends_at: Instant

    @field_validator("id")
    @classmethod
    def _name(cls, value: str) -> str:
        return named(value, "season")


class Calendar(Strict):
    """When seasons begin and end: a period repeated for ever, or a list.

    ``every`` is ``day``, ``week``, ``month``, ``quarter`` or ``year``, or several of one: ``3 weeks``, counted both
    ways from ``anchor``, a local date on which a season starts. ``at`` is the local wall time of the change. Weeks
    start on ``starts_on``: if it is left out, on the anchor's weekday, or on Monday. Seasons named in ``skip`` do not
    take place. With ``opens = false`` it only says which season is which, for keys that are adopted: none is opened.
    """

    every: str | None = None
    seasons: tuple[ExplicitSeason, ...] = ()
    timezone: str = "UTC"
    at: time = time(0)
    starts_on: Weekday | None = None
    anchor: date | None = None
    skip: tuple[str, ...] = ()
    opens: bool = True

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        return check_zone(value)

    @field_validator("every")
    @classmethod
    def _known_period(cls, value: str | None) -> str | None:
        if value is not None:
            parse_every(value)
        return value

    @field_validator("at")
    @classmethod
    def _wall_time(cls, value: time) -> time:
        if value.tzinfo is not None:
            raise ValueError(f"{value} has an offset; write the local wall time, and the zone as timezone")
        return value

    @model_validator(mode="after")
    def _one_kind(self) -> Calendar:
        if (self.every is None) == (not self.seasons):
            raise ValueError("a calendar has either every or seasons, and not both")
        if self.period is None:
            self._check_list()
        else:
            self._check_skip(self.period)
        return self

    def _check_list(self) -> None:
        for name in ("at", "starts_on", "anchor", "skip"):
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} belongs to every, not to a list of seasons")
        listed = self.listed()
        for starts_at, ends_at, season in listed:
            if starts_at >= ends_at:
                raise ValueError(f"season {_shown(starts_at, ends_at, season)} does not end after its start")
        for before, after in pairwise(listed):
            if after[0] < before[1]:
                raise ValueError(f"the seasons {_shown(*before)} and {_shown(*after)} overlap")
        for season, count in Counter(season for _, _, season in listed).items():
            if count > 1:
                raise ValueError(f"{count} seasons have the id {season!r}")

    def _check_skip(self, period: Period) -> None:
        for season in self.skip:
            if period.find(season) is None:
                raise ValueError(f"skip names {season!r}, which no season of every = {self.every!r} is called")

    @property
    def zone(self) -> ZoneInfo:
        return zone_called(self.timezone)

    @property
    def period(self) -> Period | None:
        """The repeated period; None for a list."""
        return None if self.every is None else repeated(self.every, self.anchor, self.starts_on)

    def listed(self) -> list[tuple[datetime, datetime, str]]:
        """Return the listed seasons in order, each as UTC start, UTC end and id."""
        return sorted((self._utc(each.starts_at), self._utc(each.ends_at), each.id) for each in self.seasons)

    def _utc(self, instant: datetime) -> datetime:
        try:
            return to_utc(instant, self.zone) if instant.utcoffset() is None else instant.astimezone(UTC)
        except OverflowError:
            raise ValueError(f"{instant.isoformat()} is outside the years 1 to 9999 in UTC") from None


def _shown(starts_at: datetime, ends_at: datetime, season: str) -> str:
    return f"{season} [{starts_at.isoformat()}, {ends_at.isoformat()})"
