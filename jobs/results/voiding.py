"""Voiding a match: in the ledger first, then on the live boards of the seasons that it still counted in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jobs.results.taking import Taken, write_totals
from jobs.wiring import Outside
from leaderboard.board import Board
from leaderboard.errors import FinaleError
from ledger import pending, voids
from ledger.voids import Voided


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a void did, how many totals were written to the live boards, and why some were not."""

    voided: Voided
    applied: int = 0
    unapplied: FinaleError | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "results": self.voided.results,
            "seasons": [
                {
                    "board": one.board,
                    "season": one.season,
                    "players": one.players,
                    "effect": "kept for corrections" if one.frozen else "recounted",
                }
                for one in self.voided.seasons
            ],
            "before": self.voided.before,
            "applied": self.applied,
            "unapplied": self.unapplied.message if self.unapplied else None,
        }


def void_match(
    outside: Outside,
    source: str,
    boards: list[Board],
    match: str,
    player: bytes | None,
    *,
    who: str,
    because: str,
    dry_run: bool,
) -> Outcome:
    """Void a match of ``source``, which ``boards`` count, and write the totals that changed. Raises as ``void`` does.

    The ledger has the void once this returns, also if Redis could not be reached: the totals then stay pending.
    """
    voided = voids.void(outside.database, source, match, player=player, who=who, because=because, dry_run=dry_run)
    taken = Taken()
    if not dry_run:
        # Also those that a void which was broken off has left: voided again, it touches no season any more.
        write_totals(outside, boards, set(pending.seasons(outside.database)), taken)
    return Outcome(voided, taken.applied, taken.unapplied)
