"""Cutting the bands of a board that is spread by score anew, while it is played: all players move to where they belong.

The new cuts are in the ledger before the first player moves, and every bucket is taken over after that, so nobody
writes by the old ones any more. Players move as they do when they score: added to the new band, then removed from the
old one. Whatever happens in between, all that is left to do is pending.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import ValidationError

from jobs.boards.projection import apply_pending, check_own_key
from jobs.seasons.leasing import leased
from jobs.wiring import Outside
from leaderboard.board import Board
from leaderboard.errors import InputError, WrongStateError
from leaderboard.faults import describe
from leaderboard.season import Season
from leaderboard.states import State, reached
from ledger import journal, pending, seasons
from ledger.rebalance import cut_anew
from live.counts import between


@dataclass(frozen=True, slots=True)
class Rebalanced:
    """The cuts before and after, how many players each band has or would have, and how many moved or would."""

    season: str
    before: tuple[float, ...]
    cuts: tuple[float, ...]
    players: tuple[int, ...]
    moved: int

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return asdict(self)


def plan(outside: Outside, season: Season, cuts: Sequence[float]) -> Rebalanced:
    """Return what other cuts would come to, the players counted as they are now.

    Raises InputError for cuts that cannot be, WrongStateError after the freeze.
    """
    board = _cut(season, cuts)
    layout = board.layout
    edges = [layout.band(shard) for shard in range(layout.number)]
    found = between(outside.redis, season.live_keys, edges)
    players = tuple(sum(counts[band] for counts in found) for band in range(layout.number))
    stay = sum(counts[shard] for shard, counts in enumerate(found))
    return Rebalanced(season.name, season.board.shards.cuts, board.shards.cuts, players, sum(players) - stay)


def rebalance(outside: Outside, season: Season, cuts: Sequence[float], *, who: str, because: str = "") -> Rebalanced:
    """Cut the season's bands anew and move every player to hers. Safe to repeat, with the same cuts or others.

    Raises what ``plan`` raises, and LeaseHeldError while somebody else works on the season.
    """
    with leased(outside, season, who) as (lease, _):
        season = seasons.find(outside.database, season.board.name, season.id, outside.boards.get(season.board.name))
        planned, board = plan(outside, season, cuts), _cut(season, cuts)
        detail = {"because": because, **planned.to_json()}
        with outside.database.transaction():
            cut_anew(outside.database, lease, board)
            journal.write(outside.database, season.key, "rebalanced", who=who, fence=lease.fence, detail=detail)
            pending.again(outside.database, season.key, range(pending.BUCKETS))
        apply_pending(outside, season, lease.holder, freezer=lease)
    return planned


def _cut(season: Season, cuts: Sequence[float]) -> Board:
    """Return the season's board with other cuts."""
    check_own_key(season)
    board = season.board
    if not board.layout.cuts or board.ledger != "own":
        raise WrongStateError(
            f"{season.name} is not spread by score over sets that Finale writes: there is nothing to cut",
            hint='bands of score are shards = { by = "score", cuts = […] }, fixed when a season opens',
        )
    if season.frozen_at is not None or reached(season.state, State.FROZEN) or season.state is State.CANCELLED:
        raise WrongStateError(
            f"{season.name} is frozen: its bands stay as they are until it is cleaned",
            hint="cut the next season's; what is written under shards holds for seasons that are not open yet",
        )
    if len(cuts) != len(board.shards.cuts):
        raise InputError(
            f"{len(cuts)} cuts are not as many as the season has, {len(board.shards.cuts)}",
            hint="its keys are fixed; another number of bands takes a new season",
        )
    shards = {"by": "score", "cuts": list(cuts)}
    try:
        return Board.model_validate({**board.definition(), "shards": shards})
    except ValidationError as error:
        faults = "; ".join(describe(error, Board))
        raise InputError(
            f"the cuts {', '.join(map(str, cuts))} cannot be: {faults}",
            hint=f"write each once, the lowest first: --cuts {','.join(f'{cut:g}' for cut in sorted(set(cuts)))}",
        ) from None
