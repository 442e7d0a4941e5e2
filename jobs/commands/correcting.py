"""finale rewards correct: what was granted wrongly is put right, by more grants and by revocations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from config.csv_files import csv_rows
from config.texts import read_lines
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
    player_id,
    who_acts,
    wired,
)
from leaderboard.errors import InputError
from leaderboard.wording import counted, listed

if TYPE_CHECKING:
    from jobs.payout.correcting import Preview
    from jobs.payout.correction_basis import Request
    from jobs.wiring import Outside
    from leaderboard.season import Season

_FILES = (".csv", ".txt")


def correct(
    board: BoardName,
    season_id: SeasonName,
    because: Because,
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="PLAYER|FILE", help="A player, or a .csv or .txt of them; repeatable."),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option("--table", parser=named_path, metavar="FILE", help="The reward table that is right, a TOML file."),
    ] = None,
    voided: Annotated[bool, typer.Option("--voided", help="Count matches voided after the freeze no more.")] = False,
    dry_run: Annotated[bool, typer.Option("--preview", "--dry-run", help="Only tell what would be changed.")] = False,
    yes: Yes = False,
    operator: As = None,
    as_json: AsJson = False,
) -> None:
    """Put right what was granted: issue the difference as further grants and revocations, sealed and delivered.

    Exclusions and changed points of earlier corrections stay; nothing that was sealed or granted is rewritten.

    Example: finale rewards correct goals s2026 --exclude cheater-17 --because "aimbot, ticket 4711" --as ana
    """
    from jobs.payout import correcting
    from jobs.payout.delivering import deliver
    from jobs.seasons.closing import find
    from ledger import corrections

    who = who_acts(operator, lever=not dry_run)
    if not (exclude or table or voided):
        raise InputError("say what is to be put right", hint="give --exclude, --table or --voided")
    with wired() as outside:
        found = find(outside, board, season_id)
        finished = [] if dry_run else correcting.finish_unfinished(outside, found, who=who)
        request = _request(outside, found, exclude or [], table, voided, because, who)
        planned = correcting.preview(outside, found, request)
        told = {
            "board": board,
            "season": season_id,
            "issued": False,
            "finished": finished,
            **planned.to_json(binary=found.board.member == "binary"),
        }
        if not as_json:
            _show(planned, told)
        if planned.change.rows and not dry_run:
            confirm(f"issue correction {planned.number} of {found.name}?", yes)
            seal = correcting.issue(outside, found, request, planned)
            later = deliver(outside, found, who=who)
            dead, _ = corrections.undelivered(outside.database, found.key, planned.number)
            told |= {
                "issued": True,
                "seal": seal.path,
                "waiting": later.grants if later else 0,
                "stopped": later.why if later and later.until is None else None,
                "of_dead_letters": dead,
            }
    if as_json:
        output.print_json(told)
    elif told["issued"]:
        output.out.print(f"correction {planned.number} is sealed: {told['seal']}", markup=False)
        if told["of_dead_letters"]:
            output.err.print(
                f"[bold yellow]warning:[/] {told['of_dead_letters']:,} of the grants that it changes are dead letters, "
                f"so only the change may arrive; send them with: finale rewards retry {board} {season_id} --as NAME"
            )
        if told["waiting"]:
            then = told["stopped"] or "finale tick sends them"
            output.out.print(f"{counted(told['waiting'], 'grant')} to be delivered; {then}", markup=False)


def _request(
    outside: Outside, season: Season, exclude: list[str], table: Path | None, voided: bool, because: str, who: str
) -> Request:
    from jobs.payout.correction_basis import Request
    from jobs.payout.previews import read_table
    from jobs.payout.voided import late_voids

    binary = season.board.member == "binary"
    players = [player for value in exclude for player in _players(value, binary)]
    parsed = None if table is None else read_table(table)
    left = late_voids(outside, season) if voided else None
    folder = table.parent if table is not None else Path()
    return Request(because, who, tuple(dict.fromkeys(players)), parsed, folder, left)


def _players(value: str, binary: bool) -> list[bytes]:
    """Return the ids that ``value`` names: itself, or the column ``player_id`` of a .csv, or the lines of a .txt."""
    path = Path(value)
    if path.suffix not in _FILES:
        return [player_id(value, "--exclude", binary=binary)]
    if path.suffix == ".txt":
        lines = [(number, line.rstrip("\r\n")) for number, line in enumerate(read_lines(path), 1)]
    else:
        lines = [(number, row["player_id"]) for number, row in csv_rows(path, ("player_id",), ("reason",))]
    found = [player_id(text, f"{path}, line {number}:", binary=binary) for number, text in lines if text]
    if not found:
        raise InputError(f"{path} names no player", hint="a .txt has an id a line, a .csv a column player_id")
    return found


def _show(planned: Preview, told: dict[str, Any]) -> None:
    for number in told["finished"]:
        output.out.print(f"correction {number}, which was interrupted, has been brought to its end")
    if told["not_on_board"]:
        gone = told["not_on_board"]
        output.err.print(f"not on the board: {counted(len(gone), 'player')}: {listed(gone, 10)}", markup=False)
        output.err.print(f"a file of players is named {' or '.join(_FILES)}: any other name is a player's")
    if told["left_as_sealed"]:
        left = told["left_as_sealed"]
        output.err.print(
            f"left as sealed, since the ledger had other numbers (an accepted drift): {counted(len(left), 'player')}: "
            f"{listed(left, 10)}; a voided match of theirs is put right with --exclude or --table",
            markup=False,
        )
    if not planned.change.rows:
        output.out.print("nothing differs from what was granted, so there is nothing to correct")
        return
    change = planned.change
    output.out.print(f"correction {planned.number}: {change.rows:,} rows for {counted(change.players, 'player')}")
    output.print_table(
        ("item", "given", "taken back", "in all"),
        [
            (item, f"{change.given.get(item, 0):,}", f"{change.taken.get(item, 0):,}", f"{amount:+,}")
            for item, amount in change.sums.items()
        ],
        numbers=("given", "taken back", "in all"),
    )
    output.print_table(
        ("position", "player", "rule", "item", "amount"),
        [(row["position"], row["player_id"], row["rule"], row["item"], f"{row['amount']:+,}") for row in told["first"]],
        numbers=("position", "amount"),
    )
    if planned.over:
        output.err.print(
            f"[bold yellow]warning:[/] with it the season passes the budget of the reward table: "
            f"{'; '.join(map(str, planned.over))}"
        )
    if change.rows > len(planned.first):
        output.out.print(f"… and {change.rows - len(planned.first):,} more rows")
