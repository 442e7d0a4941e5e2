"""What is due to be cleaned on every board, and why the rest is not; and cleaning it, each season on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jobs.seasons import closing
from jobs.seasons.runner import Observer, Run
from jobs.wiring import Outside
from leaderboard import retention, strays
from leaderboard.errors import FinaleError, LeaseHeldError
from leaderboard.retention import Retention
from leaderboard.season import Season
from leaderboard.states import State, Step
from ledger import journal, seasons
from live.keyspace import kinds


@dataclass(frozen=True, slots=True)
class Judged:
    """A season, the verdict on its live key, and what came of it where it was due: a run, or why there is none."""

    season: Season
    verdict: Retention
    run: Run | None = None
    error: FinaleError | None = None
    busy: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        told = {"board": self.season.board.name, "season": self.season.id, "live_key": self.season.live_key}
        figures = [step.figures for step in self.run.steps] if self.run else []
        return {
            **told,
            **self.verdict.to_json(),
            "done": figures[0] if figures else None,
            "busy": self.busy,
            "error": self.error.message if self.error else None,
            "exit_code": self.error.exit_code if self.error else 0,
        }


def verdicts(outside: Outside, board: str | None = None) -> list[Judged]:
    """Return the verdict on every season of the board, or of all, by board and start. Changes nothing.

    Raises UnknownNameError for a board that is neither configured nor in the ledger.
    """
    if board is not None and not seasons.of_board(outside.database, board):
        outside.settings.board(board)
    every = seasons.every(outside.database, outside.boards)
    asked = [season for season in every if board in (None, season.board.name)]
    now, cleaned_at = outside.database.now(), journal.finished(outside.database, Step.CLEAN)
    last = {season.key for season in strays.cleaned_keys(every).values()}
    looked_at = [season for season in asked if season.state in (State.DELIVERED, State.CLEANED)]
    found = kinds(outside.redis, [key for season in looked_at for key in season.own_keys])

    def live(season: Season) -> bool | None:
        if season.state is State.CLEANED and season.key not in last:
            return False  # what is there now is another season's
        there = [found[key] != "none" for key in season.own_keys if key in found]
        return any(there) if there else None

    return [
        Judged(
            season,
            retention.decide(
                retention.Facts(
                    season,
                    now,
                    live=live(season),
                    foreign=retention.foreign({key: found[key] for key in season.own_keys if key in found}),
                    cleaned_at=cleaned_at.get(season.key),
                    configured=season.board.name in outside.boards,
                )
            ),
        )
        for season in asked
    ]


def clean_due(outside: Outside, board: str | None, *, who: str, observer: Observer) -> list[Judged]:
    """Clean every season that is due, as ``verdicts`` says, and return what came of each.

    One that fails does not stop the others; one that somebody else works on is left to them.
    """
    return [_cleaned(outside, judged, who, observer) for judged in verdicts(outside, board) if judged.verdict.acts]


def _cleaned(outside: Outside, judged: Judged, who: str, observer: Observer) -> Judged:
    season, verdict = judged.season, judged.verdict
    try:
        return Judged(season, verdict, run=closing.clean(outside, season, who=who, observer=observer))
    except LeaseHeldError:
        return Judged(season, verdict, busy=True)
    except FinaleError as error:
        return Judged(season, verdict, error=error)
