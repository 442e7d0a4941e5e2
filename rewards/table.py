"""A reward table: which places of a season's standings are granted what. Read from TOML, validated, frozen."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from leaderboard.errors import ConfigError
from leaderboard.faults import Place, Placer, describe, dotted, parse_toml, refuse
from leaderboard.fields import Strict

LIMIT = 2**53 - 1  #: most of an item in one grant, and the last rank that can be named: what JSON readers hold exactly
_RANK = re.compile(r"([1-9]\d{0,15})(?:(-)([1-9]\d{0,15})?)?", re.ASCII)
_ITEM = re.compile(r"[a-z][a-z0-9_.-]{0,62}")
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*rule[ \t]*\]\]", re.MULTILINE)
_LATER = ("percentile", "points")


class Rule(Strict):
    """One rule: a name, the ranks it takes (or everyone), and what each player there is granted."""

    name: str = Field(max_length=100)
    rank: str | None = None
    everyone: Literal[True] | None = Field(default=None, alias="all")
    grant: dict[str, int] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _of_this_version(cls, data: Any) -> Any:
        if isinstance(data, dict) and (later := [key for key in _LATER if key in data]):
            raise ValueError(f"{later[0]} is not known to this version; use rank or all")
        return data

    @field_validator("name")
    @classmethod
    def _readable(cls, value: str) -> str:
        if not value.strip() or value != value.strip() or not value.isprintable():
            raise ValueError("must be printable text, not empty, without spaces around it")
        return value

    @field_validator("rank", mode="before")
    @classmethod
    def _ranks(cls, value: Any) -> Any:
        match = _RANK.fullmatch(value) if isinstance(value, str) else None
        if not match:
            raise ValueError('must be text like "1", "2-10" or "11-"')
        if int(match[1]) > LIMIT or int(match[3] or 0) > LIMIT:
            raise ValueError("no board has that many players; 2^53 - 1 is the last rank")
        if match[3] and int(match[3]) < int(match[1]):
            raise ValueError("ends before it starts; write the better rank first")
        return value

    @field_validator("grant", mode="before")
    @classmethod
    def _amounts(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("must be a table of items and amounts, like { gems = 100 }")
        faults = [fault for item, amount in value.items() if (fault := _fault(str(item), amount))]
        if faults:
            raise ValueError("; ".join(faults))
        return value

    @model_validator(mode="after")
    def _one_condition(self) -> Rule:
        if (self.rank is None) == (self.everyone is None):
            raise ValueError('needs exactly one of rank = "…" and all = true')
        return self

    @property
    def first(self) -> int:
        """The first rank that the rule takes."""
        return int(self.rank.partition("-")[0]) if self.rank else 1

    @property
    def last(self) -> int | None:
        """The last rank that the rule takes, inclusive; None if it has no end."""
        if self.rank is None:
            return None
        start, dash, end = self.rank.partition("-")
        return int(end) if end else (None if dash else int(start))


def _fault(item: str, amount: Any) -> str:
    if isinstance(amount, dict):
        return f'{item} is a table; put an item with a dot in its name in quotes: "{item}.{next(iter(amount), "")}"'
    if not _ITEM.fullmatch(item):
        return f"{item!r} cannot name an item; use a lower-case letter, then up to 62 of a-z, 0-9, _, . and -"
    if type(amount) is not int or not 1 <= amount <= LIMIT:
        return f"{item} = {amount!r}; an amount is a whole number from 1 to 2^53 - 1"
    return ""


class RewardTable(Strict):
    """Rules in order. C74: the rank convention is a value of the table, and is sealed with it.

    ``ties = "share"`` judges by rank, so that equal scores are granted alike; ``"position"`` by position, so that a
    rule for ten ranks takes ten players. ``match = "first"`` grants a player by the first rule that takes them,
    ``"all"`` by each.
    """

    version: Literal[1]
    ties: Literal["share", "position"] = "share"
    match: Literal["first", "all"] = "first"
    rule: tuple[Rule, ...]

    @field_validator("version", mode="before")
    @classmethod
    def _known_version(cls, value: Any) -> Any:
        if type(value) is not int or value != 1:
            raise ValueError("this version of Finale reads reward tables of version 1")
        return value

    @field_validator("ties", mode="before")
    @classmethod
    def _ties_of_this_version(cls, value: Any) -> Any:
        if value == "split":
            raise ValueError('"split" belongs to a later version of Finale; use "share" or "position"')
        return value

    @model_validator(mode="after")
    def _rules_differ(self) -> RewardTable:
        if not self.rule:
            raise ValueError("needs at least one [[rule]]")
        names = [rule.name for rule in self.rule]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"each rule needs a name of its own; used more than once: {', '.join(map(repr, twice))}")
        return self

    def definition(self) -> dict[str, Any]:
        """Return the table as plain JSON values for a seal; a grant is a list, since the order of items matters."""
        rules = []
        for rule in self.rule:
            condition: dict[str, Any] = {"all": True} if rule.rank is None else {"rank": rule.rank}
            grant = [{"item": item, "amount": amount} for item, amount in rule.grant.items()]
            rules.append({"name": rule.name, **condition, "grant": grant})
        return {"version": self.version, "ties": self.ties, "match": self.match, "rule": rules}

    @classmethod
    def from_definition(cls, definition: dict[str, Any]) -> RewardTable:
        """Return the table that ``definition()`` described; raise ConfigError if it describes none."""
        try:
            rules = [
                {**rule, "grant": {line["item"]: line["amount"] for line in rule["grant"]}}
                for rule in definition["rule"]
            ]
        except (KeyError, TypeError) as error:
            raise ConfigError("this is no definition of a reward table", detail=repr(error)) from None
        return _table({**definition, "rule": rules}, "the sealed reward table", dotted)


def parse_table(text: str, origin: str) -> RewardTable:
    """Return the reward table that the TOML ``text`` holds.

    Raises ConfigError that names ``origin`` and tells every fault: the place with its line, the value, the reason.
    """
    values = parse_toml(text, origin)
    return _table(values, origin, _placer(text, values.get("rule")))


def _table(values: dict[str, Any], origin: str, place: Placer) -> RewardTable:
    try:
        return RewardTable.model_validate(values)
    except ValidationError as error:
        raise refuse(origin, describe(error, RewardTable, place=place)) from None


def _placer(text: str, rules: Any) -> Placer:
    """Return how to name a place: the rule by number, line and name, then the key in it."""
    lines = [text.count("\n", 0, match.start()) + 1 for match in _HEADER.finditer(text)]
    known = isinstance(rules, list) and len(lines) == len(rules)

    def place(at: Place) -> str:
        if len(at) < 2 or at[0] != "rule" or not isinstance(at[1], int):
            return dotted(at)
        named = rules[at[1]].get("name") if isinstance(rules[at[1]], dict) else None
        title = f" ({named!r})" if isinstance(named, str) else ""
        line = f", line {lines[at[1]]}" if known else ""
        key = f", {dotted(at[2:])}" if len(at) > 2 else ""
        return f"rule {at[1] + 1}{title}{line}{key}"

    return place
