"""finale rebuild and rebalance: live boards made anew from the ledger, and their bands of score cut anew."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs import output
from jobs.commands.common import As, AsJson, Because, BoardName, DryRun, SeasonName, Yes, confirm, who_acts, wired
from leaderboard.errors import InputError
from leaderboard.wording import counted


def rebuild(
    board: BoardName,
    season_id: SeasonName,
    because: Because = "",
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
    from jobs.boards.rebuilding import plan
    from jobs.boards.rebuilding import rebuild as rebuilt
    from jobs.seasons.closing import find

    who = who_acts(operator, lever=not dry_run)
    with wired() as outside:
        found = find(outside, board, season_id)
        planned = plan(outside, found)
        if dry_run:
            if as_json:
                output.print_json(planned.to_json())
            else:
                output.out.print(
                    f"{planned.season}: {counted(planned.players, 'player')} of the ledger would replace "
                    f"{planned.rows:,} rows of {', '.join(planned.keys)}; {planned.waiting:,} still to write",
                    markup=False,
                )
            return
        confirm(f"replace {planned.rows:,} rows by the ledger's {counted(planned.players, 'player')}?", yes)
        done = rebuilt(
            outside,
            found,
            who=who,
            because=because,
            progress=lambda rows: output.heard("rebuild.sent", rows=rows),
        )
    if as_json:
        output.print_json(done.to_json())
    else:
        output.out.print(
            f"{done.season}: {counted(done.players, 'player')} in place of {done.before:,} rows, "
            f"{counted(done.followed, 'total')} followed, in {done.seconds:.1f} seconds",
            markup=False,
        )


def rebalance(
    board: BoardName,
    season_id: SeasonName,
    cuts: Annotated[str, typer.Option("--cuts", metavar="POINTS,…", help="As many as the season has, ascending.")],
    because: Because = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Cut the bands of a board that is spread by score anew, before its freeze; players move to where they belong.

    Example: finale rebalance goals s2026 --cuts 1000,5000 --dry-run
    """
    from jobs.boards import rebalancing
    from jobs.seasons.closing import find

    who, points = who_acts(operator, lever=not dry_run), _points(cuts)
    with wired() as outside:
        found = find(outside, board, season_id)
        told = rebalancing.plan(outside, found, points)
        if not dry_run:
            confirm(f"move {told.moved:,} of {counted(sum(told.players), 'player')} of {found.name}?", yes)
            told = rebalancing.rebalance(outside, found, points, who=who, because=because)
    if as_json:
        output.print_json(told.to_json())
        return
    edges = ["", *(f"{cut:,}" for cut in told.cuts)]
    output.print_table(
        ("from points", "players"),
        [(edge, f"{players:,}") for edge, players in zip(edges, told.players, strict=True)],
        numbers=("from points", "players"),
    )
    output.out.print(f"{counted(told.moved, 'player')} {'would move' if dry_run else 'moved'}")


def _points(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--cuts {text!r} is no list of whole points", hint="write it like --cuts 1000,5000") from None
