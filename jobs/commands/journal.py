"""finale journal, and how its entries are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs import output
from jobs.commands.common import AsJson, wired_ledger
from leaderboard.errors import InputError

if TYPE_CHECKING:
    from ledger.journal import Entry


def journal(
    board: Annotated[str | None, typer.Argument(metavar="[BOARD]", help="Without one: what concerns all.")] = None,
    season_id: Annotated[str | None, typer.Argument(metavar="[SEASON]")] = None,
    as_json: AsJson = False,
) -> None:
    """Tell what was done to a season, when, by whom and why; without one, when everything was paused and resumed.

    Example: finale journal goals s2026 --json
    """
    from jobs.seasons.closing import find
    from ledger import journal as entries

    if (board is None) != (season_id is None):
        raise InputError(
            f"a journal is a season's, and {board} is a board",
            hint=f"give both BOARD and SEASON, or neither; its seasons: finale season list {board}",
        )
    with wired_ledger() as outside:
        key = find(outside, board, season_id).key if board and season_id else entries.EVERYTHING
        found = entries.entries(outside.database, key)
    if as_json:
        output.print_json(journal_json(found))
    elif found:
        print_journal(found)
    else:
        output.out.print("the journal is empty")


def journal_json(found: list[Entry]) -> list[dict[str, Any]]:
    """Return the entries as plain JSON values."""
    return [
        {"at": one.at, "event": one.event, "step": one.step, "fence": one.fence, "who": one.who, "detail": one.detail}
        for one in found
    ]


def print_journal(found: list[Entry]) -> None:
    """Write the entries as a table."""
    output.print_table(
        ("at (UTC)", "event", "step", "who", "detail"),
        [(output.utc(one.at), one.event, one.step, one.who, _told_of(one.detail)) for one in found],
    )


def _told_of(detail: dict[str, Any]) -> str:
    """Return an entry's detail in one line."""
    if "figures" in detail:
        by = (f"by {detail['by']}",) if "by" in detail else ()
        return "; ".join([str(detail["figures"]), *(f"warning: {each}" for each in detail.get("warnings", ())), *by])
    said = {key: value for key, value in detail.items() if value not in ("", None, False)}
    told = {key: said[key] for key in ("message", "detail", "hint", *said) if key in said}
    return ", ".join(str(value) if key == "message" else f"{key} {value}" for key, value in told.items())
