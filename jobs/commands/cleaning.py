"""finale clean: one season, or all that are due; once more where a cleaned key is back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs import output
from jobs.commands.common import As, AsJson, Because, DryRun, Yes, check_why, confirm, who_acts, wired
from jobs.commands.season import Now, print_plan, print_run
from leaderboard.errors import InputError

if TYPE_CHECKING:
    from jobs.seasons.cleaning import Judged
    from jobs.wiring import Outside

_CANNOT = "give a board and a season: finale clean goals s2026"


def clean(
    board: Annotated[str | None, typer.Argument(metavar="[BOARD]", help="One board only.")] = None,
    season_id: Annotated[str | None, typer.Argument(metavar="[SEASON]", help="One season only.")] = None,
    early: Now = False,
    again: Annotated[bool, typer.Option("--again", help="A cleaned season whose live key is back.")] = False,
    because: Because = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Let Redis forget delivered seasons' keys, each once its archive was read again and proved equal.

    Without a season, all that are due; with --dry-run, the verdict on every season, and why. With --again, the key of a
    season that was cleaned before: removed only if it still is what was sealed.

    Example: finale clean --dry-run
    """
    who = who_acts(operator, lever=(early or again) and not dry_run)
    check_why(because, early or again)
    if season_id is None and (early or again):
        raise InputError("--now and --again are for one season", hint=_CANNOT)
    if early and again:
        raise InputError("--now and --again exclude each other: a cleaned key is kept no longer", hint=_CANNOT)
    with wired() as outside:
        if board is None or season_id is None:
            _several(outside, board, who, dry_run, as_json)
        elif again:
            _again(outside, board, season_id, who, because, dry_run, as_json, yes)
        else:
            _one(outside, board, season_id, who, because, early, dry_run, as_json, yes)


def _one(
    outside: Outside,
    board: str,
    season_id: str,
    who: str,
    because: str,
    early: bool,
    dry_run: bool,
    as_json: bool,
    yes: bool,
) -> None:
    from jobs.seasons import closing

    found = closing.find(outside, board, season_id)
    if dry_run:
        print_plan(closing.plan_clean(outside, found, who=who, early=early), as_json)
        return
    if early:
        confirm(f"forget the live key of {found.name} now? Its archive stays.", yes)
    observer = output.Watching(quiet=as_json)
    run = closing.clean(outside, found, who=who, observer=observer, early=early, because=because)
    print_run(run, as_json)


def _again(
    outside: Outside, board: str, season_id: str, who: str, because: str, dry_run: bool, as_json: bool, yes: bool
) -> None:
    from jobs.scheduler.returned import clean_again, plan_again
    from jobs.seasons.closing import find

    found = find(outside, board, season_id)
    if dry_run:
        print_plan([plan_again(outside, found)], as_json)
        return
    confirm(f"forget the live key of {found.name}, which is back?", yes)
    done = clean_again(outside, found, who=who, because=because)
    if as_json:
        output.print_json({"board": board, "season": season_id, **done.to_json()})
    else:
        output.out.print(f"{found.name}: {done.figures}", markup=False)


def _several(outside: Outside, board: str | None, who: str, dry_run: bool, as_json: bool) -> None:
    from jobs.seasons.cleaning import clean_due, verdicts

    if dry_run:
        found = verdicts(outside, board)
    else:
        found = clean_due(outside, board, who=who, observer=output.Watching(quiet=as_json))
    if as_json:
        output.print_json([one.to_json() for one in found])
    elif found:
        output.print_table(
            ("board", "season", "verdict", "why", *(() if dry_run else ("what",))),
            [_row(one)[: 4 if dry_run else 5] for one in found],
        )
    else:
        output.out.print("there are no seasons" if dry_run else "nothing is due")
    _end(found)


def _row(one: Judged) -> tuple[Any, ...]:
    what = "another runner works on it" if one.busy else one.error.message if one.error else one.to_json()["done"]
    return one.season.board.name, one.season.id, one.verdict.action, one.verdict.reason, what


def _end(found: list[Judged]) -> None:
    """Tell the errors, and end with the exit code of the first, if there is any."""
    failed = [one for one in found if one.error]
    for one in failed:
        assert one.error is not None
        output.err.print(one.season.name, markup=False)
        output.print_error(one.error)
    if failed and failed[0].error:
        raise typer.Exit(failed[0].error.exit_code)
