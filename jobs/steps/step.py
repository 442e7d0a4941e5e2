"""The form of a step: look at the outside and the journal, plan purely, act once and repeatably."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from jobs.seasons.verdicts import Done, Verdict, Wait
from jobs.wiring import Outside
from leaderboard.season import Season
from leaderboard.states import Step
from ledger.leases import Lease

Progress = Callable[[int, int], None]
F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Work:
    """What a step is given: the season as it is now, who acts, and the results of earlier steps, nothing else."""

    outside: Outside
    season: Season
    now: datetime  #: PostgreSQL's clock when the step looked
    who: str
    forced: bool  #: ``--now``: an operator has decided not to wait
    results: Mapping[str, Mapping[str, Any]]  #: by step, plain JSON values
    progress: Progress  #: rows done, rows expected


@dataclass(frozen=True, slots=True)
class Acting(Work):
    """The same, with the lease under which something may be changed."""

    lease: Lease

    def attempt(self, number: int) -> str:
        """Return the id under which this runner stages files: this ledger's, this fence's, no other's."""
        return f"{self._installation}-f{self.lease.fence}-{number}"

    def may_sweep(self, attempt: str) -> bool:
        """Return whether a staging attempt is this runner's own, or an earlier one's of the same ledger."""
        installation, _, rest = attempt.rpartition("-f")
        fence = rest.partition("-")[0]
        return installation == self._installation and fence.isdecimal() and int(fence) <= self.lease.fence

    @property
    def _installation(self) -> str:
        return str(self.results["installation"]["id"])


class StepJob(Protocol[F]):
    """One step. ``look`` only reads; ``plan`` is pure; ``act`` has one effect that is safe to repeat.

    ``act`` may find that the rest of it is due later: it then returns a Wait, and the next run goes on.
    """

    @property
    def step(self) -> Step: ...
    def look(self, work: Work) -> F: ...
    def plan(self, facts: F) -> Verdict: ...
    def act(self, work: Acting, facts: F) -> Done | Wait: ...
