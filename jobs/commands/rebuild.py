"""finale rebuild: a live board made anew from the ledger."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from jobs import output
from jobs.commands.common import As, AsJson, BoardName, DryRun, SeasonName, who_acts, wired
from leaderboard.errors import InputError

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def rebuild(
    board: BoardName,
    season_id: SeasonName,
    dry_run: DryRun = False,
    yes: Yes = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Make a season's live board anew from the ledger, beside the old one, and let it take its place.

    Players see the old board until the new one is whole; what comes meanwhile follows at once. Safe to repeat. Possible
    until the season is sealed.

    Example: finale rebuild goals s2026 --dry-run
    """
    from jobs.closing import find
    from jobs.rebuilding import plan
    from jobs.rebuilding import rebuild as rebuilt

    with wired() as outside:
        found = find(outside, board, season_id)
        planned = plan(outside, found)
        if dry_run:
            if as_json:
                output.print_json(planned.to_json())
            else:
                output.out.print(
                    f"{planned.season}: {planned.players:,} players of the ledger would replace {planned.rows:,} rows "
                    f"of {', '.join(planned.keys)}; {planned.waiting:,} totals wait to be written",
                    markup=False,
                )
            return
        who = who_acts(operator, lever=True)
        _confirm(f"replace {planned.rows:,} rows by the ledger's {planned.players:,} players?", yes)
        done = rebuilt(outside, found, who=who, progress=lambda rows: output.heard("rebuild.sent", rows=rows))
    if as_json:
        output.print_json(done.to_json())
    else:
        output.out.print(
            f"{done.season}: {done.players:,} players in place of {done.before:,} rows, {done.followed:,} totals "
            f"followed, in {done.seconds:.1f} seconds",
            markup=False,
        )


def _confirm(question: str, yes: bool) -> None:
    if yes:
        return
    if not (sys.stdin and sys.stdin.isatty()):
        raise InputError("this replaces a live board and there is no terminal to ask at", hint="add --yes")
    typer.confirm(question, abort=True, err=True)
