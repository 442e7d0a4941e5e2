"""Puts Redis right from Finale's own ledger, for exactly the named players, under the season's fence."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.boards.projection import Applied, apply_pending, check_own_key
from jobs.wiring import Outside
from leaderboard.errors import UnavailableError, WrongStateError
from leaderboard.season import Season
from leaderboard.states import State, reached
from ledger import leases, pending
from ledger.leases import Lease


def check_repairable(season: Season) -> None:
    """Raise WrongStateError for a season to whose live key nothing is written, or to which nothing could be."""
    check_own_key(season)
    if season.board.ledger != "own":
        raise WrongStateError(
            f"board {season.board.name} has no ledger of Finale's from which its live key could be written",
            hint="correct the key, or the ledger, where it is written",
        )
    if reached(season.state, State.SEALED):
        raise WrongStateError(
            f"{season.name} is {season.state}: its live key must stay as it was sealed",
            hint="what a sealed season paid wrongly is settled by a correction",
        )


def repair(outside: Outside, season: Season, lease: Lease, players: Iterable[bytes] = ()) -> Applied:
    """Let Redis have what the ledger has of each of ``players``: the score, or no row for who has none.

    Whoever was pending already is written too: of a frozen season these are what a repair that was killed left behind.

    The players are made pending, which needs the lease, and are then written as any total is: each batch under its
    bucket's fence and running number, so that a write of a runner that was taken over is refused. Of a frozen season
    every bucket is taken over first. Safe to repeat. Raises WrongStateError, LeaseLostError, UnavailableError.
    """
    check_repairable(season)
    pending.players(outside.database, lease, players)
    frozen = reached(season.state, State.FROZEN)
    done = apply_pending(outside, season, lease.holder, freezer=lease if frozen else None, everywhere=True)
    leases.check(outside.database, lease)
    if frozen and (left := pending.count(outside.database, season.key)):
        raise UnavailableError(
            f"{season.name}: {left:,} of the players to be repaired could not be written to Redis",
            hint="run the command again",
        )
    return done
