"""A season whose live key is written by hand before the seal has no snapshot any more: it must be taken again."""

from __future__ import annotations

from jobs.wiring import Outside
from leaderboard.errors import WrongStateError
from leaderboard.season import Season
from leaderboard.states import State, reached
from ledger import journal, seals, seasons
from ledger.leases import Lease


def give_up_snapshot(outside: Outside, season: Season, lease: Lease, *, who: str, because: str) -> Season:
    """Take a season that has its snapshot back to frozen, before Redis is changed, and return it; others as they are.

    A seal must be what the live key has, and an acceptance of the old difference covers no other. Raises
    WrongStateError once the seal is committed, since the next run puts it, and LeaseLostError.
    """
    if not reached(season.state, State.SNAPSHOTTED):
        return season
    if seals.find(outside.database, season.key, "standings") is not None:
        raise WrongStateError(
            f"{season.name} is {season.state}, and its seal is committed: its live key must stay as it was sealed",
            hint=f"let it be sealed: finale close {season.board.name} {season.id}; "
            "what a sealed season paid wrongly is settled by a correction",
        )
    with outside.database.transaction():
        seasons.advance(outside.database, lease, season.state, State.FROZEN)
        detail = {"because": because, "from": str(season.state)}
        journal.write(outside.database, season.key, "snapshot given up", who=who, fence=lease.fence, detail=detail)
    return seasons.find(outside.database, season.board.name, season.id, outside.boards.get(season.board.name))
