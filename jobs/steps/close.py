"""Close: the cutoff has been reached; results played before it still count until the grace ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from jobs.scheduler.upcoming import point_current_key
from jobs.seasons.verdicts import Act, Done, Verdict, Wait
from jobs.steps.step import Acting, Work
from leaderboard.states import Step
from live.eviction import dangers


@dataclass(frozen=True, slots=True)
class Facts:
    now: datetime
    ends_at: datetime
    closes_at: datetime  #: the end of the grace
    forced: bool


@dataclass(frozen=True, slots=True)
class Close:
    step: Step = Step.CLOSE

    def look(self, work: Work) -> Facts:
        return Facts(work.now, work.season.bounds.ends_at, work.season.closes_at, work.forced)

    def plan(self, facts: Facts) -> Verdict:
        if facts.now < facts.ends_at and not facts.forced:
            return Wait(facts.ends_at, "the season has not ended")
        return Act(
            "stop at the cutoff" + (", let the grace run" if facts.now < facts.closes_at else "; no grace is left")
        )

    def act(self, work: Acting, facts: Facts) -> Done:
        point_current_key(work.outside, work.season.board, facts.now)
        grace_ends = work.season.closes_at
        table = work.outside.settings.tables.get(work.season.board.name)
        return Done(
            {
                "ends_at": facts.ends_at.isoformat(),
                "closes_at": grace_ends.isoformat(),
                "reward_table": table.definition() if table else None,
            },
            f"cutoff {facts.ends_at:%Y-%m-%d %H:%M:%S} UTC, grace until {grace_ends:%H:%M:%S}",
            warnings=_dangers(work),
            definition=work.season.board,  # the rest of the board is fixed now, and its reward table
        )


def _dangers(work: Acting) -> tuple[str, ...]:
    """Return how servers may drop live keys by themselves, what is true of several keys said once."""
    told = (danger for key in work.season.live_keys for danger in dangers(work.outside.redis, key))
    return tuple(dict.fromkeys(told))
