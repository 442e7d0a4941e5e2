"""What the scheduler does, as structured log lines with stable event names: the table is in docs/operations.md."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.output import as_text, log, told_of
from jobs.scheduler.tick import Ticked
from jobs.seasons.verdicts import Wait
from jobs.wiring import Outside
from leaderboard.errors import FinaleError
from leaderboard.season import Season
from leaderboard.states import Step


class Logged:
    """An observer that logs. Any thread may tell it something."""

    def __init__(self) -> None:
        self._log = log()
        self._last_pause = ""
        self._last: dict[str, str] = {}
        self._servers: dict[str, bool] = {}  #: those asked so far, and whether each is away

    def started(self, season: Season, step: Step) -> None:
        self._log.info("step.started", season=season.name, step=str(step))

    def progress(self, step: Step, done: int, expected: int) -> None:
        pass

    def finished(self, season: Season, step: Step, seconds: float, figures: str) -> None:
        self._log.info("step.done", season=season.name, step=str(step), seconds=round(seconds, 3), figures=figures)

    def warned(self, season: Season, step: Step, warning: str) -> None:
        self._log.warning("step.warns", season=season.name, step=str(step), warning=warning)

    def waiting(self, season: Season, step: Step, wait: Wait) -> None:
        until = as_text(wait.until) if wait.until else None
        self._log.info("step.waits", season=season.name, step=str(step), until=until, why=wait.why)

    def failed(self, season: Season, step: Step, error: FinaleError) -> None:
        self._log.error("step.failed", season=season.name, step=str(step), **told_of(error))

    def ticked(self, found: list[Ticked]) -> None:
        """Log what the steps have not told themselves."""
        for one in found:
            if one.created:
                self._log.info("season.created", board=one.name, seasons=list(one.created))
            if one.busy and self._is_news(one.name, "busy"):
                self._log.info("season.busy", season=one.name)
            if one.held and self._is_news(one.name, one.held):
                self._log.warning("season.held", season=one.name, reason=one.held)
            if one.drift and self._is_news(one.name, one.drift):
                self._log.warning("season.drift", season=one.name, found=one.drift)
            if one.steps:
                self._last.pop(one.name, None)
            if one.error:
                self._log.error("tick.failed", name=one.name, **told_of(one.error))

    def _is_news(self, name: str, told: str) -> bool:
        """Return whether this was not the last thing told of a season: each round finds it as the one before did."""
        before, self._last[name] = self._last.get(name), told
        return before != told

    def round_failed(self, error: FinaleError) -> None:
        self._log.error("round.failed", **told_of(error))

    def server(self, name: str, error: FinaleError | None) -> None:
        """Log when a server no longer answers, and when it does again."""
        before, self._servers[name] = name in self._servers and self._servers[name], error is not None
        if error is not None and not before:
            self._log.error("server.away", server=name, **told_of(error))
        elif error is None and before:
            self._log.info("server.back", server=name)

    def round_done(self, outside: Outside, in_flight: int) -> None:
        pass

    def paused(self, told: str) -> None:
        if told != self._last_pause:
            self._log.warning("run.paused", why=told)
        self._last_pause = told

    def still_running(self, board: str, seconds: float) -> None:
        self._log.warning("board.still_running", board=board, seconds=round(seconds))

    def stopping(self, in_flight: Iterable[str]) -> None:
        self._log.info("run.stopping", in_flight=sorted(in_flight))

    def handed_over(self, seasons: int) -> None:
        self._log.warning("run.handed_over", seasons=seasons)
