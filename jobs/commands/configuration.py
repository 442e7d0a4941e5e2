"""finale init, config check, show, schema, and calendar."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer

from jobs import output
from jobs.commands.common import AsJson, named_path, settings, wired_ledger
from leaderboard.errors import CalendarDiffersError, InputError

if TYPE_CHECKING:
    from leaderboard.season import Bounds

config = typer.Typer(help="The configuration.", no_args_is_help=True)


def init(
    folder: Annotated[Path, typer.Argument(parser=named_path, metavar="[FOLDER]", help="Where to write it.")] = Path(),
) -> None:
    """Write a commented example that works at once: two boards with reward tables.

    Example: finale init && finale config check
    """
    from config.example import write_example

    for path in write_example(folder):
        output.out.print(f"wrote {path}", markup=False)


@config.command("check")
def check(as_json: AsJson = False) -> None:
    """Read the configuration and say whether it can be used.

    Example: finale config check
    """
    found = settings()
    if as_json:
        output.print_json({"ok": True, "path": str(found.path), "boards": sorted(found.boards)})
    else:
        output.out.print(f"{found.path}: good, boards: {', '.join(found.boards) or 'none'}", markup=False)


@config.command("show")
def show() -> None:
    """Show the configuration in force, secrets masked.

    Example: finale config show
    """
    from config.show import show as shown

    output.out.print(shown(settings()), markup=False)


@config.command("schema")
def schema() -> None:
    """Print the JSON Schema of finale.toml, for editors.

    Example: finale config schema > finale.schema.json
    """
    from config.show import json_schema

    output.out.print(json.dumps(json_schema(), indent=2), markup=False)


def calendar(
    board: Annotated[str, typer.Argument(metavar="BOARD")],
    following: Annotated[int, typer.Option("--next", min=1, max=10_000, help="How many seasons.")] = 10,
    after: Annotated[str | None, typer.Option("--from", metavar="TIME", help="From when, ISO 8601; now.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare with the bounds that the ledger has stored.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the board's next seasons with their local and UTC bounds, as its calendar has them.

    With --check, the seasons not yet cleaned whose stored bounds are others: the stored ones stand. Then exit code 17.

    Example: finale calendar goals --next 3
    """
    from leaderboard.calendar import seasons_from

    if check:
        _check(board, as_json)
        return
    found = settings().board(board)
    zone = ZoneInfo(found.calendar.timezone)
    seasons = list(islice(seasons_from(found.calendar, _instant(after)), following))
    rows = [
        {
            "season": season.id,
            "starts_at": season.starts_at,
            "ends_at": season.ends_at,
            "starts_local": season.starts_at.astimezone(zone).isoformat(),
            "ends_local": season.ends_at.astimezone(zone).isoformat(),
        }
        for season in seasons
    ]
    if as_json:
        output.print_json(rows)
        return
    if not rows:
        output.err.print(f"the calendar of {board} lists no later season; see earlier ones with --from TIME")
        return
    output.print_table(
        ("season", f"starts ({found.calendar.timezone})", "ends", "starts (UTC)", "ends (UTC)"),
        [
            (
                season.id,
                f"{season.starts_at.astimezone(zone):%Y-%m-%d %H:%M:%S %z}",
                f"{season.ends_at.astimezone(zone):%Y-%m-%d %H:%M:%S %z}",
                output.utc(season.starts_at),
                output.utc(season.ends_at),
            )
            for season in seasons
        ],
    )


def _check(board: str, as_json: bool) -> None:
    from leaderboard.calendar import differences
    from ledger import seasons

    with wired_ledger() as outside:
        found = outside.settings.board(board)
        stored = [one.bounds for one in seasons.unfinished(outside.database, board, found) if not one.adopted]
    differing = differences(found.calendar, stored)
    if as_json:
        output.print_json(
            [
                {
                    "season": bounds.id,
                    "stored": {"starts_at": bounds.starts_at, "ends_at": bounds.ends_at},
                    "calendar": {"starts_at": said.starts_at, "ends_at": said.ends_at} if said else None,
                }
                for bounds, said in differing
            ]
        )
    elif differing:
        output.print_table(
            ("season", "starts (UTC), stored", "ends, stored", "starts, calendar", "ends, calendar"),
            [
                (bounds.id, *map(output.utc, (bounds.starts_at, bounds.ends_at)), *_said(said))
                for bounds, said in differing
            ],
        )
    else:
        output.out.print(f"the {len(stored)} stored seasons of {board} are as its calendar says")
    if differing:
        raise CalendarDiffersError(
            f"{len(differing)} seasons of {board} have other bounds in the ledger than in its calendar",
            detail="the stored ones stand: a lever has moved them, or the calendar or the zone data changed since",
            hint="change the calendar to match, or move the seasons with finale season extend or cancel",
        )


def _said(said: Bounds | None) -> tuple[str, str]:
    return (output.utc(said.starts_at), output.utc(said.ends_at)) if said else ("not in it", "")


def _instant(text: str | None) -> datetime:
    if text is None:
        return datetime.now(UTC)
    try:
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is not None:
            return instant.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(f"--from {text!r} is no ISO 8601 time", hint="write it like 2026-01-31T00:00:00Z") from None
    raise InputError(f"--from {text!r} has no UTC offset", hint="write it like 2026-01-31T00:00:00Z")
