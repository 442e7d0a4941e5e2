"""Differences between Redis and the ledger that a person has accepted, each by its hash, in writing (I4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledger.database import Database


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One difference that was accepted: its hash, the report that shows it, by whom, when and why."""

    difference: str
    report: str
    players: int
    who: str
    because: str
    accepted_at: datetime

    def to_json(self) -> dict[str, Any]:
        """Return it as the seal keeps it: plain JSON values."""
        return {
            "difference": self.difference,
            "report": self.report,
            "players": self.players,
            "by": self.who,
            "because": self.because,
            "at": self.accepted_at.isoformat().replace("+00:00", "Z"),
        }


def accept(database: Database, key: int, *, difference: str, report: str, players: int, who: str, because: str) -> None:
    """Note that a person accepts this very difference of the season; the first acceptance of it stands."""
    values = {"difference": difference, "report": report, "players": players, "who": who, "because": because}
    database.rows("acceptance.accept", {"key": key, **values})


def of_season(database: Database, key: int) -> dict[str, Acceptance]:
    """Return the season's accepted differences by their hashes."""
    rows = database.rows("acceptance.of_season", {"key": key})
    return {row["difference"]: Acceptance(**row) for row in rows}
