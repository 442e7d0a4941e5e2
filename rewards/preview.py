"""What a plan would pay, in words and numbers: who and how much by rule, the cost, the players at each line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewards.plan import Plan
from rewards.ranges import Range
from rewards.spending import overruns

WHO = 100  #: players that are named of each rule, the best first


@dataclass(slots=True)
class Paid:
    """What one rule pays: how many players, how much of each item, and the first of them by position."""

    players: int = 0
    items: dict[str, int] = field(default_factory=dict)
    who: dict[int, dict[str, Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"players": self.players, "items": self.items, "who": list(self.who.values())}


class Summary:
    """Folds the grants of a plan, and the standings they come from, into what a person wants to see of them."""

    def __init__(self, plan: Plan, *, binary: bool) -> None:
        self._plan, self._binary = plan, binary
        self._rules = {rule.name: Paid() for rule in plan.table.rule}
        self._wanted = np.array(sorted(self._at_lines()), np.int64)
        self._rows: dict[int, dict[str, Any]] = {}

    def _at_lines(self) -> set[int]:
        found = set()
        for each in self._plan.ranges:
            ladder = self._plan.ladders[each.league]
            places = (each.last, each.last + 1) if not each.empty else (each.line or 0, (each.line or 0) + 1)
            found |= {ladder.position(place) for place in places if 1 <= place <= ladder.players}
        return found

    def standings(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the standings on, noting who stands at a line."""
        for batch in batches:
            at = np.flatnonzero(np.isin(batch.column("position").to_numpy(), self._wanted))
            for row in batch.select(["position", "rank", "player_id", "points"]).take(pa.array(at)).to_pylist():
                self._rows[row["position"]] = {**row, "player_id": self._name(row["player_id"])}
            yield batch

    def add(self, granted: pa.RecordBatch) -> None:
        """Take the next grants, in order."""
        table = pa.Table.from_batches([granted])
        counted = table.group_by("rule", use_threads=False).aggregate([("position", "count_distinct")])
        for row in counted.to_pylist():
            self._rules[row["rule"]].players += row["position_count_distinct"]
        alike = table.group_by(["rule", "item", "amount"], use_threads=False).aggregate([("position", "count")])
        for row in alike.to_pylist():
            items = self._rules[row["rule"]].items
            items[row["item"]] = items.get(row["item"], 0) + row["amount"] * row["position_count"]
        for name, paid in self._rules.items():
            if len(paid.who) < WHO:
                self._name_some(granted.filter(pc.equal(granted.column("rule"), name)), paid)

    def _name_some(self, granted: pa.RecordBatch, paid: Paid) -> None:
        most = WHO * max(len(rule.grant) for rule in self._plan.table.rule)
        for row in granted.slice(0, most).to_pylist():
            if row["position"] not in paid.who and len(paid.who) >= WHO:
                return
            told = paid.who.setdefault(
                row["position"],
                {
                    "position": row["position"],
                    "rank": row["rank"],
                    "player_id": self._name(row["player_id"]),
                    "items": {},
                },
            )
            told["items"][row["item"]] = row["amount"]

    def _name(self, player: str | bytes) -> str:
        return player.hex() if isinstance(player, bytes) else player

    def rules(self) -> list[dict[str, Any]]:
        """Return, rule by rule, whom it pays what; plain JSON values."""
        conditions = {rule.name: rule.condition for rule in self._plan.table.rule}
        return [{"rule": name, "condition": conditions[name], **paid.to_json()} for name, paid in self._rules.items()]

    def lines(self) -> list[dict[str, Any]]:
        """Return the line of each rule that ends somewhere: the last player who is in, the first who is not."""
        return [
            self._line(each) for each in self._plan.ranges if each.line is not None or not self._ends_the_board(each)
        ]

    def _ends_the_board(self, each: Range) -> bool:
        return each.last >= self._plan.ladders[each.league].players

    def _line(self, each: Range) -> dict[str, Any]:
        ladder = self._plan.ladders[each.league]
        last = each.last if not each.empty else (each.line or 0)

        def at(place: int) -> dict[str, Any] | None:
            if not 1 <= place <= ladder.players:
                return None
            return {"place": place, **self._rows[ladder.position(place)]}

        return {
            "rule": each.rule.name,
            "league": self._plan.league_name(each.league),
            "places": None if each.empty else [each.first, each.last],
            "last_in": None if each.empty else at(last),
            "first_out": at(last + 1),
        }


def costs(plan: Plan, sums: Mapping[str, int], before: Mapping[str, int] | None) -> list[dict[str, Any]]:
    """Return what each item costs together, its budget, and the difference from ``before``, the season before."""
    over = {each.item for each in overruns(plan.table, sums)}
    items = sorted({*sums, *plan.table.budget, *(before or {})})
    return [
        {
            "item": item,
            "cost": sums.get(item, 0),
            "budget": plan.table.budget.get(item),
            "over_budget": item in over,
            "before": None if before is None else before.get(item, 0),
            "difference": None if before is None else sums.get(item, 0) - before.get(item, 0),
        }
        for item in items
    ]
