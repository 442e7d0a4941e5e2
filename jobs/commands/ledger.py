"""finale ledger prune."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs import output
from jobs.commands.common import As, AsJson, DryRun, Yes, confirm, who_acts, wired

ledger = typer.Typer(help="The ledger of match results.", no_args_is_help=True)


@ledger.command("prune")
def prune(
    board: Annotated[str | None, typer.Option("--board", metavar="B", help="Only this board's seasons.")] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Move the results of cleaned seasons from the ledger into sealed Parquet, read back before anything is removed.

    A result that several boards count goes once all their seasons are cleaned. What is sent again after that is
    refused. Killed anywhere, run it again.

    Example: finale ledger prune --dry-run
    """
    from jobs.results.pruning import prune as run
    from jobs.results.pruning import verdicts

    who = who_acts(operator, lever=not dry_run)
    with wired() as outside:
        if not dry_run:
            confirm("remove the results of cleaned seasons from the ledger, once they are sealed?", yes)
        found = verdicts(outside, board) if dry_run else run(outside, board, who=who)
    if as_json:
        output.print_json([one.to_json() for one in found])
    elif found:
        output.print_table(
            ("board", "season", "verdict", "why", "rows"),
            [
                (
                    one.season.board.name,
                    one.season.id,
                    one.action,
                    one.reason,
                    "" if one.rows is None else f"{one.rows:,}",
                )
                for one in found
            ],
            numbers=("rows",),
        )
    else:
        output.out.print("there are no seasons")
    failed = [one for one in found if one.error]
    for one in failed:
        assert one.error is not None
        output.err.print(one.season.name, markup=False)
        output.print_error(one.error)
    if failed and failed[0].error:
        raise typer.Exit(failed[0].error.exit_code)
