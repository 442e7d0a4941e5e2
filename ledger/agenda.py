"""When there is something to do: the stored instants to come, how far a board has been run, and what may be due now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from psycopg.rows import DictRow

from leaderboard.board import Board
from leaderboard.season import Bounds, Season
from leaderboard.states import State
from leaderboard.timing import Timing
from ledger import seasons
from ledger.database import Database


@dataclass(frozen=True, slots=True)
class Played:
    """A season of a board on Finale's ledger that takes results."""

    row: DictRow
    board: Board
    pending: bool  #: whether Redis lacks a total
    written: bool  #: whether it was ever written to
    checked_at: datetime | None  #: when it was last compared with Redis

    def season(self) -> Season:
        """Return the season. Raises ValueError for a stored definition that this version cannot read."""
        return seasons.from_row(self.row, self.board)


@dataclass(frozen=True, slots=True)
class BoardAgenda:
    """One board, as a tick finds it."""

    last_end: datetime | None  #: when the last season ends that it has by its calendar
    lacks: bool  #: whether a season that was asked for is not there
    owes: bool  #: whether grants are to be sent, or a correction is to be finished
    timings: tuple[Timing, ...]  #: of its seasons that have not ended
    played: tuple[Played, ...]


def look(
    database: Database, boards: Mapping[str, Board], wanted: Mapping[str, Iterable[str]]
) -> dict[str, BoardAgenda]:
    """Return what there is to know of every board to tell whether anything is due there; one statement for all.

    ``wanted`` has the ids of the seasons that each board should have.
    """
    pairs = [(name, season) for name, ids in wanted.items() for season in ids]
    values = {
        "boards": list(boards),
        "own": [name for name, board in boards.items() if board.ledger == "own"],
        "wanted_boards": [name for name, _ in pairs],
        "wanted": [season for _, season in pairs],
    }
    found: dict[str, list[DictRow]] = {name: [] for name in boards}
    for row in database.rows("agenda.look", values):
        found[row["name"]].append(row)
    return {name: _agenda(rows, boards[name]) for name, rows in found.items()}


def _agenda(rows: list[DictRow], board: Board) -> BoardAgenda:
    first = rows[0]  # a board without seasons has a row all the same
    there = [row for row in rows if row["state"] is not None]
    return BoardAgenda(
        first["last_end"],
        first["lacks"],
        first["owes"],
        tuple(timing(row) for row in there),
        tuple(
            Played(row, board, row["pending"], row["written"], row["checked_at"])
            for row in there
            if row["definition"] is not None
        ),
    )


def timing(row: DictRow) -> Timing:
    """Return what a season's row says of when it goes on."""
    return Timing(
        State(row["state"]),
        row["starts_at"],
        row["ends_at"],
        row["closes_at"],
        row["keep_until"],
        row["retry_at"],
        row["backfill"],
        row["adopted"],
    )


def last_end(database: Database, board: str) -> datetime | None:
    """Return when the last season ends that the board has by its calendar, not as a backfill; None if it has none."""
    row = database.row("agenda.last_end", {"board": board})
    return row["ends_at"] if row else None


def known(database: Database, board: str, ids: Iterable[str]) -> set[str]:
    """Return those of the seasons that the board has already, whatever has become of them."""
    return {row["season"] for row in database.rows("agenda.known", {"board": board, "ids": list(ids)})}


def around(database: Database, board: str, bounds: Bounds) -> list[tuple[Bounds, State]]:
    """Return the stored seasons that touch ``bounds`` or end up to a week before, in order, each with its state."""
    values = {"board": board, "first": bounds.starts_at - timedelta(days=7), "last": bounds.ends_at}
    rows = database.rows("seasons.bounds_between", values)
    return [(Bounds(row["starts_at"], row["ends_at"], row["season"]), State(row["state"])) for row in rows]


def wake_ups(database: Database, boards: Iterable[str], within: timedelta) -> list[datetime]:
    """Return the stored instants to come at which something may become due, in order, none twice."""
    rows = database.rows("agenda.wake_ups", {"boards": list(boards), "within": within})
    return [row["at"] for row in rows]
