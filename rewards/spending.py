"""What holds a season before anyone is paid: a budget that would be passed, an approval that is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rewards.table import RewardTable


@dataclass(frozen=True, slots=True)
class Overrun:
    """An item of which more would be paid than the table's budget has."""

    item: str
    cost: int
    cap: int

    def __str__(self) -> str:
        return f"{self.item}: {self.cost:,}, the budget has {self.cap:,}"


def overruns(table: RewardTable, sums: Mapping[str, int]) -> list[Overrun]:
    """Return the items whose ``sums`` pass the budget, by name; items without a cap may cost anything."""
    return [Overrun(item, sums[item], cap) for item, cap in sorted(table.budget.items()) if sums.get(item, 0) > cap]
