"""What the fields of a configuration are made of: strict tables, durations, instants, names."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from leaderboard.durations import format_duration, parse_duration
from leaderboard.errors import ConfigError
from leaderboard.names import check_name


def _duration(value: Any) -> Any:
    if isinstance(value, int | float):
        raise ValueError(f"{value!r} has no unit; write a duration like 15m, 36h, 7d or 1h30m")
    return parse_duration(value) if isinstance(value, str) else value


def _within_a_century(value: timedelta) -> timedelta:
    if not timedelta(0) <= value <= timedelta(days=36_525):
        raise ValueError("a duration is 0s to 36525d long")
    return value


def _no_number(value: Any) -> Any:
    if isinstance(value, int | float):
        raise ValueError(f"{value!r} is no date; write one like 2026-12-04T18:00:00")
    return value


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration, json_schema_input_type=str),
    PlainSerializer(format_duration, return_type=str),
    AfterValidator(_within_a_century),
]
Instant = Annotated[datetime, BeforeValidator(_no_number, json_schema_input_type=datetime)]
Attribute = str | int | float | bool


class Strict(BaseModel):
    """Frozen, and an unknown field is an error rather than silence."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def named(value: str, what: str) -> str:
    """Return ``value`` if it is a name; raise ValueError, which pydantic reports with its place, otherwise."""
    try:
        return check_name(value, what)
    except ConfigError as error:
        raise ValueError(str(error)) from None
