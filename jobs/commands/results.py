"""finale results import and apply; the other commands about results are in files of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs import output
from jobs.commands import results_export, results_lists, results_void
from jobs.commands.common import AsJson, BoardName, SeasonName, named_path, who_acts, wired
from leaderboard.errors import InputError
from leaderboard.wording import counted, listed

results = typer.Typer(help="Match results.", no_args_is_help=True)
results.command("export")(results_export.export)
results.command("void")(results_void.void)
results.command("late")(results_lists.late)
results.command("conflicts")(results_lists.conflicts)
results.command("refused")(results_lists.refused)
results.command("voided")(results_lists.voided)
_SHOWN = 20


@results.command("import")
def import_file(
    path: Annotated[Path, typer.Argument(parser=named_path, metavar="FILE", help="A .csv or .parquet file.")],
    source: Annotated[str | None, typer.Option("--source", metavar="S", help="The source of the results.")] = None,
    board: Annotated[str | None, typer.Option("--board", metavar="B", help="The board whose source it is.")] = None,
    as_json: AsJson = False,
) -> None:
    """Take match results from a file, each once, and write the totals to the live boards.

    Columns match_id, player_id, points, played_at (ISO 8601 with offset); further ones become attributes. Exit code 4
    if any line was refused or is in conflict; all others are taken.

    Example: finale results import matches.csv --source goals
    """
    from jobs.results.taking import source_named, take_file

    with wired() as outside:
        name, boards = source_named(outside, source, board)
        taken = take_file(outside, path, name, boards, lambda rows: output.heard("results.read", rows=rows))
    found = taken.recorded
    if as_json:
        output.print_json(taken.to_json())
    else:
        counts = [
            ("new", found.new),
            ("  of them late", found.late),
            ("  of them counted by no board", found.uncounted),
            ("repeated", found.repeated),
            ("conflicting", found.conflicting),
            ("refused", found.refused),
            ("totals written to Redis", taken.applied),
            *([("totals still to be written", taken.waiting)] if taken.waiting else []),
        ]
        output.print_table(("results", "rows"), [(what, f"{count:,}") for what, count in counts], numbers=("rows",))
        if found.created:
            names = sorted(found.created)
            told = f"{counted(len(names), 'season')} created for these times: {listed(names, _SHOWN)}"
            output.out.print(told, markup=False)
        if found.remarks:
            output.print_table(
                ("line", "what", "why"),
                [(one.line, one.kind, one.reason) for one in found.remarks[:_SHOWN]],
                numbers=("line",),
            )
            whole = max(found.late + found.conflicting + found.refused, len(found.remarks))
            output.print_more(whole - _SHOWN, f"--json lists up to {1_000:,}")
    if taken.unapplied is not None:
        output.err.print("every row is in the ledger, but not every total reached its live board:")
        raise taken.unapplied
    if found.refused or found.conflicting:
        raise InputError(
            f"{path}: {counted(found.refused, 'line')} refused, {found.conflicting:,} in conflict, "
            "all others were taken",
            detail="; ".join(f"line {one.line}: {one.reason}" for one in found.remarks if one.kind != "late")[:500],
            hint="correct these lines and import the file again: what was taken is not taken twice",
        )


@results.command("apply")
def apply(
    board: BoardName,
    season_id: SeasonName,
    every: Annotated[bool, typer.Option("--all", help="Write every total anew, not only what is pending.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the ledger's totals that Redis does not have to the live board; possible until the season is sealed.

    Example: finale results apply goals s2026 --all
    """
    from jobs.checks.repairing import check_repairable
    from jobs.results.taking import apply_all
    from jobs.seasons.closing import find

    with wired() as outside:
        found = find(outside, board, season_id)
        check_repairable(found)
        done = apply_all(outside, found, every_total=every, who=who_acts(None, lever=False))
    if as_json:
        output.print_json({"applied": done.players, "lost_buckets": done.lost_buckets})
    else:
        output.out.print(f"{counted(done.players, 'total')} written to {found.standing_key}", markup=False)
