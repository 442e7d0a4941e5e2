"""What is right of players with matches voided after the freeze: their points, and how many matches they have left.

What was sealed of a player need not be what the ledger had of him: a person may have accepted the difference. Such a
player is left as he was sealed, since the ledger cannot tell what is right of him.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from archive.adjusted import changes_schema
from archive.fetch import read_parts_checked
from jobs.checks.reconciling import COLUMNS, rule_of
from jobs.payout.sealed import committed
from jobs.wiring import Outside
from leaderboard.errors import WrongStateError
from leaderboard.season import Season
from leaderboard.states import State, reached
from ledger import corrections
from reconcile.compare import SIDE, compared
from rewards.facts import schema


@dataclass(frozen=True, slots=True)
class Voided:
    """The same players in both tables: ``changed`` for the standings, ``matches`` for the fact of that name.

    ``left`` are players with voided matches who are in neither: those of whom the ledger had something else at the
    freeze than was sealed.
    """

    changed: pa.Table
    matches: pa.Table
    left: tuple[bytes, ...] = ()

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
    left = _differing(outside, season, rows) if reached(season.state, State.SEALED) else {}
    rows = [row for row in rows if row["player_id"] not in left]
    binary = season.board.member == "binary"
    wanted, counted = changes_schema(binary), schema("matches", binary=binary)
    players = pa.array([row["player_id"] for row in rows], pa.binary()).cast(wanted.field("player_id").type)
    rest = [pa.array([row[name] for row in rows], wanted.field(name).type) for name in ("points", "reached_at")]
    matches = pa.array([row["matches"] for row in rows], counted.field("matches").type)
    return Voided(
        pa.table([players, *rest], schema=wanted),
        pa.table([players, matches], schema=counted),
        tuple(left),
    )


def _differing(outside: Outside, season: Season, rows: list[dict[str, Any]]) -> dict[bytes, None]:
    """Return the players of ``rows`` of whom the ledger had something else at the freeze than was sealed, by their ids.

    They are compared as the season was, by its tolerance and the unit of its times.
    """
    ids = pa.array([row["player_id"] for row in rows], pa.binary())
    there = [row for row in rows if row["frozen_points"] is not None]
    frozen = pa.table(
        [
            pa.array([row["player_id"] for row in there], pa.binary()),
            pa.array([row["frozen_points"] for row in there], pa.int64()),
            pa.array([row["frozen_reached_at"] for row in there], pa.timestamp("us", tz="UTC")),
        ],
        names=SIDE.names,
    )
    sealed = (
        batch.filter(pc.is_in(batch.column("player_id").cast(pa.binary()), value_set=ids))
        for batch in read_parts_checked(outside.store, committed(outside, season, "standings"), COLUMNS)
    )
    with compared(sealed, frozen.to_batches(), rule_of(season)) as found:
        return {player: None for batch in found.batches() for player in batch.column("player_id").to_pylist()}


def merged(before: pa.Table | None, now: pa.Table) -> pa.Table:
    """Return all rows, the present ones in the place of those before of the same players."""
    if before is None:
        return now
    kept = before.filter(pc.invert(pc.is_in(before["player_id"], value_set=now["player_id"].combine_chunks())))
    return pa.concat_tables([kept.cast(now.schema), now])
