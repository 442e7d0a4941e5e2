"""What the ledger tells whoever watches: seasons with their bounds, the last times of steps, grants by state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ledger.database import Database


@dataclass(frozen=True, slots=True)
class Seen:
    """The rows of one look: seasons that something may still be done to, and each board's last steps and grants."""

    now: datetime
    seasons: tuple[dict[str, Any], ...]
    steps: tuple[dict[str, Any], ...]
    grants: tuple[dict[str, Any], ...]
    paused: bool


def claim_holds(database: Database, boards: Iterable[str]) -> list[dict[str, Any]]:
    """Return the holds of these boards that nobody has been told of; no other call returns any of them."""
    return [dict(row) for row in database.rows("monitoring.claim_holds", {"boards": list(boards)})]


def look(database: Database, boards: Iterable[str]) -> Seen:
    """Return what is to be seen of these boards now, by PostgreSQL's clock."""
    named = {"boards": list(boards)}
    delivered = [{**row, "state": "delivered"} for row in database.rows("monitoring.delivered", named)]
    return replace(
        look_at_seasons(database, named["boards"]),
        steps=tuple(database.rows("monitoring.steps", named)),
        grants=(*database.rows("monitoring.grants", named), *delivered),
    )


def look_at_seasons(database: Database, boards: Iterable[str]) -> Seen:
    """Return the seasons alone, which does not take longer the more grants there are."""
    return Seen(
        database.now(),
        tuple(database.rows("monitoring.seasons", {"boards": list(boards)})),
        steps=(),
        grants=(),
        paused=bool(database.rows("pausing.find")),
    )
