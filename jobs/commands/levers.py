"""finale season extend, reopen, cancel, retry, hold; finale pause, resume."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from jobs import output
from jobs.commands.common import (
    As,
    AsJson,
    Because,
    BoardName,
    DryRun,
    SeasonName,
    Yes,
    confirm,
    instant,
    who_acts,
    wired,
    wired_ledger,
)
from leaderboard.errors import InputError

if TYPE_CHECKING:
    from jobs.endpoints import Ledger
    from jobs.wiring import Outside
    from leaderboard.season import Season
    from ledger.pausing import Pause

Told = dict[str, Any]
OutsideT = TypeVar("OutsideT")
FoundT = TypeVar("FoundT")

Until = Annotated[str, typer.Option("--until", metavar="TIME", help="ISO 8601 with its offset.")]


@dataclass(frozen=True, slots=True)
class _Asked:
    """How a lever was asked for: what every one of them has."""

    yes: bool
    dry_run: bool
    operator: str | None
    as_json: bool


def _pull(
    asked: _Asked,
    opened: Callable[[], AbstractContextManager[OutsideT]],
    find: Callable[[OutsideT], FoundT],
    *,
    done: str,
    question: Callable[[Told], str],
    plan: Callable[[OutsideT, FoundT], Told],
    act: Callable[[OutsideT, FoundT, str], Told],
) -> None:
    """Do what every lever does: find what it is for, tell what would be done or ask, do it in a name, and tell."""
    who = who_acts(asked.operator, lever=not asked.dry_run)
    with opened() as outside:
        found = find(outside)
        told = plan(outside, found)
        if not asked.dry_run:
            confirm(question(told), asked.yes)
            told = act(outside, found, who)
    print_told(done, told, asked.dry_run, asked.as_json)


def _season(board: str, season_id: str) -> Callable[[Outside], Season]:
    from jobs.seasons.closing import find

    return lambda outside: find(outside, board, season_id)


def extend(
    board: BoardName,
    season_id: SeasonName,
    until: Until,
    because: Because,
    yes: Yes = False,
    dry_run: DryRun = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Let a season end later, before its cutoff has passed; the next one begins later for it.

    Refused once the next season has begun or has results, and where the time in the scores does not reach that far.

    Example: finale season extend goals s2026 --until 2027-01-02T00:00:00Z --because "outage on the last day" --as ana
    """
    from jobs.seasons import levers

    end = instant("--until", until)
    _pull(
        _Asked(yes, dry_run, operator, as_json),
        wired,
        _season(board, season_id),
        done="extended",
        question=lambda told: f"extend {told['season']} until {output.utc(end)} UTC?",
        plan=lambda outside, season: levers.plan_extend(outside, season, end),
        act=lambda outside, season, who: levers.extend(outside, season, end, who=who, because=because),
    )


def reopen(
    board: BoardName,
    season_id: SeasonName,
    because: Because,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="A later end; else it stays.")] = None,
    grace: Annotated[str | None, typer.Option("--grace", metavar="DURATION", help="Else the board's.")] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Take results again in a season that has ended and is not sealed yet.

    Its snapshot is thrown away, results that came late count, and it closes again when the new grace has passed.

    Example: finale season reopen goals s2026 --grace 2h --because "results of one server were missing" --as ana
    """
    from jobs.seasons import levers

    end, given = instant("--until", until) if until else None, _duration("--grace", grace)

    def length(season: Season) -> timedelta:
        return season.board.grace if given is None else given

    _pull(
        _Asked(yes, dry_run, operator, as_json),
        wired,
        _season(board, season_id),
        done="reopened",
        question=lambda told: f"throw away what {told['season']} has come to, and take results again?",
        plan=lambda outside, season: levers.plan_reopen(outside, season, end, length(season)),
        act=lambda outside, season, who: levers.reopen(outside, season, end, length(season), who=who, because=because),
    )


def cancel(
    board: BoardName,
    season_id: SeasonName,
    because: Because,
    yes: Yes = False,
    dry_run: DryRun = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Let a season that has not opened yet not take place. It is not made again, and nothing counts in it.

    Example: finale season cancel goals s2027 --because "no season this year" --as ana
    """
    from jobs.seasons import levers

    _pull(
        _Asked(yes, dry_run, operator, as_json),
        wired,
        _season(board, season_id),
        done="cancelled",
        question=lambda told: f"cancel {told['season']}? This cannot be taken back.",
        plan=levers.plan_cancel,
        act=lambda outside, season, who: levers.cancel(outside, season, who=who, because=because),
    )


def retry(
    board: BoardName,
    season_id: SeasonName,
    because: Because = "",
    yes: Yes = False,
    dry_run: DryRun = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Try a step that failed again in the next round, instead of after its pause.

    Example: finale season retry goals s2026 --because "the bucket is there again" --as ana
    """
    from jobs.seasons import levers

    _pull(
        _Asked(yes, dry_run, operator, as_json),
        wired,
        _season(board, season_id),
        done="to be retried",
        question=lambda told: f"try {told['step']} of {told['season']} again?",
        plan=levers.plan_retry,
        act=lambda outside, season, who: levers.retry(outside, season, who=who, because=because),
    )


def hold(
    board: BoardName,
    season_id: SeasonName,
    because: Because,
    yes: Yes = False,
    dry_run: DryRun = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Stop a season until it is released; nothing is done to it meanwhile.

    A delivery under way sends no further batch, and what a delivered season still owes waits for the release.

    Example: finale season hold goals s2026 --because "cheaters under review" --as ana
    """
    from jobs.seasons import levers

    _pull(
        _Asked(yes, dry_run, operator, as_json),
        wired,
        _season(board, season_id),
        done="on hold",
        question=lambda told: f"stop {told['season']} until somebody releases it?",
        plan=levers.plan_hold,
        act=lambda outside, season, who: levers.hold(outside, season, who=who, because=because),
    )


def pause(
    because: Because, yes: Yes = False, dry_run: DryRun = False, operator: As = None, as_json: AsJson = False
) -> None:
    """Let no runner begin another step, of any season, wherever it runs. Steps under way are finished.

    Only a delivery is not: it sends no further batch, of any season, and goes on where it stood.

    Results are still taken. Seasons that end meanwhile are caught up afterwards, by their stored bounds.

    Example: finale pause --because "Redis is being moved" --as ana
    """
    from ledger import pausing

    def act(outside: Ledger, _: object, who: str) -> Told:
        pausing.pause(outside.database, who=who, because=because)
        return told(outside, pausing.find(outside.database))

    def told(_: Ledger, found: Pause | None) -> Told:
        return {"since": found.since, "who": found.who, "because": found.because} if found else {"because": because}

    _pull(
        _Asked(yes, dry_run, operator, as_json),
        wired_ledger,
        lambda outside: pausing.find(outside.database),
        done="paused",
        question=lambda _: "stop all seasons of all boards?",
        plan=told,
        act=act,
    )


def resume(
    because: Because = "", yes: Yes = False, dry_run: DryRun = False, operator: As = None, as_json: AsJson = False
) -> None:
    """Let everything go on after a pause; what has become due meanwhile is done, the oldest season first.

    Example: finale resume --because "Redis has moved" --as ana
    """
    from ledger import pausing

    def told(_: Ledger, found: Pause | None) -> Told:
        return {"paused_since": found.since, "paused_by": found.who} if found else {"paused_since": None}

    _pull(
        _Asked(yes, dry_run, operator, as_json),
        wired_ledger,
        lambda outside: pausing.find(outside.database),
        done="resumed",
        question=lambda _: "let all seasons of all boards go on?",
        plan=told,
        act=lambda outside, _, who: told(outside, pausing.resume(outside.database, who=who, because=because)),
    )


def print_told(done: str, told: dict[str, Any], dry_run: bool, as_json: bool) -> None:
    """Write what a lever has come to, or would come to."""
    if as_json:
        output.print_json({**told, "dry_run": dry_run})
        return
    name = told.get("season", "everything")
    output.out.print(f"{name} {'would be' if dry_run else 'is'} {done}", markup=False)
    rows = [
        (
            key.replace("_", " "),
            ", ".join(map(str, value.values())) if isinstance(value, dict) else output.as_text(value),
        )
        for key, value in told.items()
        if key != "season" and value is not None
    ]
    if rows:
        output.print_table(("", ""), rows)


def _duration(option: str, text: str | None) -> timedelta | None:
    from leaderboard.durations import parse_duration

    try:
        return parse_duration(text) if text else None
    except ValueError as error:
        raise InputError(f"{option}: {error}", hint="write a duration like 15m, 2h or 7d") from None
