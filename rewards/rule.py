"""One rule of a reward table: which places it takes, and what each player there is granted."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from leaderboard.fields import Strict

LIMIT = 2**53 - 1  #: most of an item in one grant, and the last rank that can be named: what JSON readers hold exactly
_RANGE = re.compile(r"([1-9]\d{0,15})(?:(-)([1-9]\d{0,15})?)?", re.ASCII)
_PERCENT = r"(\d{1,3}(?:\.\d{1,15})?)"
_PERCENTILE = re.compile(rf"{_PERCENT}(?:-{_PERCENT})?", re.ASCII)
_ITEM = re.compile(r"[a-z][a-z0-9_.-]{0,62}")
_LEAGUE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")

EVERY_LEAGUE = "*"


def _places(value: Any) -> Any:
    match = _RANGE.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise ValueError('must be text like "1", "2-10" or "11-"')
    if int(match[1]) > LIMIT or int(match[3] or 0) > LIMIT:
        raise ValueError("no board has that many players; 2^53 - 1 is the last rank")
    if match[3] and int(match[3]) < int(match[1]):
        raise ValueError("ends before it starts; write the better rank first")
    return value


def _percentile(value: Any) -> Any:
    if type(value) is int:
        value = str(value)
    if isinstance(value, float):
        raise ValueError(f'{value!r} may not be what was written; write it as text: "{value}"')
    match = _PERCENTILE.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise ValueError('must be text like "1", "0.29" or "10-25", with at most 15 decimals')
    low, high = (Decimal(match[1]), Decimal(match[2])) if match[2] else (Decimal(0), Decimal(match[1]))
    if not 0 <= low < high <= 100:
        raise ValueError("a percentile is more than 0 and at most 100; of two, write the better one first")
    return value


def _number(value: Any) -> Any:
    if type(value) not in (int, float) or abs(value) > LIMIT:
        raise ValueError("must be a number of points, at most 2^53 - 1")
    return value


def fault_of_item(item: str, amount: Any) -> str:
    """Return what is wrong with an item or its amount, nothing if all is well."""
    if isinstance(amount, dict):
        return f'{item} is a table; put an item with a dot in its name in quotes: "{item}.{next(iter(amount), "")}"'
    if not _ITEM.fullmatch(item):
        return f"{item!r} cannot name an item; use a lower-case letter, then up to 62 of a-z, 0-9, _, . and -"
    if type(amount) is not int or not 1 <= amount <= LIMIT:
        return f"{item} = {amount!r}; an amount is a whole number from 1 to 2^53 - 1"
    return ""


def _amounts(value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError("must be a table of items and amounts, like { gems = 100 }")
    if faults := [fault for item, amount in value.items() if (fault := fault_of_item(str(item), amount))]:
        raise ValueError("; ".join(faults))
    return value


def readable(value: str) -> str:
    """Return ``value`` if it may name a rule or give a reason; raise ValueError otherwise."""
    if not value.strip() or value != value.strip() or not value.isprintable():
        raise ValueError("must be printable text, not empty, without spaces around it")
    return value


Places = Annotated[str, BeforeValidator(_places)]
Percentile = Annotated[str, BeforeValidator(_percentile)]
Points = Annotated[int | float, BeforeValidator(_number)]
Amounts = Annotated[dict[str, int], BeforeValidator(_amounts)]


class Rule(Strict):
    """A name, a condition, and what each player who meets it is granted.

    ``rank`` is judged as the table's ``ties`` say, ``position`` always by position. ``percentile`` is of the players
    who have a place. Points are those of the board. ``previous`` is a range of ranks in the board's previous season.
    With ``league`` (``"*"``: each of them) places count among the players of that league alone.
    """

    name: str = Field(max_length=100)
    rank: Places | None = None
    position: Places | None = None
    percentile: Percentile | None = None
    everyone: Literal[True] | None = Field(default=None, alias="all")
    at_least: Points | None = None
    at_most: Points | None = None
    previous: Places | None = None
    league: str | None = None
    grant: Amounts = Field(min_length=1)

    @field_validator("name")
    @classmethod
    def _readable(cls, value: str) -> str:
        return readable(value)

    @field_validator("league")
    @classmethod
    def _known_league(cls, value: str | None) -> str | None:
        if value is not None and value != EVERY_LEAGUE and not _LEAGUE.fullmatch(value):
            raise ValueError('names no league; use up to 63 of a-z, 0-9, _, . and -, or "*" for each of them')
        return value

    @model_validator(mode="after")
    def _one_condition(self) -> Rule:
        places = [one for one in (self.rank, self.position, self.percentile, self.everyone) if one is not None]
        if len(places) > 1 or (not places and self.at_least is None and self.at_most is None):
            raise ValueError(
                'needs exactly one of rank = "…", position = "…", percentile = "…" and all = true, '
                "or points: at_least, at_most"
            )
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError("at_least is more than at_most, so nobody can have such points")
        return self

    def definition(self) -> dict[str, Any]:
        """Return the rule as plain JSON values; the grant is a list, since the order of items matters."""
        conditions = self.model_dump(by_alias=True, exclude_none=True, exclude={"name", "grant"})
        grant = [{"item": item, "amount": amount} for item, amount in self.grant.items()]
        return {"name": self.name, **conditions, "grant": grant}

    @property
    def condition(self) -> str:
        """What the rule asks for, as a person reads it."""
        said = []
        if self.everyone:
            said.append("all")
        said += [
            f"{name.replace('_', ' ')} {value}{'%' if name == 'percentile' else ''}"
            for name in ("rank", "position", "percentile", "at_least", "at_most", "previous", "league")
            if (value := getattr(self, name)) is not None
        ]
        return ", ".join(said)


def span(places: str) -> tuple[int, int | None]:
    """Return the first and the last place of ``"2-10"``, both inclusive; the last is None for ``"11-"``."""
    start, dash, end = places.partition("-")
    return int(start), int(end) if end else (None if dash else int(start))


def percent(percentile: str) -> tuple[Fraction, Fraction]:
    """Return the bounds of ``"10-25"``, or of ``"1"``, which begins at 0: beyond the first, up to the second."""
    low, dash, high = percentile.partition("-")
    return (Fraction(low), Fraction(high)) if dash else (Fraction(0), Fraction(low))


def line_of(percentage: Fraction, players: int) -> int:
    """Return the last position k of ``players`` with k * 100 <= percentage * players, exactly; 0 if there is none."""
    return percentage.numerator * players // (percentage.denominator * 100)
