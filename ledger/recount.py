"""The totals of a season counted anew from its match results, so that a broken total does not vouch for itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from leaderboard.season import Season
from ledger import evidence
from ledger.database import Database

SHOWN = 100  #: broken totals that are returned; all are counted


@dataclass(frozen=True, slots=True)
class BrokenTotal:
    """A player whose total is not what the results make; None where there is no total, or no result."""

    player_id: bytes
    total: int | None
    results: int | None
    total_reached_at: datetime | None
    results_reached_at: datetime | None

    def __str__(self) -> str:
        name = self.player_id.decode(errors="backslashreplace")
        if self.total == self.results:
            return f"{name}: total reached at {_text(self.total_reached_at)}, results {_text(self.results_reached_at)}"
        there, here = ("none" if value is None else f"{value:,}" for value in (self.total, self.results))
        return f"{name}: total {there}, results {here}"


@dataclass(frozen=True, slots=True)
class Recount:
    """How many totals the results do not make, and the first of them by id."""

    broken: int
    examples: tuple[BrokenTotal, ...] = ()


def recount(database: Database, season: Season) -> Recount:
    """Count every player's results anew, by another statement than totals are kept with, and compare; one statement.

    Raises UnavailableError if that takes longer than the statement timeout.
    """
    values = evidence.of(
        database, season, aggregate=season.board.aggregate, descending=season.board.descending, limit=SHOWN
    )
    rows = database.rows("recount.broken", values)
    found = tuple(
        BrokenTotal(
            bytes(row["player_id"]),
            _number(row["total_points"]),
            _number(row["results_points"]),
            row["total_reached_at"],
            row["results_reached_at"],
        )
        for row in rows
    )
    return Recount(rows[0]["count"] if rows else 0, found)


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _text(instant: datetime | None) -> str:
    return "never" if instant is None else instant.isoformat().replace("+00:00", "Z")
