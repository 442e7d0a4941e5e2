"""A reward table: which places of a season's standings are granted what. Read from TOML, validated, frozen."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from leaderboard.errors import ConfigError
from leaderboard.faults import FaultAt, Placer, describe, dotted, parse_toml, refuse
from leaderboard.fields import Strict
from rewards.lines import placer
from rewards.rule import LIMIT, Rule, fault_of_item
from rewards.sources import Eligible, Exclusion, Leagues, Removed

MOST_PREVIOUS = 8  #: different ranges of previous ranks, a bit each

_TABLE = "docs/rewards.md has all that a table can say; finale rewards check looks at one without a server"
_NOT_SPLIT = {
    "previous": "those who tie would be worth different amounts, and nothing could be pooled",
    "position": "every place of a tie is judged by its position already: name it as rank",
}

__all__ = ["LIMIT", "RewardTable", "Rule", "parse_table"]


def _caps(value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError("must be a table of items and the most of each, like { gems = 100000 }")
    if faults := [fault for item, amount in value.items() if (fault := fault_of_item(str(item), amount))]:
        raise ValueError("; ".join(faults))
    return value


class RewardTable(Strict):
    """Rules in order. C74: the rank convention is a value of the table, and is sealed with it.

    ``ties``: ``"share"`` judges by rank, so that equal scores are granted alike; ``"position"`` by position, so that a
    rule for ten ranks takes ten players; ``"split"`` pools what the places of a tie are worth. ``at_line``: whether a
    tie across the line of a percentile is all in or all out, when shared. ``match = "first"`` grants a player by the
    first rule that takes them, ``"all"`` by each. ``removed``: whether players below one who is excluded or not
    eligible move up, or the place stays empty. ``budget``: the most of an item that a season may cost.
    """

    version: Literal[1]
    ties: Literal["share", "position", "split"] = "share"
    match: Literal["first", "all"] = "first"
    at_line: Literal["in", "out"] = "in"
    removed: Removed = "close_up"
    approval: Literal["none", "manual"] = "none"
    budget: Annotated[dict[str, int], BeforeValidator(_caps)] = Field(default_factory=dict)
    eligible: Eligible | None = None
    exclude: tuple[Exclusion, ...] = ()
    leagues: Leagues | None = None
    rule: tuple[Rule, ...]

    @field_validator("version", mode="before")
    @classmethod
    def _known_version(cls, value: Any) -> Any:
        if type(value) is not int or value != 1:
            raise ValueError("this version of Finale reads reward tables of version 1")
        return value

    @model_validator(mode="after")
    def _holds_together(self) -> RewardTable:
        if not self.rule:
            raise ValueError("needs at least one [[rule]]")
        names = [rule.name for rule in self.rule]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            said = f"each rule needs a name of its own; used more than once: {', '.join(map(repr, twice))}"
            again = next(number for number, name in enumerate(names) if name in names[:number])
            raise FaultAt(("rule", again, "name"), said)
        in_league = [number for number, rule in enumerate(self.rule) if rule.league is not None]
        if in_league and self.leagues is None:
            said = "names a league, but the table has no [leagues] that says who is in which; add it"
            raise FaultAt(("rule", in_league[0], "league"), said)
        if len({rule.previous for rule in self.rule} - {None}) > MOST_PREVIOUS:
            raise ValueError(f"asks for more than {MOST_PREVIOUS} different ranges of previous ranks")
        if self.ties == "split":
            self._can_be_split(in_league)
        return self

    def _can_be_split(self, in_league: list[int]) -> None:
        """What a tie is worth can be pooled only where the places alone decide, and all rules count the same places."""
        for number, rule in enumerate(self.rule):
            for key, why in _NOT_SPLIT.items():
                if getattr(rule, key) is not None:
                    said = f'with ties = "split" a rule has no {key}, since {why}; take it out, or let ties be "share"'
                    raise FaultAt(("rule", number, key), said)
        without = [number for number in range(len(self.rule)) if number not in in_league]
        if in_league and without:
            said = (
                'with ties = "split" either all rules name a league or none does, since what a tie is worth is pooled '
                "on one ladder; give this rule a league too, or take it from the others"
            )
            raise FaultAt(("rule", without[0]), said)

    @property
    def uses_previous(self) -> bool:
        """Whether a rule asks for the ranks of the season before."""
        return any(rule.previous is not None for rule in self.rule)

    def definition(self) -> dict[str, Any]:
        """Return the table as plain JSON values for a seal; grants are lists, since the order of items matters."""
        return {
            "version": self.version,
            "ties": self.ties,
            "match": self.match,
            "at_line": self.at_line,
            "removed": self.removed,
            "approval": self.approval,
            "budget": self.budget,
            "eligible": self.eligible.definition() if self.eligible else None,
            "exclude": [source.definition() for source in self.exclude],
            "leagues": self.leagues.definition() if self.leagues else None,
            "rule": [rule.definition() for rule in self.rule],
        }

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
    if not text.strip():
        raise ConfigError(f"{origin} is an empty file", hint=_TABLE)
    values = parse_toml(text, origin)
    return _table(values, origin, placer(text, values))


def _table(values: dict[str, Any], origin: str, place: Placer) -> RewardTable:
    try:
        return RewardTable.model_validate(values)
    except ValidationError as error:
        raise refuse(origin, describe(error, RewardTable, place=place), _TABLE) from None
