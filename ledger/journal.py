"""What was done to a season, by whom and why; and what each finished step hands to the later ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from leaderboard.errors import LeaseLostError
from ledger.database import Database

#: Instead of a season's number: what concerns all of them. Seasons are numbered from 1.
EVERYTHING = 0


@dataclass(frozen=True, slots=True)
class Entry:
    at: datetime
    event: str
    step: str | None
    fence: int | None
    who: str
    detail: dict[str, Any]


def write(
    database: Database,
    key: int,
    event: str,
    *,
    who: str,
    step: str | None = None,
    fence: int | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Append one entry to the season's journal."""
    database.rows(
        "journal.write",
        {"key": key, "event": event, "step": step, "fence": fence, "who": who, "detail": Jsonb(dict(detail or {}))},
    )


def entries(database: Database, key: int) -> list[Entry]:
    """Return the season's journal, oldest first."""
    return [Entry(**row) for row in database.rows("journal.of_season", {"key": key})]


def accepted(database: Database, key: int, reason: str) -> bool:
    """Return whether a person has released the season since it was last held for this very ``reason``."""
    held = released = False
    for entry in entries(database, key):
        if entry.event == "held" and entry.detail.get("message") == reason:
            held, released = True, False
        released = released or (held and entry.event == "released")
    return released


def said_empty(database: Database, key: int) -> str:
    """Return who has released the season saying that nobody played in it, since it was last opened; else nothing."""
    who = ""
    for entry in entries(database, key):
        if entry.event in ("released", "reopened", "adopted again"):
            who = entry.who if entry.detail.get("empty") else ""
    return who


def put_result(database: Database, key: int, step: str, result: Mapping[str, Any], fence: int) -> None:
    """Store what a step hands to the later ones, over that of an earlier attempt. Raises LeaseLostError."""
    values = {"key": key, "step": step, "result": Jsonb(dict(result)), "fence": fence}
    if database.row("journal.put_result", values) is None:
        raise LeaseLostError(
            "another runner has taken this season over; nothing more was changed by this one",
            detail=f"fence {fence} is no longer the season's",
            hint="see who works on it with: finale season show",
        )


def results(database: Database, key: int) -> dict[str, dict[str, Any]]:
    """Return the results of the season's finished steps by the step's name."""
    return {row["step"]: row["result"] for row in database.rows("journal.results", {"key": key})}


def finished(database: Database, step: str) -> dict[int, datetime]:
    """Return when each season that has finished the step did, by the season's number."""
    return {row["season_id"]: row["finished_at"] for row in database.rows("journal.finished", {"step": step})}
