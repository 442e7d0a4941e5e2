"""finale rewards check, preview and approve: what a reward table would pay, before anyone is paid."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jobs import output
from jobs.commands.common import (
    As,
    AsJson,
    Because,
    BoardName,
    SeasonName,
    Yes,
    confirm,
    named_path,
    settings,
    who_acts,
    wired,
)
from leaderboard.errors import ConfigError, InputError
from leaderboard.wording import counted

_SHOWN = 5  # players of a rule that a table names
TableFile = Annotated[
    Path | None, typer.Option("--table", parser=named_path, metavar="FILE", help="Another reward table, a rehearsal.")
]


def check(
    table: Annotated[
        Path | None, typer.Argument(parser=named_path, metavar="[TABLE]", help="A reward table; else that of --board.")
    ] = None,
    players: Annotated[int | None, typer.Option("--players", min=0, help="On a board of so many players.")] = None,
    board: Annotated[str | None, typer.Option("--board", help="The configured table of this board.")] = None,
    as_json: AsJson = False,
) -> None:
    """Look for gaps, overlaps, rules that nobody can reach and percentiles that pay nobody. Needs no server.

    Ends with exit code 3 if anything is doubtful.

    Example: finale rewards check rewards/goals.toml --players 300
    """
    from rewards.check import check as checked

    if (table is None) == (board is None):
        raise InputError("give a reward table, or --board, and not both", hint="finale rewards check --board goals")
    found = checked(_read(table) if table is not None else _configured(str(board)), players)
    if as_json:
        output.print_json({"ok": not found, "findings": [one.to_json() for one in found]})
    elif found:
        output.print_table(("what", "rules", "which"), [(one.kind, ", ".join(one.rules), one.what) for one in found])
    else:
        output.out.print(f"{table or board}: nothing doubtful", markup=False)
    if found:
        raise typer.Exit(ConfigError.exit_code)


def _read(path: Path) -> Any:
    from jobs.payout.previews import read_table

    return read_table(path)


def _configured(board: str) -> Any:
    found = settings().reward_table(board)
    if found is None:
        raise InputError(f"board {board} has no reward table", hint="name it with rewards = … in its configuration")
    return found


def preview(board: BoardName, season_id: SeasonName, table: TableFile = None, as_json: AsJson = False) -> None:
    """Show what a season would pay: whom, how much by rule and item, the players at each line. Pays nobody.

    A season without a snapshot is shown as if it closed now. With --table, a rehearsal on any season.

    Example: finale rewards preview goals s2026 --table rewards/next.toml
    """
    from jobs.payout import previews
    from jobs.seasons.closing import find

    with wired() as outside:
        found = find(outside, board, season_id)
        told = previews.preview(outside, found, previews.choose(outside, found, table))
    if as_json:
        output.print_json(told)
    else:
        _print(told)


def approve(
    board: BoardName,
    season_id: SeasonName,
    digest: Annotated[str, typer.Argument(metavar="HASH", help="The preview's hash, or its first 12 characters.")],
    because: Because,
    yes: Yes = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Approve the grants of a preview, by its hash, and let the season go on; what is paid is that, or it holds again.

    Also lets exactly these grants pass the budget, or be paid by another table than that of the close.

    Example: finale rewards approve goals s2026 3f9a1c0e77d2 --because "agreed with design" --as ana
    """
    from jobs.payout import previews, rewarding
    from jobs.seasons.closing import find

    who = who_acts(operator, lever=True)
    with wired() as outside:
        found = find(outside, board, season_id)
        report = previews.find_report(outside, found, digest)
        confirm(f"pay {counted(report['grants'], 'grant')} of {found.name}, hash {report['hash'][:12]}?", yes)
        rewarding.approve(outside, found, report, who=who, because=because)
    if as_json:
        output.print_json({"board": board, "season": season_id, "hash": report["hash"], "grants": report["grants"]})
    else:
        output.out.print(
            f"approved: {counted(report['grants'], 'grant')} of {board}/{season_id}, hash {report['hash']}"
        )


def _print(told: dict[str, Any]) -> None:
    from jobs.payout.absent import Absent

    if told["caveat"]:
        output.out.print(told["caveat"], markup=False, style="bold")
    removed = f", {told['removed']:,} excluded or not eligible" if told["removed"] else ""
    output.out.print(
        f"{told['board']}/{told['season']}: {counted(told['players'], 'player')}{removed}; "
        f"{counted(told['grants'], 'grant')} to {told['paid_players']:,}, by {told['table']}",
        markup=False,
    )
    for one in told["not_on_board"]:
        output.out.print(str(Absent(**{**one, "first": tuple(one["first"])})), markup=False)
    output.out.print()
    output.print_table(
        ("rule", "condition", "players", "items", "first of them"),
        [
            (
                one["rule"],
                one["condition"],
                f"{one['players']:,}",
                ", ".join(f"{amount:,} {item}" for item, amount in one["items"].items()),
                ", ".join(who["player_id"] for who in one["who"][:_SHOWN]),
            )
            for one in told["rules"]
        ],
        numbers=("players",),
    )
    before = told["before"]
    output.out.print()
    output.print_table(
        ("item", "cost", "budget", f"than {before['season']}" if before else "than before"),
        [
            (
                one["item"],
                f"{one['cost']:,}",
                "" if one["budget"] is None else f"{one['budget']:,}{' PASSED' if one['over_budget'] else ''}",
                "" if one["difference"] is None else f"{one['difference']:+,}",
            )
            for one in told["cost"]
        ],
        numbers=("cost", "budget", "than before"),
    )
    output.out.print()
    output.print_table(
        ("line of", "league", "last in", "points", "first out", "points"),
        [(one["rule"], one["league"] or "", *_at(one["last_in"]), *_at(one["first_out"])) for one in told["lines"]],
    )
    output.out.print(f"\nhash {told['hash']}\nreport {told['report']}", markup=False)


def _at(row: dict[str, Any] | None) -> tuple[str, str]:
    return ("", "") if row is None else (f"{row['place']:,}. {row['player_id']}", str(row["points"]))
