"""A board as its owner defines it, validated and frozen."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, field_validator, model_validator

from leaderboard import keys
from leaderboard.errors import ConfigError
from leaderboard.fields import Duration, Instant, Strict
from leaderboard.names import check_name
from leaderboard.periods import Period, Weekday, parse_every, repeated
from leaderboard.walltime import check_zone, to_utc

Attribute = str | int | float | bool
Unit = Literal["millisecond", "second", "minute", "hour", "day"]

UNIT_MICROSECONDS: dict[Unit, int] = {
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
}


class Ties(Strict):
    """Who stands first among equal points.

    ``first_to_reach``: whoever held the points first, at the resolution of ``unit``; the time is packed into the score,
    below ``multiplier``. ``shared``: equal points share a rank. ``member``: the order of the ids' bytes, a rank each.
    """

    by: Literal["first_to_reach", "shared", "member"] = "first_to_reach"
    unit: Unit = "second"
    multiplier: int = Field(default=2**24, ge=2, le=2**52)


class ExplicitSeason(Strict):
    """One season of a listed calendar. Local times are read in the calendar's time zone."""

    id: str
    starts_at: Instant
    ends_at: Instant

    @field_validator("id")
    @classmethod
    def _name(cls, value: str) -> str:
        return _named(value, "season")


class Calendar(Strict):
    """When seasons begin and end: a period repeated for ever, or a list.

    ``every`` is ``day``, ``week``, ``month``, ``quarter`` or ``year``, or several of one: ``3 weeks``, counted both
    ways from ``anchor``, a local date on which a season starts. ``at`` is the local wall time of the change. Weeks
    start on ``starts_on``: if it is left out, on the anchor's weekday, or on Monday. Seasons named in ``skip`` do not
    take place.
    """

    every: str | None = None
    seasons: tuple[ExplicitSeason, ...] = ()
    timezone: str = "UTC"
    at: time = time(0)
    starts_on: Weekday | None = None
    anchor: date | None = None
    skip: tuple[str, ...] = ()

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
        return ZoneInfo(self.timezone)

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


def _named(value: str, what: str) -> str:
    """Return ``value`` if it is a name; raise ValueError, which pydantic reports with its place, otherwise."""
    try:
        return check_name(value, what)
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _ties(value: Any) -> Any:
    return {"by": value} if isinstance(value, str) else value


class Board(Strict):
    """A leaderboard: which results it counts, how it orders them, when its seasons end, what happens then."""

    name: str
    source: str = ""
    where: dict[str, Attribute] = Field(default_factory=dict)
    key: str = "leaderboard:<board>:<season>"
    current_key: str | None = None
    order: Literal["high", "low"] = "high"
    aggregate: Literal["sum", "best", "last"] = "sum"
    ties: Annotated[Ties, BeforeValidator(_ties, json_schema_input_type=str | Ties)] = Ties()
    member: Literal["text", "binary"] = "text"
    points: Literal["integer", "fraction"] = "integer"
    ledger: Literal["own", "none"] = "own"
    freeze: Literal["watch", "rename"] = "watch"
    calendar: Calendar
    grace: Duration = timedelta(minutes=15)
    keep_live: Duration = timedelta(days=7)
    cleanup: Literal["unlink", "expire"] = "unlink"
    rewards: str | None = None
    ahead: int = Field(default=2, ge=0, le=100)

    @model_validator(mode="before")
    @classmethod
    def _source_defaults_to_name(cls, data: Any) -> Any:
        if isinstance(data, dict) and not data.get("source"):
            return {**data, "source": data.get("name", "")}
        return data

    @model_validator(mode="before")
    @classmethod
    def _a_shared_key_has_no_grace(cls, data: Any) -> Any:
        """Without a word about grace: whoever shares one key among seasons freezes it at the cutoff."""
        if isinstance(data, dict) and "grace" not in data and data.get("freeze") == "rename":
            key = data.get("key", cls.model_fields["key"].default)
            if isinstance(key, str) and keys.is_shared(key):
                return {**data, "grace": timedelta(0)}
        return data

    @model_validator(mode="after")
    def _holds_together(self) -> Board:
        _named(self.name, "board")
        _named(self.source, "source")
        try:
            keys.check_template(self.key, shared=self.freeze == "rename")
            if self.current_key is not None:
                keys.check_current_key(self.current_key, self.key)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        self._check_shared_key()
        if self.points == "fraction" and self.ties.by == "first_to_reach":
            raise ValueError(
                'points = "fraction" leaves no room for a time in the score; use ties = "shared" or "member"'
            )
        if self.points == "fraction" and self.ledger == "own":
            raise ValueError('Finale\'s own ledger counts whole points; points = "fraction" needs ledger = "none"')
        return self

    def _check_shared_key(self) -> None:
        if not self.shares_key:
            return
        if self.ledger == "own":
            raise ValueError(
                f"key = {self.key!r} is the same for every season, so totals of two seasons would meet in it; it needs "
                'ledger = "none", or <season> in the key'
            )
        if self.grace:
            raise ValueError(
                f"key = {self.key!r} is the same for every season, so it is frozen at the cutoff: grace must be 0s"
            )

    @property
    def shares_key(self) -> bool:
        """Whether all seasons are played under one key."""
        return keys.is_shared(self.key)

    @property
    def packed(self) -> bool:
        """Whether the time of reaching is packed into the score."""
        return self.ties.by == "first_to_reach"

    @property
    def descending(self) -> bool:
        """Whether the first position has the highest score."""
        return self.order == "high"

    def definition(self) -> dict[str, Any]:
        """Return the board as plain JSON values, as a season stores it and a seal shows it."""
        return self.model_dump(mode="json", exclude_defaults=False)

    def with_fixed_of(self, opened: Board) -> Board:
        """Return this board, but with everything that ``opened`` fixed when its season opened.

        Codec, ties, order, aggregate, key, freeze, member, points, source, filter and ledger stay, as do the stored
        bounds with their grace; the rest (keep_live, cleanup, rewards, current_key) follows the configuration until it
        closes.
        """
        return self.model_copy(update={name: getattr(opened, name) for name in FIXED_AT_OPEN})


FIXED_AT_OPEN = ("source", "where", "key", "order", "aggregate", "ties", "member", "points", "ledger", "freeze")
