"""Where a reward table takes outside facts about players from: a file, a table, or the user's own SQL."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from leaderboard.fields import Strict
from rewards.rule import readable

_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?")

KINDS = ("file", "table", "sql")


class Source(Strict):
    """Exactly one of a CSV ``file`` (its path from the reward table), a ``table`` or view, or a ``sql`` query.

    A query is given the season as bound parameters: ``%(board)s``, ``%(season)s``, ``%(starts_at)s``, ``%(ends_at)s``.
    """

    file: str | None = Field(default=None, min_length=1)
    table: str | None = None
    sql: str | None = Field(default=None, min_length=1)

    @field_validator("table")
    @classmethod
    def _named(cls, value: str | None) -> str | None:
        if value is not None and not _TABLE.fullmatch(value):
            raise ValueError("names no table; write it like schema.table")
        return value

    @property
    def given(self) -> list[str]:
        """Which of the kinds are given."""
        return [kind for kind in KINDS if getattr(self, kind) is not None]

    @property
    def told(self) -> str:
        """The source in a few words."""
        if self.sql is not None:
            return "sql"
        return f"file {self.file}" if self.file is not None else f"table {self.table}"

    def definition(self) -> dict[str, Any]:
        """Return the source as plain JSON values."""
        return self.model_dump(exclude_none=True)


def _one(source: Source) -> None:
    if len(source.given) != 1:
        raise ValueError(f"needs exactly one of {', '.join(KINDS)}")


class Exclusion(Source):
    """Players who are granted nothing: rows of ``player_id`` and, if there is one, ``reason``."""

    reason: str = "excluded"  #: for rows that give none

    @field_validator("reason")
    @classmethod
    def _readable(cls, value: str) -> str:
        return readable(value)

    @model_validator(mode="after")
    def _one_source(self) -> Exclusion:
        _one(self)
        return self


class Leagues(Source):
    """Which league a player is in: rows of ``player_id`` and ``league``."""

    @model_validator(mode="after")
    def _one_source(self) -> Leagues:
        _one(self)
        return self


class Eligible(Source):
    """Who may be granted anything: all of what is asked for must hold.

    ``min_matches`` counts the results of Finale's own ledger. A source lists the players who may, as ``player_id``.
    """

    min_matches: int | None = Field(default=None, ge=1, le=2**31 - 1)
    min_points: int | float | None = None

    @model_validator(mode="after")
    def _at_most_one_source(self) -> Eligible:
        if len(self.given) > 1:
            raise ValueError(f"can have one of {', '.join(KINDS)}")
        if not self.given and self.min_matches is None and self.min_points is None:
            raise ValueError(f"asks for nothing; write min_matches, min_points, or one of {', '.join(KINDS)}")
        return self


Removed = Literal["close_up", "leave_gap"]
