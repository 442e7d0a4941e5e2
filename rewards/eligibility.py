"""Why a player is not eligible: what the table asks for, what the player has, and how much is missing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rewards.facts import Facts
from rewards.table import RewardTable


def missing(table: RewardTable, facts: Facts, player_id: bytes, points: float) -> list[dict[str, Any]]:
    """Return each condition of ``eligible`` that the player does not meet; none for who is eligible.

    Of each: ``condition`` by its name in the table, ``wanted``, ``has``, ``short`` (both None for a list) and ``why``.
    """
    asked, found = table.eligible, list[dict[str, Any]]()
    if asked is None:
        return found
    if asked.min_matches is not None:
        row = _row(facts, "matches", player_id)
        played = int(row["matches"]) if row else 0
        if played < asked.min_matches:
            counted = f"{played:,} {'match' if played == 1 else 'matches'}"
            found.append(_short("min_matches", asked.min_matches, played, counted))
    if asked.min_points is not None and points < asked.min_points:
        counted = f"{points:,} {'point' if points == 1 else 'points'}"
        found.append(_short("min_points", asked.min_points, points, counted))
    if asked.given and _row(facts, "eligible", player_id) is None:
        why = "not in the list of eligible players that was read when the rewards were computed"
        found.append({"condition": "eligible", "wanted": None, "has": None, "short": None, "why": why})
    return found


def _short(name: str, wanted: float, has: float, counted: str) -> dict[str, Any]:
    why = f"{counted}, {name} is {wanted:,}, so {wanted - has:,} missing"
    return {"condition": name, "wanted": wanted, "has": has, "short": wanted - has, "why": why}


def _row(facts: Facts, kind: str, player_id: bytes) -> dict[str, Any] | None:
    known = facts.get(kind)
    if known is None:
        return None
    at = pc.index(known["player_id"].cast(pa.binary()), pa.scalar(player_id, pa.binary())).as_py()
    row: dict[str, Any] | None = known.slice(at, 1).to_pylist()[0] if at >= 0 else None
    return row
