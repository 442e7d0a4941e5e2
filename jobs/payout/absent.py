"""Players whom a reward table excludes and who are not on the board: of another season, or with a mistyped id."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from leaderboard.wording import counted, listed
from rewards.plan import Plan

_FIRST = 10  # players that are named


@dataclass(frozen=True, slots=True)
class Absent:
    """Of one source: how many of the players whom it excludes are not on the board, of how many, and the first."""

    source: str
    players: int
    of: int
    first: tuple[str, ...]

    def __str__(self) -> str:
        names = listed([repr(name) for name in self.first], _FIRST, self.players)  # quoted: a space shows
        return f"{self.source} excludes {counted(self.players, 'player')} not on the board: {names}"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {"source": self.source, "players": self.players, "of": self.of, "first": list(self.first)}


def absent(plan: Plan) -> list[Absent]:
    """Return what each source of exclusions has that the board has not, in their order."""
    known, gone = plan.facts.get("excluded"), plan.marks.absent
    if known is None or gone is None or not gone.num_rows:
        return []
    of, missing = (Counter(some["source"].to_pylist()) for some in (known, gone))
    first: dict[str, list[str]] = {}
    for source, player in zip(gone["source"].to_pylist(), gone["player_id"].to_pylist(), strict=True):
        names = first.setdefault(source, [])
        if len(names) < _FIRST:
            names.append(player.hex() if isinstance(player, bytes) else player)
    return [Absent(source, missing[source], of[source], tuple(names)) for source, names in first.items()]


def warnings(plan: Plan) -> tuple[str, ...]:
    """Return what a person should look after: players of a file, who were meant, or a source that excludes nobody.

    A table of bans has players of every season, so those of it that are not on this board are no fault.
    """
    files = {source.told for source in plan.table.exclude if source.file is not None}
    return tuple(str(one) for one in absent(plan) if one.source in files or one.players == one.of)
