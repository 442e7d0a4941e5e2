"""What a daemon tells besides its log: metrics of its rounds, notifications, traces where OpenTelemetry is there."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from typing import Any

from jobs.scheduler.health import Health
from jobs.scheduler.logged import Logged
from jobs.scheduler.notify import Note, Notifier
from jobs.scheduler.overdue import Overdue
from jobs.scheduler.tick import EVERYWHERE, Ticked
from jobs.seasons.runner import HOLDS
from jobs.seasons.verdicts import Wait
from jobs.wiring import Outside
from leaderboard.errors import FinaleError, LeaseLostError, SeasonHeldError, UnavailableError
from leaderboard.season import Season
from leaderboard.states import State, Step, step_from
from ledger import monitoring

#: How long a failure for want of an answer waits for what the watch on the servers says, in seconds.
UNSURE = 30
#: After these, a person is told that something is done: the season is sealed, paid out, forgotten.
MILESTONES = frozenset({Step.SEAL, Step.DELIVER, Step.CLEAN})


class Telling(Logged):
    """An observer that logs, and passes on what each of its listeners is for."""

    def __init__(self, health: Health | None = None, notifier: Notifier | None = None) -> None:
        super().__init__()
        self._health, self._notifier = health, notifier
        self._overdue = Overdue()
        self._away = False
        self._holding: set[str] = set()
        self._unsure: deque[tuple[float, Note]] = deque(maxlen=1_000)
        self._tracer = _tracer()
        self._spans: dict[tuple[str, Step], Any] = {}

    def started(self, season: Season, step: Step) -> None:
        super().started(season, step)
        if (span := self._start_span(season, step)) is not None:
            self._spans[season.name, step] = span

    def waiting(self, season: Season, step: Step, wait: Wait) -> None:
        super().waiting(season, step, wait)
        self._end_span(season, step)

    def finished(self, season: Season, step: Step, seconds: float, figures: str) -> None:
        super().finished(season, step, seconds, figures)
        self._end_span(season, step)
        if self._notifier and step in MILESTONES:
            self._notifier.tell(Note("done", season.name, str(step), figures))

    def failed(self, season: Season, step: Step, error: FinaleError) -> None:
        super().failed(season, step, error)
        self._end_span(season, step, error)
        if isinstance(error, HOLDS):
            self._holding.add(season.name)  # the ledger has it by the next round, which tells of it
        else:
            self._tell_of(season.name, str(step), error)

    def _tell_of(self, name: str, step: str, error: FinaleError) -> None:
        if self._notifier is None or isinstance(error, LeaseLostError):
            return
        note = Note("failure", name, step, error.message, error.hint)
        if name == EVERYWHERE:
            note = replace(note, season="", server="round")
        if isinstance(error, UnavailableError):
            self._unsure.append((time.monotonic(), note))
        else:
            self._notifier.tell(note)

    def server(self, name: str, error: FinaleError | None) -> None:
        before = self._servers.get(name, False)
        super().server(name, error)
        if self._health:
            self._health.server(name, up=error is None)
        if self._notifier and error is not None and not before:
            self._notifier.tell(Note("away", "", "", error.message, error.hint, name))
        elif self._notifier and error is None and before:
            self._notifier.tell(Note("back", "", "", "", server=name))

    def _tell_unsure(self, notifier: Notifier) -> None:
        """Tell of what failed for want of an answer, unless that is told of already: a server is known to be away."""
        if any(self._servers.values()):
            self._unsure.clear()
        now, unsure = time.monotonic(), list(self._unsure)
        for since, note in unsure:
            if now - since > UNSURE:
                self._unsure.remove((since, note))
                notifier.tell(note)

    def _tell_holds(self, notifier: Notifier, outside: Outside) -> None:
        """Tell of each hold once, whichever daemon sees it first, before or after a restart: the ledger knows."""
        for row in monitoring.claim_holds(outside.database, outside.boards):
            step = step_from(State(row["state"]))
            name = f"{row['board']}/{row['season']}"
            notifier.tell(Note("hold", name, str(step or ""), row["hold_reason"], row["hold_hint"] or ""))

    def _start_span(self, season: Season, step: Step) -> Any:
        attributes = {"finale.season": season.name, "finale.step": str(step)}
        return self._tracer.start_span(f"finale.{step}", attributes=attributes) if self._tracer else None

    def _end_span(self, season: Season, step: Step, error: FinaleError | None = None) -> None:
        span = self._spans.pop((season.name, step), None)
        if span is None and error is not None:
            span = self._start_span(season, step)  # it failed while it looked, before there was anything to begin
        if span is None:
            return
        if error is not None:
            from opentelemetry.trace import StatusCode

            span.record_exception(error)
            span.set_status(StatusCode.ERROR, error.message)
        span.end()

    def ticked(self, found: list[Ticked]) -> None:
        super().ticked(found)
        for one in found:
            if one.error and not self._is_hold(one.name, one.error):
                self._tell_of(one.name, "", one.error)  # what a step failed with has been told, and is not again
            if self._notifier and one.drift:
                self._notifier.tell(Note("drift", one.name, "", one.drift))

    def _is_hold(self, name: str, error: FinaleError) -> bool:
        """Return whether the error stands in the ledger as the season's hold: rewards owed to it fail without one."""
        raised = name in self._holding
        self._holding.discard(name)
        return isinstance(error, HOLDS) and (raised or isinstance(error, SeasonHeldError))

    def round_failed(self, error: FinaleError) -> None:
        super().round_failed(error)
        self._away = True
        self._unsure.clear()
        self._overdue.forget()
        if self._health:
            self._health.round(ready=False, in_flight=0)
        if self._notifier:
            self._notifier.tell(Note("away", "", "", error.message, error.hint))

    def round_done(self, outside: Outside, in_flight: int) -> None:
        super().round_done(outside, in_flight)
        if self._health:
            self._health.round(ready=True, in_flight=in_flight)
        if self._notifier and self._away:
            self._notifier.tell(Note("back", "", "", ""))
        self._away = False
        if self._notifier:
            self._tell_holds(self._notifier, outside)
            self._tell_unsure(self._notifier)
            for note in self._overdue.found(monitoring.look_at_seasons(outside.database, outside.boards)):
                self._notifier.tell(note)


def _tracer() -> Any:
    """Return OpenTelemetry's tracer, which does nothing until somebody configures its SDK; None without the package."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("finale")
