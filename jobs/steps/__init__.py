"""The steps of a season, one file a step, each as look, plan, act."""

from __future__ import annotations

from typing import Any

from jobs.steps.clean import Clean
from jobs.steps.close import Close
from jobs.steps.deliver import Deliver
from jobs.steps.freeze import Freeze
from jobs.steps.open import Open
from jobs.steps.reconcile import Reconcile
from jobs.steps.reward import Reward
from jobs.steps.seal import SealStep
from jobs.steps.snapshot import Snapshot
from jobs.steps.step import StepJob
from leaderboard.states import Step

JOBS: dict[Step, StepJob[Any]] = {
    job.step: job
    for job in (Open(), Close(), Freeze(), Snapshot(), Reconcile(), SealStep(), Reward(), Deliver(), Clean())
}
