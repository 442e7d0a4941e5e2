"""finale archive adopt."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from jobs import output
from jobs.commands.common import As, AsJson, Because, DryRun, Yes, confirm, instant, who_acts, wired
from jobs.commands.season import print_plan, print_run
from leaderboard.errors import InputError

Starts = Annotated[str | None, typer.Option("--starts-at", metavar="TIME", help="Like 2025-01-01T00:00:00Z.")]
Ends = Annotated[str | None, typer.Option("--ends-at", metavar="TIME", help="Not included in the season.")]
NoLedger = Annotated[bool, typer.Option("--no-ledger", help="Compare with nothing; the seal says so.")]


def adopt(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The sorted set in Redis.")],
    board: Annotated[str, typer.Option("--board", metavar="BOARD", help="By whose codec and order it is read.")],
    season_id: Annotated[str, typer.Option("--season", metavar="SEASON", help="The season that it becomes.")],
    starts_at: Starts = None,
    ends_at: Ends = None,
    no_ledger: NoLedger = False,
    because: Because = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Archive a sorted set that Finale never opened, up to its seal. Writes nothing to it and never removes it unasked.

    The season's bounds are the calendar's, unless both are given. Safe to repeat. finale close goes on with rewards.

    Example: finale archive adopt lb:2025 --board goals --season s2025 --no-ledger
    """
    from jobs.seasons.adopting import Request, plan_adopt
    from jobs.seasons.adopting import adopt as adopted

    who = who_acts(operator, lever=no_ledger and not dry_run)
    request = Request(key, board, season_id, _bounds(starts_at, ends_at), no_ledger)
    with wired() as outside:
        if dry_run:
            print_plan(plan_adopt(outside, request, who=who), as_json)
            return
        if no_ledger:
            confirm(f"seal {key} without comparing it with any ledger?", yes)
        observer = output.Watching(quiet=as_json)
        print_run(adopted(outside, request, who=who, because=because, observer=observer), as_json)


def _bounds(starts_at: str | None, ends_at: str | None) -> tuple[datetime, datetime] | None:
    if starts_at is None and ends_at is None:
        return None
    if starts_at is None or ends_at is None:
        raise InputError("--starts-at and --ends-at go together", hint="give both, or neither")
    return instant("--starts-at", starts_at), instant("--ends-at", ends_at)
