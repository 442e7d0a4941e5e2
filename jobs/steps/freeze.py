"""Freeze: the barrier in PostgreSQL, the last totals that Redis lacks are written (I6), the key renamed if so asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from jobs.boards.projection import Applied, apply_pending
from jobs.seasons import renaming
from jobs.seasons.verdicts import Act, Done, Held, Verdict, Wait
from jobs.steps.step import Acting, Work
from leaderboard.errors import UnavailableError
from leaderboard.states import Step
from leaderboard.wording import counted
from ledger import pending, totals
from ledger.freeze import freeze


@dataclass(frozen=True, slots=True)
class Facts:
    now: datetime
    closes_at: datetime
    forced: bool
    holds: Held | None = None  #: where the key holds another season's rows too


@dataclass(frozen=True, slots=True)
class Freeze:
    step: Step = Step.FREEZE

    def look(self, work: Work) -> Facts:
        holds = renaming.mixed(work.outside, work.season, work.now)
        return Facts(work.now, work.season.closes_at, work.forced, holds)

    def plan(self, facts: Facts) -> Verdict:
        if facts.now < facts.closes_at and not facts.forced:
            return Wait(facts.closes_at, "the grace for results played before the cutoff is running")
        if facts.holds is not None:
            return facts.holds
        return Act("take no more results, write the last totals to Redis")

    def act(self, work: Acting, facts: Facts) -> Done:
        database, season = work.outside.database, work.season
        frozen_at = freeze(database, work.lease, season)
        applied = Applied()
        if season.board.ledger == "own":
            # Every bucket is taken over, so that no applier from before can write any more.
            applied = apply_pending(work.outside, season, work.lease.holder, freezer=work.lease)
            if left := pending.count(database, season.key):
                raise UnavailableError(
                    f"{season.name} is frozen, but {counted(left, 'total')} could not be written to Redis",
                    hint="run the command again",
                )
        summed = totals.summed(database, season.key)
        result = {
            "frozen_at": frozen_at.isoformat(),
            "players": summed.players,
            "points": summed.points,
            "applied": applied.players,
            "lost_buckets": applied.lost_buckets,
        }
        figures = (
            _figures(summed.players, applied) if season.board.ledger == "own" else "its own writers write the board"
        )
        if not season.renames:
            return Done(result, figures)
        renamed = renaming.give_private_name(work.outside, season, work.lease, frozen_at)
        return Done(
            {**result, "rename": renamed.to_json()},
            f"{figures}, {renamed.figures}",
            warnings=renamed.warnings,
        )


def _figures(players: int, applied: Applied) -> str:
    lost = f", {applied.lost_buckets} buckets written again after lost writes" if applied.lost_buckets else ""
    return f"{counted(players, 'player')}, {applied.players:,} last totals written{lost}"
