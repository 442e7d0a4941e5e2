"""What is right of players with matches voided after the freeze: their points, and how many matches they have left."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from archive.adjusted import changes_schema
from jobs.wiring import Outside
from leaderboard.errors import WrongStateError
from leaderboard.season import Season
from ledger import corrections
from rewards.facts import schema


@dataclass(frozen=True, slots=True)
class Voided:
    """The same players in both: ``changed`` for the standings, ``matches`` for the fact of that name."""

    changed: pa.Table
    matches: pa.Table

    def among(self, players: pa.ChunkedArray) -> pa.Table:
        """Return the matches of those of ``players`` that are here."""
        return self.matches.filter(pc.is_in(self.matches["player_id"], value_set=players.combine_chunks()))


def late_voids(outside: Outside, season: Season) -> Voided:
    """Return what is right of players with matches voided after the freeze; WrongStateError if there are none."""
    rows = corrections.without_late_voids(outside.database, season)
    if not rows:
        raise WrongStateError(
            f"no match of {season.name} was voided after its freeze",
            hint="finale results void MATCH voids one; before the freeze totals follow by themselves",
        )
    binary = season.board.member == "binary"
    wanted, counted = changes_schema(binary), schema("matches", binary=binary)
    players = pa.array([row["player_id"] for row in rows], pa.binary()).cast(wanted.field("player_id").type)
    rest = [pa.array([row[name] for row in rows], wanted.field(name).type) for name in ("points", "reached_at")]
    matches = pa.array([row["matches"] for row in rows], counted.field("matches").type)
    return Voided(
        pa.table([players, *rest], schema=wanted),
        pa.table([players, matches], schema=counted),
    )


def merged(before: pa.Table | None, now: pa.Table) -> pa.Table:
    """Return all rows, the present ones in the place of those before of the same players."""
    if before is None:
        return now
    kept = before.filter(pc.invert(pc.is_in(before["player_id"], value_set=now["player_id"].combine_chunks())))
    return pa.concat_tables([kept.cast(now.schema), now])
