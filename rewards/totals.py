"""What grants add up to, and their digest: the computed, the approved and the written ones must be equal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from rewards.digest import GrantsDigest


@dataclass(slots=True)
class Totals:
    """What batches of grants in position order add up to; computed and written ones must be equal.

    Sums are exact, past 64 bits too.
    """

    rows: int = 0
    players: int = 0
    items: dict[str, int] = field(default_factory=dict)  #: item -> sum of its amounts
    tiers: dict[tuple[str, str], int] = field(default_factory=dict)  #: (rule, item) -> grants, one a player
    _last: int = 0
    _digest: GrantsDigest = field(default_factory=GrantsDigest)

    def add(self, batch: pa.RecordBatch) -> None:
        """Fold the next ``batch`` in; raise ValueError out of position order, by which players are counted."""
        if not batch.num_rows:
            return
        positions = batch.column("position").to_numpy()
        steps = np.diff(positions, prepend=self._last)
        if steps.min() < 0:
            raise ValueError(f"grants are not in position order: {positions[int(steps.argmin())]} comes too late")
        self.rows += batch.num_rows
        self.players += int(np.count_nonzero(steps))
        self._last = int(positions[-1])
        self._digest.add(batch)
        for group in _groups(batch):
            item, tier = group["item"], (group["rule"], group["item"])
            self.items[item] = self.items.get(item, 0) + group["amount"] * group["amount_count"]
            self.tiers[tier] = self.tiers.get(tier, 0) + group["amount_count"]

    def digest(self) -> str:
        """Return what names these grants, to whoever approves them: ``GrantsDigest.text`` of them."""
        return self._digest.text()

    def definition(self) -> dict[str, Any]:
        """Return the totals as plain JSON values, for a seal, a journal or a report."""
        tiers = [{"rule": rule, "item": item, "grants": count} for (rule, item), count in self.tiers.items()]
        return {"rows": self.rows, "players": self.players, "items": self.items, "tiers": tiers}


def _groups(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    columns = pa.Table.from_batches([batch.select(["rule", "item", "amount"])])
    groups = columns.group_by(["rule", "item", "amount"], use_threads=False).aggregate([("amount", "count")])
    rows: list[dict[str, Any]] = groups.to_pylist()
    return rows
