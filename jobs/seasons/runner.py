"""Drives a season through its steps: one lease, one fence, one step after another, each recorded before the next."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from jobs import unforeseen
from jobs.seasons.leasing import leased
from jobs.seasons.verdicts import REPAIR, REPAIRED, Done, Held, Verdict, Wait
from jobs.steps import JOBS
from jobs.steps.step import Acting, StepJob, Work
from jobs.wiring import Outside
from leaderboard.errors import (
    ArchiveMismatchError,
    FinaleError,
    LeaseLostError,
    SeasonHeldError,
)
from leaderboard.season import Season
from leaderboard.states import LEAVES, Step, step_from
from ledger import journal, leases, pausing, seasons
from ledger.leases import Heartbeat, Lease

#: The steps that wait for a time; what they look at is in the ledger alone.
MAY_WAIT = frozenset({Step.OPEN, Step.CLOSE, Step.FREEZE, Step.DELIVER, Step.CLEAN})


#: What no run can get over: a person must look.
HOLDS = (SeasonHeldError, ArchiveMismatchError)


class Observer(Protocol):
    """Told what happens, for a terminal or a log."""

    def started(self, season: Season, step: Step) -> None: ...
    def progress(self, step: Step, done: int, expected: int) -> None: ...
    def finished(self, season: Season, step: Step, seconds: float, figures: str) -> None: ...
    def warned(self, season: Season, step: Step, warning: str) -> None: ...
    def waiting(self, season: Season, step: Step, wait: Wait) -> None: ...
    def failed(self, season: Season, step: Step, error: FinaleError) -> None: ...


@dataclass(frozen=True, slots=True)
class StepRun:
    """A step that was taken: how long it took, and what it left."""

    step: Step
    seconds: float
    figures: str
    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """What a run did, and what it waits for: nothing once the season has ended or ``until`` is reached."""

    season: Season
    steps: tuple[StepRun, ...]
    waits: tuple[Step, Wait] | None


def due_step(season: Season) -> Step | None:
    """Return the step that the season takes next; None once it has ended."""
    return step_from(season.state)


def look_and_plan(outside: Outside, season: Season, *, who: str, forced: bool = False) -> tuple[Step, Verdict] | None:
    """Return the next step and its verdict without changing anything, exactly as a real run would decide it."""
    step = due_step(season)
    if step is None:
        return None
    job: StepJob[Any] = JOBS[step]
    work = _work(outside, season, who, forced, lambda *_: None)
    return step, job.plan(job.look(work))


def run(
    outside: Outside,
    season: Season,
    *,
    who: str,
    observer: Observer,
    until: Step = Step.CLEAN,
    forced: bool = False,
    first: Callable[[Season], None] | None = None,
) -> Run:
    """Take the season's steps, up to and with ``until``, as far as they are due; where none is, nothing is touched.

    ``first`` is what a person has decided, which makes one due: done under the lease, so never where this is refused.
    Once this process is to stop, or everything is paused, no further step begins. Raises PausedError if it is paused
    from the beginning, LeaseHeldError if somebody else works on the season, SeasonHeldError if it stops for a person,
    and whatever a step fails with; the season then stands where it stood and the next run goes on there.
    """
    step = _step_up_to(season, until)
    if step is None:
        return Run(season, (), None)
    pausing.check(outside.database)
    if step in MAY_WAIT and first is None:
        planned = look_and_plan(outside, season, who=who, forced=forced)
        if planned is not None and isinstance(planned[1], Wait):
            observer.waiting(season, step, planned[1])
            return Run(season, (), (step, planned[1]))
    with leased(outside, season, who) as (lease, heartbeat):
        running = _Running(outside, lease, heartbeat, who, observer, forced)
        if first is not None:
            season = running.again(season)
            _step_up_to(season, until)
            first(season)
        return running.through(season, until)


def _step_up_to(season: Season, until: Step) -> Step | None:
    """Return the step that is next, None beyond ``until``; raise SeasonHeldError if the season waits for a person."""
    step = due_step(season)
    if step is None or list(Step).index(step) > list(Step).index(until):
        return None
    if season.hold is not None:
        raise held(season)
    return step


def _work(outside: Outside, season: Season, who: str, forced: bool, progress: Callable[[int, int], None]) -> Work:
    results = journal.results(outside.database, season.key)
    results["installation"] = {"id": seasons.installation(outside.database)}
    return Work(outside, season, outside.database.now(), who, forced, results, progress)


@dataclass(frozen=True, slots=True)
class _Running:
    outside: Outside
    lease: Lease
    heartbeat: Heartbeat
    who: str
    observer: Observer
    forced: bool

    def through(self, season: Season, until: Step) -> Run:
        taken: list[StepRun] = []
        while True:
            season = self.again(season)
            step = _step_up_to(season, until)
            if step is None or self.outside.working.stop.is_set() or pausing.find(self.outside.database):
                return Run(season, tuple(taken), None)
            outcome = self._take(season, step)
            if isinstance(outcome, Wait):
                return Run(season, tuple(taken), (step, outcome))
            taken.append(outcome)

    def again(self, season: Season) -> Season:
        """Return the season as it is now. Raises LeaseLostError."""
        if self.heartbeat.lost.is_set():
            raise leases.lost(self.lease)
        return seasons.find(
            self.outside.database, season.board.name, season.id, self.outside.boards.get(season.board.name)
        )

    def _take(self, season: Season, step: Step) -> StepRun | Wait:
        job: StepJob[Any] = JOBS[step]
        begun = time.monotonic()
        try:
            work = _work(
                self.outside,
                season,
                self.who,
                self.forced,
                lambda done, expected: self.observer.progress(step, done, expected),
            )
            facts = job.look(work)
            verdict = job.plan(facts)
            if isinstance(verdict, Wait):
                self.observer.waiting(season, step, verdict)
                return verdict
            self.observer.started(season, step)
            if isinstance(verdict, Held):
                raise SeasonHeldError(verdict.reason, detail=verdict.detail, hint=verdict.hint)
            done = job.act(_acting(work, self.lease), facts)
            if isinstance(done, Wait):
                self.observer.waiting(season, step, done)
                return done
            seconds = time.monotonic() - begun
            self._record(season, step, done, seconds)
        except BrokenPipeError:
            raise  # whoever watched has gone, which says nothing of the step
        except Exception as caught:
            if self.heartbeat.lost.is_set():
                raise leases.lost(self.lease) from caught
            error = _told(season, caught)
            self._not_done(season, step, error)
            if error is caught or isinstance(caught, OSError):  # of which the command line tells more
                raise
            raise error from caught
        for warning in done.warnings:
            self.observer.warned(season, step, warning)
        self.observer.finished(season, step, seconds, done.figures)
        return StepRun(step, seconds, done.figures, dict(done.result))

    def _record(self, season: Season, step: Step, done: Done, seconds: float) -> None:
        database = self.outside.database
        with database.transaction():
            seasons.advance(
                database,
                self.lease,
                season.state,
                done.back_to or LEAVES[step],
                definition=done.definition,
                live_key=done.live_key,
                sealed_at=done.sealed_at,
                keep_until=done.keep_until,
            )
            journal.put_result(database, season.key, REPAIR if done.back_to else step, done.result, self.lease.fence)
            journal.write(
                database,
                season.key,
                REPAIRED if done.back_to else "done",
                who=self.who,
                step=step,
                fence=self.lease.fence,
                detail={
                    "figures": done.figures,
                    "seconds": round(seconds, 3),
                    "by": leases.told(self.lease.holder),
                    **({"warnings": list(done.warnings)} if done.warnings else {}),
                },
            )

    def _not_done(self, season: Season, step: Step, error: FinaleError) -> None:
        """Hold the season where a person must decide, else count the attempt; the error goes on to the caller.

        Raises LeaseLostError instead if that is why the step failed: another runner's work is not this one's to judge.
        """
        self.observer.failed(season, step, error)
        database = self.outside.database
        holds = isinstance(error, HOLDS)
        try:
            with database.transaction():
                if holds:
                    seasons.hold(database, self.lease, error.message, error.detail, error.hint)
                else:
                    seasons.failed(database, self.lease, str(error))
                journal.write(
                    database,
                    season.key,
                    "held" if holds else "failed",
                    who=self.who,
                    step=step,
                    fence=self.lease.fence,
                    detail={
                        "message": error.message,
                        "detail": error.detail,
                        "hint": error.hint,
                        "by": leases.told(self.lease.holder),
                    },
                )
        except LeaseLostError as taken_over:
            raise taken_over from error
        except FinaleError:
            return  # the ledger is what failed: the first error is the one told


def acting(outside: Outside, season: Season, who: str, lease: Lease) -> Acting:
    """Return what a change of a season that is no step is given: the same as a step."""
    return _acting(_work(outside, season, who, False, lambda *_: None), lease)


def _acting(work: Work, lease: Lease) -> Acting:
    return Acting(work.outside, work.season, work.now, work.who, work.forced, work.results, work.progress, lease)


def held(season: Season) -> SeasonHeldError:
    """Return the error that tells why the season waits for a person, and what releases it."""
    assert season.hold is not None
    return SeasonHeldError(
        f"{season.name} is on hold since {season.hold.since:%Y-%m-%d %H:%M} UTC: {season.hold.reason}",
        detail=season.hold.detail,
        hint=_with_release(season, season.hold.hint),
    )


def _told(season: Season, error: Exception) -> FinaleError:
    """Return a step's error as the ledger and the caller are told it, one that nobody foresaw too."""
    found = unforeseen.told(season.name, error)
    if isinstance(found, HOLDS):
        found.hint = _with_release(season, found.hint)
    elif found is not error:
        found.detail = "nothing is lost, and it is tried again after a pause; no other season is stopped"
        again = f"finale close {season.board.name} {season.id}"
        found.hint = f"set FINALE_DEBUG=1, run {again}, which does not wait for that, and report what it shows"
    return found


def _with_release(season: Season, hint: str) -> str:
    """Return the remedy with the command that ends the hold, which a person would else have to look up."""
    release = f"finale season release {season.board.name} {season.id}"
    if "finale rewards approve" in hint:  # which ends the hold too
        return hint
    return hint if release in hint else "; then: ".join(part for part in (hint, release) if part)
