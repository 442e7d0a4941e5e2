"""Deliver (I5): the grants reach the game, by the table ``finale.payable``, a webhook or a stream.

Delivered means acknowledged, or given up as a dead letter, which a person is told of and does not block cleaning. What
is due at a later time, or is more than one run may send, is left to later runs; what a hold or a pause stops, to a
person.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from jobs.payout import delivering
from jobs.payout.sealed import check_there
from jobs.seasons.verdicts import Act, Done, Verdict, Wait
from jobs.steps.step import Acting, Work
from leaderboard.states import Step
from leaderboard.wording import counted
from ledger import outbox


@dataclass(frozen=True, slots=True)
class Facts:
    grants: int
    mode: str
    now: datetime
    paused_until: datetime | None


@dataclass(frozen=True, slots=True)
class Deliver:
    step: Step = Step.DELIVER

    def look(self, work: Work) -> Facts:
        database, key = work.outside.database, work.season.key
        planned = next((one for one in outbox.planned(database, key) if one.correction == 0), None)
        return Facts(
            int(work.results[Step.REWARD]["grants"]),
            planned.mode if planned else delivering.delivery_of(work.outside, work.season).to,
            work.now,
            outbox.paused(database, key)[0],
        )

    def plan(self, facts: Facts) -> Verdict:
        if facts.mode == "table":
            return Act(f"make {counted(facts.grants, 'grant')} readable in finale.payable")
        if facts.paused_until is not None and facts.paused_until > facts.now + delivering.SHORT_REST:
            return Wait(facts.paused_until, f"the {facts.mode} has not taken all grants; the next try is due")
        return Act(f"send {counted(facts.grants, 'grant')} by {facts.mode}")

    def act(self, work: Acting, facts: Facts) -> Done | Wait:
        check_there(work.outside, work.season)
        database = work.outside.database
        planned = outbox.plan(database, work.lease, facts.mode)
        if planned.mode == "table":
            done = f"{counted(planned.grants, 'grant')} readable in finale.payable"
            return Done({"mode": planned.mode, "grants": planned.grants}, done)
        later = delivering.deliver(
            work.outside,
            work.season,
            who=work.who,
            lease=work.lease,
            progress=work.progress,
        )
        if later is not None:
            return Wait(later.until, later.told)
        acknowledged, dead = outbox.settled(database, work.season.key)
        name = f"{work.season.board.name} {work.season.id}"
        return Done(
            {"mode": planned.mode, "grants": planned.grants, "acknowledged": acknowledged, "dead": dead},
            f"{counted(acknowledged, 'grant')} acknowledged by {planned.mode}, {dead:,} dead letters",
            warnings=(
                f"{counted(dead, 'grant was', 'grants were')} not taken: finale rewards status {name}, then retry",
            )
            if dead
            else (),
        )
