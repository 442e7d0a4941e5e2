"""finale results late, conflicts, refused, voided: what did not count, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobs import output
from jobs.commands.common import AsJson, BoardName, SeasonName, player_id, wired

if TYPE_CHECKING:
    from ledger.left_out import Listing

Player = Annotated[str | None, typer.Option("--player", metavar="P", help="One player's; hex on binary boards.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1_000_000, help="So many rows at most.")]
AnySeason = Annotated[
    str | None, typer.Argument(metavar="[SEASON]", help="The season's id; without one, of all times.")
]

_ID, _REASON = 80, 300  #: characters that a table shows


def late(
    board: BoardName, season_id: SeasonName, player: Player = None, limit: Limit = 100, as_json: AsJson = False
) -> None:
    """List results that came after the season was frozen: kept, and counted by no total.

    Example: finale results late goals s2026
    """
    from jobs.seasons.closing import find
    from ledger import left_out

    with wired() as outside:
        season = find(outside, board, season_id)
        binary = season.board.member == "binary"
        found = left_out.late(outside.database, season, _player(player, binary), limit)
    _print(found, binary, as_json)


def voided(
    board: BoardName, season_id: SeasonName, player: Player = None, limit: Limit = 100, as_json: AsJson = False
) -> None:
    """List results whose match was voided, by whom, why, and whether that was after the freeze.

    Example: finale results voided goals s2026 --json
    """
    from jobs.seasons.closing import find
    from ledger import left_out

    with wired() as outside:
        season = find(outside, board, season_id)
        binary = season.board.member == "binary"
        found = left_out.voided(outside.database, season, _player(player, binary), limit)
    _print(found, binary, as_json)


def refused(
    board: BoardName, season_id: AnySeason = None, player: Player = None, limit: Limit = 100, as_json: AsJson = False
) -> None:
    """List results that were refused, with the reason and where they stood.

    Rows whose time could not be read are in the list of every season.

    Example: finale results refused goals s2026 --player ann
    """
    _print_set_aside("refused", board, season_id, player, limit, as_json)


def conflicts(
    board: BoardName, season_id: AnySeason = None, player: Player = None, limit: Limit = 100, as_json: AsJson = False
) -> None:
    """List results that gave other values for a match and player than what was taken first, which stands.

    Example: finale results conflicts goals s2026
    """
    _print_set_aside("conflicting", board, season_id, player, limit, as_json)


def _print_set_aside(
    kind: str, board: str, season_id: str | None, player: str | None, limit: int, as_json: bool
) -> None:
    from jobs.seasons.closing import find
    from ledger import left_out

    read = left_out.refused if kind == "refused" else left_out.conflicting
    with wired() as outside:
        season = find(outside, board, season_id) if season_id else None
        one = season.board if season else outside.settings.board(board)
        binary = one.member == "binary"
        found = read(outside.database, one, season, _player(player, binary), limit)
    _print(found, binary, as_json)


def _player(player: str | None, binary: bool) -> bytes | None:
    return None if player is None else player_id(player, binary=binary)


def _short(value: object, most: int = _ID) -> str:
    """Return the value as a table has room for it; with --json it is whole."""
    text = "" if value is None else str(value)
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def _print(found: Listing, binary: bool, as_json: bool) -> None:
    if as_json:
        output.print_json([row.to_json(binary=binary) for row in found.rows])
        return
    if not found.total:
        output.out.print("none")
        return
    output.print_table(
        ("match", "player", "points", "played at (UTC)", "why", "recorded (UTC)", "from", "line"),
        [
            (
                _short(row.match_id),
                _short(row.name(binary=binary)),
                _short(row.points),
                output.utc(row.played_at),
                _short(row.reason, _REASON),
                output.utc(row.at),
                row.origin,
                row.line,
            )
            for row in found.rows
        ],
        numbers=("points", "line"),
    )
    if found.total > len(found.rows):
        output.out.print(f"… {found.total - len(found.rows):,} more; --limit shows them")
