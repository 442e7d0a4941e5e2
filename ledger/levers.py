"""The levers that move a season's bounds or take it back, each one transaction with its entry in the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from leaderboard import keys
from leaderboard.board import Board
from leaderboard.errors import WrongStateError
from leaderboard.levers import Extension, Past
from leaderboard.season import Bounds, Season
from ledger import barrier, counting, journal, leases, opening, seals, seasons
from ledger.database import Database
from ledger.leases import Lease

Following = Sequence[tuple[Season, bool]]


def following(database: Database, season: Season, until: datetime) -> list[tuple[Season, bool]]:
    """Return the seasons that overlap one that lasts until then, in order, each with whether it has results."""
    values = {"board": season.board.name, "key": season.key, "since": season.bounds.ends_at, "until": until}
    rows = database.rows("levers.following", values)
    return [(seasons.from_row(row, None), row["has_results"]) for row in rows]


def has_results(database: Database, season: Season) -> bool:
    """Return whether anything was played in the season, as far as the ledger knows."""
    row = database.row("levers.has_results", {"key": season.key})
    return bool(row and row["found"])


def past(database: Database, board: str) -> list[Past]:
    """Return what steps took lately: of this board, or of all others where it has taken none."""
    for own in (True, False):
        if rows := database.rows("levers.past", {"board": board, "own": own}):
            return [Past(**row) for row in rows]
    return []


def cut_short(database: Database, season: Season, now: datetime, *, who: str, because: str = "") -> datetime:
    """End the season now, or its grace if it has ended, and return the new end.

    The end never lies before a result that has counted already. Runs behind the source's barrier, so no result is being
    taken meanwhile. Raises WrongStateError if the season has not begun, or is frozen.
    """
    with database.transaction():
        source = counting.source_id(database, season.board.source)
        barrier.close(database, barrier.SOURCES, source, f"source {season.board.source}")
        last = database.row("levers.last_played", {"key": season.key, "source_id": source})
        ends_at = now
        if last and last["played_at"] is not None and last["played_at"] >= now:
            ends_at = last["played_at"] + timedelta(microseconds=1)
        row = database.row("levers.cut_short", {"key": season.key, "ends_at": ends_at})
        if row is None:
            raise WrongStateError(
                f"{season.name} cannot be closed early: it has not begun, or is past its grace already",
                hint=f"see: finale season show {season.board.name} {season.id}",
            )
        journal.write(
            database,
            season.key,
            "closed early",
            who=who,
            detail={
                "because": because,
                "ends_at": row["ends_at"].isoformat(),
                "planned_end": season.bounds.ends_at.isoformat(),
            },
        )
        found: datetime = row["ends_at"]
        return found


def forget_retention(database: Database, season: Season, *, who: str, because: str = "") -> None:
    """Let the season be cleaned now instead of at the end of keep_live."""
    with database.transaction():
        if database.row("levers.keep_until_now", {"key": season.key}) is not None:
            journal.write(database, season.key, "retention cut short", who=who, detail={"because": because})


def extend(
    database: Database,
    season: Season,
    until: datetime,
    verdict: Callable[[Season, datetime, Following], Extension],
    *,
    who: str,
    because: str,
) -> Extension:
    """Move the season's end, and the next one's start with it, as ``verdict`` says of both as they are now.

    No result is being counted meanwhile; those that lie in the longer season now are counted in it. Raises what
    ``verdict`` raises.
    """
    with database.transaction():
        _stop_counting(database, season.board)
        season = _locked(database, season)
        found = following(database, season, until)
        extension = verdict(season, database.now(), found)
        _move(database, season, extension.bounds, extension.closes_at)
        detail = {**_moved(season.bounds, extension.bounds), "because": because}
        journal.write(database, season.key, "extended", who=who, detail=detail)
        _move_following(database, extension, found, who=who, because=f"{season.id} was extended: {because}")
    return extension


def reopen(
    database: Database,
    lease: Lease,
    season: Season,
    until: datetime | None,
    verdict: Callable[[Season, datetime, bool, Following], Extension],
    *,
    who: str,
    because: str,
) -> tuple[Extension, int]:
    """Take the season back to open, as ``verdict`` says; return its new bounds, and how many late results count now.

    What its steps had found is forgotten, and its hold with it. What was voided after the freeze counts no more. Raises
    what ``verdict`` raises, and LeaseLostError.
    """
    with database.transaction():
        leases.check(database, lease)
        _stop_counting(database, season.board)
        season = _locked(database, season)
        found = following(database, season, until) if until else []
        sealing = seals.find(database, season.key, "standings") is not None
        extension = verdict(season, database.now(), sealing, found)
        if database.row("levers.reopen", {**lease.params, "before": season.state}) is None:
            raise leases.lost(lease)
        database.rows("levers.forget_results", {"key": season.key})
        taken = database.rows("levers.take_late", {"key": season.key, "ends_at": extension.bounds.ends_at})
        # No total stands any more, so corrections have nothing to undo: what is void counts no more.
        followed = database.rows("levers.forget_late_voids", {"key": season.key})
        _move(database, season, extension.bounds, extension.closes_at)
        detail = {"from": str(season.state), "late_counted": len(taken), "closes_at": extension.closes_at.isoformat()}
        detail |= {"voids_followed": len(followed), **_moved(season.bounds, extension.bounds), "because": because}
        journal.write(database, season.key, "reopened", who=who, fence=lease.fence, detail=detail)
        _move_following(database, extension, found, who=who, because=f"{season.id} was reopened: {because}")
    return extension, len(taken)


def cancel(database: Database, lease: Lease, season: Season, *, who: str, because: str) -> None:
    """Let a season that never opened not take place. Raises WrongStateError if it has results, and LeaseLostError."""
    with database.transaction():
        _stop_counting(database, season.board)
        if has_results(database, season):
            raise WrongStateError(
                f"{season.name} has results already; only a season that never opened is cancelled",
                hint=f"end it instead, once it has begun: finale close {season.board.name} {season.id} --now",
            )
        if database.row("levers.cancel", lease.params) is None:
            raise leases.lost(lease)
        journal.write(database, season.key, "cancelled", who=who, fence=lease.fence, detail={"because": because})


def retry(database: Database, season: Season, *, who: str, because: str) -> None:
    """Let the step that failed be tried again at once. Raises WrongStateError if the season is on hold by now."""
    with database.transaction():
        if database.row("levers.retry", {"key": season.key}) is None:
            raise WrongStateError(
                f"{season.name} is on hold by now",
                hint=f"see why: finale season show {season.board.name} {season.id}",
            )
        journal.write(
            database,
            season.key,
            "retried",
            who=who,
            detail={"because": because, "attempts": season.attempts, "last_error": season.last_error},
        )


def _stop_counting(database: Database, board: Board) -> None:
    source = counting.source_id(database, board.source)
    barrier.close(database, barrier.SOURCES, source, f"source {board.source}")
    seasons.lock_board(database, board.name)


def _locked(database: Database, season: Season) -> Season:
    row = database.row("levers.season", {"key": season.key})
    assert row is not None
    return seasons.from_row(row, season.board)


def _move(database: Database, season: Season, bounds: Bounds, closes_at: datetime) -> None:
    board = season.board
    values: dict[str, Any] = {
        "key": season.key,
        "starts_at": bounds.starts_at,
        "ends_at": bounds.ends_at,
        "closes_at": closes_at,
        "live_key": keys.live_key(board.key, board.name, bounds.id, bounds.starts_at, bounds.ends_at),
    }
    row = database.row("levers.move", values)
    if row and row["fixed"] and board.ledger == "own":
        opening.count_again(database, season.key, board, bounds)


def _move_following(database: Database, extension: Extension, found: Following, *, who: str, because: str) -> None:
    if extension.following is None:
        return
    after, _ = found[0]
    _move(database, after, extension.following, after.closes_at)
    detail = {**_moved(after.bounds, extension.following), "because": because}
    journal.write(database, after.key, "moved", who=who, detail=detail)


def _moved(before: Bounds, after: Bounds) -> Mapping[str, str]:
    """Return the bounds that changed, as the journal keeps them."""
    told: dict[str, str] = {}
    for name in ("starts_at", "ends_at"):
        if getattr(before, name) != getattr(after, name):
            told |= {name: getattr(after, name).isoformat(), f"{name}_before": getattr(before, name).isoformat()}
    return told
