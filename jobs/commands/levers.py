"""finale season extend, reopen, cancel, retry, hold; finale pause, resume, journal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

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
    who_acts,
    wired,
    wired_ledger,
)
from leaderboard.errors import InputError

if TYPE_CHECKING:
    from ledger.journal import Entry

Until = Annotated[str, typer.Option("--until", metavar="TIME", help="ISO 8601 with its offset.")]


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
    from jobs.seasons.closing import find

    who, end = who_acts(operator, lever=not dry_run), _instant("--until", until)
    with wired() as outside:
        found = find(outside, board, season_id)
        told = levers.plan_extend(outside, found, end)
        if not dry_run:
            confirm(f"extend {found.name} until {output.utc(end)} UTC?", yes)
            told = levers.extend(outside, found, end, who=who, because=because)
    print_told("extended", told, dry_run, as_json)


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
    from jobs.seasons.closing import find
    from leaderboard.durations import parse_duration

    who, end = who_acts(operator, lever=not dry_run), _instant("--until", until) if until else None
    with wired() as outside:
        found = find(outside, board, season_id)
        try:
            length = parse_duration(grace) if grace else found.board.grace
        except ValueError as error:
            raise InputError(f"--grace: {error}") from None
        told = levers.plan_reopen(outside, found, end, length)
        if not dry_run:
            confirm(f"throw away what {found.name} has come to, and take results again?", yes)
            told = levers.reopen(outside, found, end, length, who=who, because=because)
    print_told("reopened", told, dry_run, as_json)


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
    from jobs.seasons.closing import find

    who = who_acts(operator, lever=not dry_run)
    with wired() as outside:
        found = find(outside, board, season_id)
        told = levers.plan_cancel(outside, found)
        if not dry_run:
            confirm(f"cancel {found.name}? This cannot be taken back.", yes)
            told = levers.cancel(outside, found, who=who, because=because)
    print_told("cancelled", told, dry_run, as_json)


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
    from jobs.seasons.closing import find

    who = who_acts(operator, lever=not dry_run)
    with wired() as outside:
        found = find(outside, board, season_id)
        told = levers.plan_retry(outside, found)
        if not dry_run:
            confirm(f"try {told['step']} of {found.name} again?", yes)
            told = levers.retry(outside, found, who=who, because=because)
    print_told("to be retried", told, dry_run, as_json)


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

    Example: finale season hold goals s2026 --because "cheaters under review" --as ana
    """
    from jobs.seasons import levers
    from jobs.seasons.closing import check_holdable, find, next_step
    from ledger import seasons

    who = who_acts(operator, lever=not dry_run)
    with wired() as outside:
        found = find(outside, board, season_id)
        check_holdable(found)
        if dry_run:
            print_told("on hold", levers.plan_hold(found), dry_run, as_json)
            return
        confirm(f"stop {found.name} until somebody releases it?", yes)
        seasons.hold_by_hand(outside.database, found, who=who, because=because)
        found = find(outside, board, season_id)
    if as_json:
        output.print_json({**seasons.as_json(found), "next": next_step(found)})
    else:
        output.out.print(f"{found.name} is {found.state}, on hold; next: {next_step(found)['when']}", markup=False)


def pause(
    because: Because, yes: Yes = False, dry_run: DryRun = False, operator: As = None, as_json: AsJson = False
) -> None:
    """Let no runner begin another step, of any season, wherever it runs. Steps under way are finished.

    Results are still taken. Seasons that end meanwhile are caught up afterwards, by their stored bounds.

    Example: finale pause --because "Redis is being moved" --as ana
    """
    from ledger import pausing

    who = who_acts(operator, lever=not dry_run)
    with wired_ledger() as outside:
        if not dry_run:
            confirm("stop all seasons of all boards?", yes)
            pausing.pause(outside.database, who=who, because=because)
        found = pausing.find(outside.database)
    told = {"since": found.since, "who": found.who, "because": found.because} if found else {"because": because}
    print_told("paused", told, dry_run, as_json)


def resume(
    because: Because = "", yes: Yes = False, dry_run: DryRun = False, operator: As = None, as_json: AsJson = False
) -> None:
    """Let everything go on after a pause; what has become due meanwhile is done, the oldest season first.

    Example: finale resume --because "Redis has moved" --as ana
    """
    from ledger import pausing

    who = who_acts(operator, lever=not dry_run)
    with wired_ledger() as outside:
        found = pausing.find(outside.database)
        if not dry_run:
            confirm("let all seasons of all boards go on?", yes)
            found = pausing.resume(outside.database, who=who, because=because)
    told = {"paused_since": found.since, "paused_by": found.who} if found else {"paused_since": None}
    print_told("resumed", told, dry_run, as_json)


def journal(
    board: Annotated[str | None, typer.Argument(metavar="[BOARD]", help="Without one: what concerns all.")] = None,
    season_id: Annotated[str | None, typer.Argument(metavar="[SEASON]")] = None,
    as_json: AsJson = False,
) -> None:
    """Tell what was done to a season, when, by whom and why; without one, when everything was paused and resumed.

    Example: finale journal goals s2026 --json
    """
    from jobs.seasons.closing import find
    from ledger import journal as entries

    if (board is None) != (season_id is None):
        raise InputError("a journal is a season's: give both BOARD and SEASON, or neither")
    with wired_ledger() as outside:
        key = find(outside, board, season_id).key if board and season_id else entries.EVERYTHING
        found = entries.entries(outside.database, key)
    if as_json:
        output.print_json(journal_json(found))
    elif found:
        print_journal(found)
    else:
        output.out.print("the journal is empty")


def journal_json(found: list[Entry]) -> list[dict[str, Any]]:
    """Return the entries as plain JSON values."""
    return [
        {"at": one.at, "event": one.event, "step": one.step, "fence": one.fence, "who": one.who, "detail": one.detail}
        for one in found
    ]


def print_journal(found: list[Entry]) -> None:
    """Write the entries as a table."""
    output.print_table(
        ("at (UTC)", "event", "step", "who", "detail"),
        [(output.utc(one.at), one.event, one.step, one.who, told_of(one.detail)) for one in found],
    )


def told_of(detail: dict[str, Any]) -> str:
    """Return an entry's detail in one line."""
    if "figures" in detail:
        return "; ".join([str(detail["figures"]), *(f"warning: {each}" for each in detail.get("warnings", ()))])
    said = {key: value for key, value in detail.items() if value not in ("", None, False)}
    told = {key: said[key] for key in ("message", "detail", "hint", *said) if key in said}
    return ", ".join(str(value) if key == "message" else f"{key} {value}" for key, value in told.items())


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


def _instant(option: str, text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is not None:
            return instant.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(f"{option} {text!r} is no ISO 8601 time", hint="write it like 2026-01-31T00:00:00Z") from None
    raise InputError(f"{option} {text!r} has no UTC offset", hint="write it like 2026-01-31T00:00:00Z")
