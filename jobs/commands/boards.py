"""finale standings, top, rank and around: what a board says, live or from the archive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs import output
from jobs.commands.common import AsJson, BoardName, SeasonName, player_id, wired
from leaderboard.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from jobs.wiring import Outside
    from leaderboard.season import Season
    from leaderboard.standing import Standing

Player = Annotated[str, typer.Argument(metavar="PLAYER", help="The player's id; hex on binary boards.")]
Asked = Annotated[
    str | None, typer.Option("--season", metavar="S", help="Else the one played now, or the last that began.")
]


def standings(
    board: BoardName,
    season_id: SeasonName,
    top: Annotated[int | None, typer.Option("--top", min=1, max=1_000_000, help="The first K positions.")] = None,
    player: Annotated[
        str | None, typer.Option("--player", metavar="P", help="One player; hex on binary boards.")
    ] = None,
    around: Annotated[
        int, typer.Option("--around", min=0, max=10_000, help="With --player: K rows on either side.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Show a season's standings: from the live key until it is cleaned, from the archive afterwards.

    The name of a board with segments shows the first positions of all of them together.

    Example: finale standings goals s2026 --player "Harry Kane" --around 2
    """
    from jobs.boards import standings as read
    from jobs.boards.playing import season_to_read

    if player is not None and top is not None:
        raise InputError("--top and --player ask for different rows", hint="give one of them")
    if player is None and around:
        raise InputError("--around needs a player", hint="add --player P")
    with wired() as outside:
        if player is None and board in outside.settings.segments:
            rows, binary, lost = _top_of_all(outside, board, season_id, top or 10)
            _print(rows, binary, as_json)
            _note_lost(lost)
            return
        found = season_to_read(outside, board, season_id)
        binary = _binary(found)
        if player is None:
            rows = read.top(outside, found, top or 10)
        else:
            rows = read.around(outside, found, player_id(player, "--player", binary=binary), around)
        lost = [found] if not rows and read.is_lost(outside, found) else []
    _print(rows, binary, as_json)
    _note_lost(lost)


def top(
    board: BoardName,
    k: Annotated[int, typer.Option("--top", "-k", min=1, max=1_000_000, help="How many positions.")] = 10,
    season_id: Asked = None,
    as_json: AsJson = False,
) -> None:
    """Show the first positions of the season that is played now.

    Example: finale top goals -k 100
    """
    from jobs.boards import standings as read
    from jobs.boards.playing import season_to_read

    with wired() as outside:
        names = outside.settings.segments.get(board, (board,))
        found = [season_to_read(outside, name, season_id) for name in names]
        rows = read.top_of_all(outside, found, k) if len(found) > 1 else read.top(outside, found[0], k)
        told = _Told.of(outside, found) if season_id is None else None
        lost = [] if rows else [season for season in found if read.is_lost(outside, season)]
    _print(rows, _binary(found[0]), as_json, told)
    if as_json and told and not rows:
        # The rows name the season, where there are any.
        output.err.print(f"note: {told.title} has no players", markup=False)
    _note_lost(lost)


def _note_lost(lost: Sequence[Season]) -> None:
    """Tell of live keys that are not there though the ledger has players: an empty table alone would say nobody."""
    for season in lost:
        output.err.print(
            f"note: {season.name} has players in the ledger, but there is no live key {season.standing_key}; "
            f"finale rebuild {season.board.name} {season.id} writes it anew",
            markup=False,
        )


def around(
    board: BoardName,
    player: Player,
    n: Annotated[int, typer.Option("-n", min=0, max=4_999, help="How many rows on either side.")] = 5,
    season_id: Asked = None,
    as_json: AsJson = False,
) -> None:
    """Show a player with the neighbours, all from one version of the board.

    Example: finale around goals "Harry Kane" -n 3
    """
    from jobs.boards import standings as read
    from jobs.boards.playing import season_to_read

    with wired() as outside:
        found = season_to_read(outside, board, season_id)
        rows = read.around(outside, found, player_id(player, "PLAYER", binary=_binary(found)), n)
        told = _Told.of(outside, [found]) if season_id is None else None
    _print(rows, _binary(found), as_json, told)


def rank(
    board: BoardName,
    player: Player,
    season_id: Asked = None,
    estimated: Annotated[
        bool, typer.Option("--estimated", help="From the counts of the board's score bands, with a bound of the error.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell a player's rank, among how many, and the percentile: among the top p percent.

    Example: finale rank goals "Harry Kane" --json
    """
    from jobs.boards import standings as read
    from jobs.boards.playing import season_to_read
    from leaderboard.codec import codec_for, from_microseconds

    with wired() as outside:
        found = season_to_read(outside, board, season_id)
        told = read.rank(outside, found, player_id(player, "PLAYER", binary=_binary(found)), exact=not estimated)
        season = _Told.of(outside, [found])
    points, reached = codec_for(found.board, found.bounds).decode(told.score)
    reached_at = None if reached is None else from_microseconds(reached)
    if as_json:
        output.print_json(
            {
                "board": board,
                **season.to_json(),
                "player_id": player,
                "rank": told.rank,
                "error": told.error,
                "players": told.players,
                "percentile": told.percentile,
                "points": points,
                "reached_at": reached_at,
            }
        )
        return
    season.print_title()
    about = f" (within {told.error:,})" if told.error else ""
    output.print_table(
        ("rank", "of players", "top percent", "points", "reached at (UTC)"),
        [(f"{told.rank:,}{about}", f"{told.players:,}", f"{told.percentile:.3f}", points, output.utc(reached_at))],
        numbers=("rank", "of players", "top percent", "points"),
    )


@dataclass(frozen=True, slots=True)
class _Told:
    """Which season is shown, and since when it is over: without --season nobody has said which."""

    season: str
    over_since: datetime | None

    @classmethod
    def of(cls, outside: Outside, found: Sequence[Season]) -> _Told:
        """Return it of one season, or of a board's segments together."""
        ends = max(season.bounds.ends_at for season in found)
        names = ", ".join(sorted({season.id for season in found}))
        return cls(names, ends if ends <= outside.database.now() else None)

    def to_json(self) -> dict[str, Any]:
        return {"season": self.season, "over": self.over_since is not None}

    @property
    def title(self) -> str:
        over = f", which is over since {output.utc(self.over_since)} UTC," if self.over_since else ""
        return f"season {self.season}{over}"

    def print_title(self) -> None:
        output.out.print(self.title.rstrip(","), markup=False)


def _print(rows: Sequence[Standing], binary: bool, as_json: bool, told: _Told | None = None) -> None:
    if as_json:
        more = told.to_json() if told else {}
        output.print_json([{**more, **row.to_json(binary=binary)} for row in rows])
        return
    if told:
        told.print_title()
    output.print_table(
        ("position", "rank", "player", "points", "reached at (UTC)"),
        [(row.position, row.rank, row.name(binary=binary), row.points, output.utc(row.reached_at)) for row in rows],
        numbers=("position", "rank", "points"),
    )


def _top_of_all(
    outside: Outside, board: str, season_id: str | None, k: int
) -> tuple[list[Standing], bool, list[Season]]:
    """Return the first ``k`` rows of a board's segments together, whether ids are binary, and whose keys are lost."""
    from jobs.boards import standings as read
    from jobs.boards.playing import season_to_read

    found = [season_to_read(outside, name, season_id) for name in outside.settings.segments[board]]
    rows = read.top_of_all(outside, found, k)
    lost = [] if rows else [season for season in found if read.is_lost(outside, season)]
    return rows, _binary(found[0]), lost


def _binary(season: Season) -> bool:
    return season.board.member == "binary"
