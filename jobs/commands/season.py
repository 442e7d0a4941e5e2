"""finale close, tick, and season list, show, release, strays; clean and the other levers have files of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs import output
from jobs.commands import levers
from jobs.commands.common import (
    As,
    AsJson,
    Because,
    BoardName,
    DryRun,
    SeasonName,
    Yes,
    check_why,
    confirm,
    step_named,
    who_acts,
    wired,
    wired_ledger,
)
from jobs.commands.journal import journal_json, print_journal
from leaderboard.states import Step

if TYPE_CHECKING:
    from jobs.seasons.runner import Run
    from leaderboard.season import Season

season = typer.Typer(help="Seasons and their levers.", no_args_is_help=True)
Now = Annotated[bool, typer.Option("--now", help="Do not wait: a decision that the journal keeps.")]

for lever in (levers.hold, levers.extend, levers.retry, levers.reopen, levers.cancel):
    season.command(lever.__name__)(lever)


def close(
    board: BoardName,
    season_id: SeasonName,
    early: Now = False,
    until: Annotated[str | None, typer.Option("--until", metavar="STEP", help="Stop after this step.")] = None,
    because: Because = "",
    yes: Yes = False,
    dry_run: DryRun = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Take a season that has ended through every step: freeze, snapshot, reconcile, seal, reward, deliver, clean.

    Safe to repeat: it goes on where it stood, and changes nothing once all is done. With --now the season ends at once,
    without a grace, or the grace that runs does: results that have not come by then are late, and those played until
    the season was to end count in no season of the board; --dry-run says so, and how long it will take.

    Example: finale close goals s2026
    """
    from jobs.seasons import closing
    from jobs.seasons.levers import told_of_early_end

    told: dict[str, Any] = {}
    check_why(because, early)
    who, last = who_acts(operator, lever=early and not dry_run), step_named(until, Step.CLEAN)
    with wired() as outside:
        if dry_run:
            if closing.untaken(outside, board, season_id):
                planned = closing.plan_take_on(last)
            else:
                found = closing.find(outside, board, season_id)
                planned = closing.plan_close(outside, found, who=who, until=last, early=early)
                told = told_of_early_end(outside, found) if early and planned else {}
            print_plan([{**one, **told} if at == 0 else one for at, one in enumerate(planned)], as_json)
            return
        found = closing.take_on(outside, board, season_id, who=who)
        if early:
            confirm(f"end {found.name} now? {told_of_early_end(outside, found)['results']}", yes)
        observer = output.Watching(quiet=as_json)
        run = closing.close(outside, found, who=who, observer=observer, until=last, early=early, because=because)
        print_run(run, as_json)


def tick(operator: As = None, as_json: AsJson = False) -> None:
    """Do whatever is due, on all boards, oldest first; for cron. Ends with the exit code of the first error, else 0.

    Example: finale tick --json
    """
    from jobs.clock import check_clock
    from jobs.scheduler.tick import tick as ticked

    with wired() as outside:
        check_clock(outside)
        # Boards are worked on side by side, so no bar of progress.
        found = ticked(outside, who=who_acts(operator, lever=False), observer=output.Watching(quiet=True))
    if as_json:
        output.print_json([one.to_json() for one in found])
    else:
        for one in found:
            if one.created:
                output.out.print(f"{one.name}: created {', '.join(one.created)}")
            if one.steps:
                output.out.print(f"{one.name}: {', '.join(one.steps)}")
            if one.busy:
                output.out.print(f"{one.name}: another runner works on it")
            if one.held:
                output.out.print(f"{one.name}: on hold: {one.held}", markup=False)
            if one.waits:
                output.out.print(f"{one.name}: {one.waits}", markup=False)
            if one.drift:
                output.out.print(f"{one.name}: {one.drift}", markup=False)
        if not found:
            output.out.print("nothing is due")
    failed = [one for one in found if one.error]
    for one in failed:
        assert one.error is not None
        output.err.print(one.name, markup=False)
        output.print_error(one.error)
    if failed and failed[0].error:
        raise typer.Exit(failed[0].error.exit_code)


@season.command("list")
def list_seasons(
    board: Annotated[str | None, typer.Argument(metavar="[BOARD]", help="One board only.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the seasons in the ledger, with their states.

    Example: finale season list goals
    """
    from jobs.seasons.closing import next_step
    from ledger import seasons

    with wired_ledger() as outside:
        if board is not None and not seasons.of_board(outside.database, board):
            outside.settings.board(board)
        found = [one for one in seasons.every(outside.database, outside.boards) if board in (None, one.board.name)]
    if as_json:
        output.print_json([{**seasons.as_json(one), "next": next_step(one)} for one in found])
        return
    output.print_table(
        ("board", "season", "state", "starts (UTC)", "ends (UTC)", "next"),
        [
            (
                one.board.name,
                one.id,
                f"{one.state}, held" if one.hold else one.state,
                output.utc(one.bounds.starts_at),
                output.utc(one.bounds.ends_at),
                _next(one),
            )
            for one in found
        ],
    )


@season.command("show")
def show(board: BoardName, season_id: SeasonName, as_json: AsJson = False) -> None:
    """Tell a season's state, bounds, hold, journal, and what happens next and when.

    Example: finale season show goals s2026
    """
    from jobs.seasons.closing import find
    from ledger import journal, leases, seasons

    with wired_ledger() as outside:
        found = find(outside, board, season_id)
        entries = journal.entries(outside.database, found.key)
        lease = leases.find(outside.database, found.key)
    shown = {**seasons.as_json(found), "next": _next_json(found)}
    shown["lease"] = {"holder": lease.holder, "since": lease.acquired_at} if lease and lease.alive else None
    if as_json:
        shown["journal"] = journal_json(entries)
        output.print_json(shown)
        return
    rows = [
        (key.replace("_", " "), output.as_text(value))
        for key, value in shown.items()
        if value is not None and not isinstance(value, dict)
    ]
    if lease and lease.alive:
        rows.append(("worked on by", f"{leases.told(lease.holder)} since {output.utc(lease.acquired_at)}"))
    output.print_table(("season", found.name), [*rows, ("next", _next(found))])
    if found.hold:
        output.out.print(f"\n[bold]ON HOLD[/] since {output.utc(found.hold.since)} UTC", soft_wrap=True)
        for text in filter(None, (found.hold.reason, found.hold.detail, found.hold.hint)):
            output.out.print(f"  {text}", markup=False)
    output.out.print("\n[bold]journal[/]")
    print_journal(entries)


@season.command("release")
def release(
    board: BoardName,
    season_id: SeasonName,
    because: Because = "",
    again: Annotated[bool, typer.Option("--again", help="Take the snapshot again; only before the seal.")] = False,
    empty: Annotated[bool, typer.Option("--empty", help="Nobody played: archive a missing live key as empty.")] = False,
    accept: Annotated[
        str | None, typer.Option("--accept-drift", metavar="REPORT", help="Pay on exactly this report's difference.")
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """End a season's hold; the next run goes on where it stood.

    A season held because Redis and its ledger differ takes its snapshot again and is compared again; with
    --accept-drift the difference that the report shows is accepted instead, and no other. Name and reason stand in the
    seal. A season without a ledger whose live key does not exist is archived as empty with --empty.

    Example: finale season release goals s2026 --because "reviewed" --as ana
    """
    from jobs.seasons import releasing
    from jobs.seasons.closing import find

    who = who_acts(operator, lever=not dry_run)
    with wired() as outside:
        found = find(outside, board, season_id)
        told = releasing.plan(outside, found, again=again, accept=accept, empty=empty)
        if dry_run:
            levers.print_told("released", told, dry_run, as_json)
            return
        confirm(f"let {found.name} go on with {told['step']}? It is held: {told['held']}", yes)
        releasing.release(outside, found, who=who, because=because, again=again, accept=accept, empty=empty)
        _print_season(find(outside, board, season_id), as_json)


@season.command("strays")
def strays(
    board: Annotated[str | None, typer.Argument(metavar="[BOARD]", help="One board only.")] = None,
    as_json: AsJson = False,
) -> None:
    """Report keys that look like a board's and belong to no season, and live keys of cleaned seasons that are back.

    Looks through the names of all keys with SCAN, on the primary, and touches none.

    Example: finale season strays
    """
    from jobs.seasons.strays import find_strays

    with wired() as outside:
        found = find_strays(outside, board)
    if as_json:
        output.print_json([one.to_json() for one in found])
    elif not found:
        output.out.print("every key that looks like a board's belongs to a season")
    else:
        output.print_table(
            ("key", "rows", "what", "what to do"),
            [(one.key, "" if one.rows is None else f"{one.rows:,}", one.what, one.hint) for one in found],
            numbers=("rows",),
        )


def _print_season(found: Season, as_json: bool) -> None:
    from ledger import seasons

    if as_json:
        output.print_json({**seasons.as_json(found), "next": _next_json(found)})
    else:
        output.out.print(f"{found.name} is {found.state}{', on hold' if found.hold else ''}; next: {_next(found)}")


def print_run(run: Run, as_json: bool) -> None:
    from ledger import seasons

    if as_json:
        steps = [
            {"step": str(one.step), "seconds": round(one.seconds, 3), "figures": one.figures, "result": one.result}
            for one in run.steps
        ]
        output.print_json({**seasons.as_json(run.season), "steps": steps, "next": _next_json(run.season)})
        return
    if run.steps:
        output.print_table(
            ("step", "seconds", "what"),
            [(one.step, f"{one.seconds:.2f}", one.figures) for one in run.steps],
            numbers=("seconds",),
        )
    done = "" if run.steps else "nothing to do: "
    output.out.print(f"{done}{run.season.name} is {run.season.state}; next: {_next(run.season)}")


def print_plan(planned: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        output.print_json(planned)
    elif not planned:
        output.out.print("nothing to do")
    else:
        rows = [(one["step"], one["verdict"], one["why"], one.get("until", "")) for one in planned]
        output.print_table(("step", "verdict", "why", "until"), rows)
        if "results" in planned[0]:
            output.out.print(f"\n{planned[0]['results']}", markup=False)
        if planned[0].get("expected_seconds") is not None:
            output.out.print(f"expected to take {planned[0]['expected_seconds']:g} seconds, by earlier seasons")


def _next(found: Season) -> str:
    told = _next_json(found)
    return f"{told['step']} {told['when']}" if told["step"] else str(told["when"])


def _next_json(found: Season) -> dict[str, Any]:
    from jobs.seasons.closing import next_step

    return dict(next_step(found))
