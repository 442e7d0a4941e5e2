"""finale reconcile: a season's Redis against its ledger, whenever somebody asks; and putting it right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs import output
from jobs.commands.common import As, AsJson, Because, BoardName, SeasonName, Yes, confirm, who_acts, wired
from leaderboard.errors import DriftError, InputError

if TYPE_CHECKING:
    from jobs.checks.asking import Asked

_SHOWN = 20


def reconcile(
    board: BoardName,
    season_id: SeasonName,
    live: Annotated[bool, typer.Option("--live", help="The live key as it is now.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Count the totals anew from the match results as well.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Write the ledger's truth to Redis.")] = False,
    player: Annotated[
        list[str] | None, typer.Option("--player", metavar="P", help="With --repair: only this one; may be repeated.")
    ] = None,
    because: Because = "",
    yes: Yes = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Compare every player of a season with its ledger, and tell who differs and why.

    Compared are the sealed standings, else the staged ones, else the live key, where players whose totals are still to
    be written are told apart from drift. Exit code 18 if any player differs. With --repair Redis gets what Finale's
    ledger has of exactly the drifting players, or of those named; a season that is held goes on once it is released
    (finale season release). With --deep --repair the totals of the ledger are first made what its match results say.

    Example: finale reconcile goals s2026 --deep
    """
    from jobs.checks import asking
    from jobs.seasons.closing import find

    if player and not repair:
        raise InputError("--player says whom to repair", hint="add --repair")
    if player and deep:
        raise InputError("--deep mends every total that its results do not make", hint="leave --player out")
    who = who_acts(operator, lever=repair)
    with wired() as outside:
        found = find(outside, board, season_id)
        if repair:
            named = asking.ids(found, player or [])
            whom = f"{len(named):,} players named" if named else "every player that differs"
            confirm(f"write the ledger's truth of {whom} to the Redis of {found.name}?", yes)
            done = asking.repair(outside, found, named, who=who, because=because, deep=deep)
            if as_json:
                output.print_json(done.to_json())
            else:
                output.out.print(done.words, markup=False)
            return
        asked = asking.ask(outside, found, live=live, deep=deep)
    if as_json:
        output.print_json(asked.to_json())
    else:
        _print(asked)
    if asked.differs:
        raise DriftError(
            f"{found.name}: {asked.words}",
            detail=f"report: {asked.report}" if asked.report else "",
            hint=asked.remedy,
        )


def _print(asked: Asked) -> None:
    counts: list[tuple[str, Any]] = [(name.replace("_", " "), value) for name, value in asked.counts.items()]
    output.print_table(("players", "count"), [(name, f"{value:,}") for name, value in counts], numbers=("count",))
    for words in asked.shared:
        output.out.print(words, markup=False)
    if asked.rows:
        output.print_table(
            ("player", "what", "Redis", "ledger", "difference", "most likely"),
            asked.rows[:_SHOWN],
            numbers=("Redis", "ledger", "difference"),
        )
        output.print_more(asked.drift - _SHOWN, "--json has those with the most points, the report's Parquet files all")
    if not asked.differs:
        output.out.print("no drift")
