"""finale results void."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobs import output
from jobs.commands.common import As, AsJson, Because, DryRun, Yes, confirm, player_id, who_acts, wired
from leaderboard.wording import counted

if TYPE_CHECKING:
    from jobs.results.voiding import Outcome


def void(
    match: Annotated[str, typer.Argument(metavar="MATCH", help="The match's id.")],
    because: Because,
    source: Annotated[str | None, typer.Option("--source", metavar="S", help="The source of the match.")] = None,
    board: Annotated[str | None, typer.Option("--board", metavar="B", help="The board whose source it is.")] = None,
    player: Annotated[
        str | None, typer.Option("--player", metavar="P", help="Only this player's result; hex on binary boards.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Make a match count no more: totals are recounted, live boards follow, the journal has who and why.

    Seasons that are frozen stay as they are; there the void is kept for corrections. Results of the match that come
    later are refused. Voiding twice is harmless.

    Example: finale results void m-4711 --source goals --because "the server crashed in overtime"
    """
    from jobs.identity import at_terminal
    from jobs.results.taking import source_named
    from jobs.results.voiding import void_match

    who = who_acts(operator, lever=not dry_run)
    with wired() as outside:
        name, boards = source_named(outside, source, board)
        binary = any(one.member == "binary" for one in boards)
        whom = None if player is None else player_id(player, binary=binary)

        def run(dry: bool) -> Outcome:
            return void_match(outside, name, boards, match, whom, who=who, because=because, dry_run=dry)

        if not dry_run and not yes and at_terminal():
            planned = run(True)
            _print(planned, done=False)
            if planned.voided.before is None:
                confirm("Void it?", yes)
        outcome = run(dry_run)
    if as_json:
        output.print_json({"source": name, "match": match, "player": player, "dry_run": dry_run, **outcome.to_json()})
    else:
        _print(outcome, done=not dry_run)
    if outcome.unapplied is not None:
        output.err.print("the void is in the ledger, but not every total reached its live board:")
        raise outcome.unapplied


def _print(outcome: Outcome, *, done: bool) -> None:
    voided = outcome.voided
    if voided.before is not None:
        before = voided.before
        output.out.print(
            f"voided already by {before['who']} at {output.utc(before['voided_at'])} UTC: {before['because']}",
            markup=False,
        )
        return
    output.out.print(f"{counted(voided.results, 'result')} {'voided' if done else 'would be voided'}")
    if voided.seasons:
        output.print_table(
            ("board", "season", "players", "effect"),
            [
                (one.board, one.season, f"{one.players:,}", "kept for corrections" if one.frozen else "recounted")
                for one in voided.seasons
            ],
            numbers=("players",),
        )
