"""Deliver: the grants become readable by the game, in the table ``finale.payable`` (I5)."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.steps.step import Acting, Work
from jobs.verdicts import Act, Done, Verdict
from leaderboard.states import Step
from ledger import grants


@dataclass(frozen=True, slots=True)
class Facts:
    grants: int


@dataclass(frozen=True, slots=True)
class Deliver:
    step: Step = Step.DELIVER

    def look(self, work: Work) -> Facts:
        return Facts(int(work.results[Step.REWARD]["grants"]))

    def plan(self, facts: Facts) -> Verdict:
        return Act(f"make {facts.grants:,} grants readable in finale.payable")

    def act(self, work: Acting, facts: Facts) -> Done:
        delivered = grants.deliver(work.outside.database, work.lease, "table")
        return Done({"mode": "table", "grants": delivered}, f"{delivered:,} grants readable in finale.payable")
