"""Open: the season's board and key are fixed, the next few seasons are created, ``current_key`` follows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from jobs.scheduler.upcoming import create_ahead, point_current_key
from jobs.seasons.verdicts import Act, Done, Verdict, Wait
from jobs.steps.step import Acting, Work
from leaderboard import keys
from leaderboard.states import Step
from live.eviction import dangers


@dataclass(frozen=True, slots=True)
class Facts:
    now: datetime
    starts_at: datetime


@dataclass(frozen=True, slots=True)
class Open:
    step: Step = Step.OPEN

    def look(self, work: Work) -> Facts:
        return Facts(work.now, work.season.bounds.starts_at)

    def plan(self, facts: Facts) -> Verdict:
        if facts.now < facts.starts_at:
            return Wait(facts.starts_at, "the season has not begun")
        return Act("open the season")

    def act(self, work: Acting, facts: Facts) -> Done:
        season, board = work.season, work.season.board
        created = create_ahead(work.outside, board, facts.now, who=work.who)
        point_current_key(work.outside, board, facts.now)
        key = keys.live_key(board.key, board.name, season.id, season.bounds.starts_at, season.bounds.ends_at)
        return Done(
            {"live_key": key, "created": created},
            f"key {key}, {len(created)} more seasons created",
            warnings=tuple(dangers(work.outside.redis, key)),
            definition=board,
            live_key=key,
        )
