"""Season rows: created from the calendar, advanced under the fence, held and released."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from leaderboard import keys
from leaderboard.board import Board
from leaderboard.codec import codec_for
from leaderboard.errors import ConfigError, UnknownNameError, WrongStateError
from leaderboard.levers import not_again
from leaderboard.season import Bounds, Hold, Season
from leaderboard.states import State, may_follow, reached
from leaderboard.wording import listed
from ledger import journal, leases, opening
from ledger.database import Database
from ledger.leases import Lease, lost


def installation(database: Database) -> str:
    """Return the short random id of this ledger, made when its schema was."""
    row = database.row("seasons.installation")
    assert row is not None
    return str(row["id"])


def create(
    database: Database,
    board: Board,
    bounds: Bounds,
    now: datetime,
    *,
    who: str,
    state: State = State.SCHEDULED,
    missed: bool = False,
) -> bool:
    """Create the season's row, scheduled or open, unless it exists; return whether this call did.

    A season first seen after its grace is a backfill, which only ``finale close`` closes, unless it was ``missed``: of
    a board that ran before. Raises ConfigError, naming both, if the bounds overlap another season of the board.
    """
    backfill = bounds.ends_at + board.grace <= now and not missed
    live_key = keys.live_key(board.key, board.name, bounds.id, bounds.starts_at, bounds.ends_at)
    with database.transaction():
        key = insert(database, board, bounds, state, live_key, backfill=backfill)
        if key is None:
            return False
        journal.write(
            database,
            key,
            "created",
            who=who,
            detail={"state": state, "backfill": backfill, **({"missed": True} if missed else {})},
        )
        if state is not State.SCHEDULED:
            opening.fix(database, key, board)
    return True


def insert(
    database: Database, board: Board, bounds: Bounds, state: State, live_key: str, *, backfill: bool
) -> int | None:
    """Insert a season's row in the present transaction and return its number; None if the board has that season.

    Raises ConfigError for bounds that do not fit the codec, or overlap another season of the board.
    """
    codec_for(board, bounds)
    lock_board(database, board.name)
    if database.row("seasons.find", {"board": board.name, "season": bounds.id}) is not None:
        return None
    check_free(database, board.name, bounds)
    values = {
        "board": board.name,
        "season": bounds.id,
        "state": state,
        "starts_at": bounds.starts_at,
        "ends_at": bounds.ends_at,
        "closes_at": bounds.ends_at + board.grace,
        "backfill": backfill,
        "definition": Jsonb(board.definition()),
        "live_key": live_key,
    }
    row = database.row("seasons.create", values)
    assert row is not None
    return int(row["season_id"])


def lock_board(database: Database, board: str) -> None:
    """Let nobody else create a season of the board, or move its bounds, until the transaction ends."""
    database.rows("seasons.lock_board", {"board": board})


def check_free(database: Database, board: str, bounds: Bounds) -> None:
    """Raise ConfigError, naming both, if the bounds overlap another season of the board, which must be locked."""
    values = {"board": board, "season": bounds.id, "starts_at": bounds.starts_at, "ends_at": bounds.ends_at}
    if other := database.row("seasons.overlapping", values):
        raise ConfigError(
            f"season {bounds.id} of board {board} ({_span(bounds.starts_at, bounds.ends_at)}) overlaps season "
            f"{other['season']} ({_span(other['starts_at'], other['ends_at'])}), which the ledger has already",
            hint="the stored bounds stand; give the new season bounds outside them",
        )


def _span(starts_at: datetime, ends_at: datetime) -> str:
    return f"{starts_at:%Y-%m-%d %H:%M} to {ends_at:%Y-%m-%d %H:%M} UTC"


def find(database: Database, name: str, season: str, configured: Board | None = None) -> Season:
    """Return a season. Raises UnknownNameError, listing what there is, if the ledger does not have it.

    ``configured`` is the board as configured now: what it says beyond the codec and the key holds until the close.
    """
    row = database.row("seasons.find", {"board": name, "season": season})
    if row is None:
        known = [found.id for found in of_board(database, name)]
        order = ", the last ones first" if len(known) > 1 else ""
        raise UnknownNameError(
            f"board {name} has no season {season!r}",
            detail=f"it has {listed(known[::-1], 10)}{order}" if known else "it has none yet",
            hint=f"see: finale calendar {name}",
        )
    return from_row(row, configured)


def of_board(database: Database, name: str, configured: Board | None = None) -> list[Season]:
    """Return all seasons of a board, oldest first."""
    return [from_row(row, configured) for row in database.rows("seasons.of_board", {"board": name})]


def of_keys(database: Database, keys: Iterable[int], configured: Mapping[str, Board]) -> list[Season]:
    """Return the seasons of these numbers, oldest first; ``configured`` as for ``find``, by name."""
    rows = database.rows("seasons.of_keys", {"keys": list(keys)})
    return [from_row(row, configured.get(row["board"])) for row in rows]


def unfinished(database: Database, name: str, configured: Board | None) -> list[Season]:
    """Return the seasons of a board to which something may still be done, the one that ends first first."""
    return [from_row(row, configured) for row in database.rows("seasons.unfinished", {"board": name})]


def every(database: Database, configured: Mapping[str, Board]) -> list[Season]:
    """Return all seasons of all boards, by board and start."""
    return [from_row(row, configured.get(row["board"])) for row in database.rows("seasons.all")]


def lately_cleaned(database: Database, since: datetime, limit: int) -> list[tuple[Season, datetime]]:
    """Return the last seasons cleaned after ``since``, and when, whose live key is Finale's own and no season's now."""
    rows = database.rows("seasons.lately_cleaned", {"since": since, "limit": limit})
    return [(from_row(row, None), row["cleaned_at"]) for row in rows]


@lru_cache(maxsize=1_024)
def _board(definition: str) -> Board:
    """Return a stored definition as a board; a season's is read far more often than it changes."""
    return Board.model_validate(json.loads(definition))


def from_row(row: DictRow, configured: Board | None) -> Season:
    """Return a row of the table as a season; ``configured`` as for ``find``."""
    board = _board(json.dumps(row["definition"]))
    state = State(row["state"])
    if configured is not None and state is not State.CANCELLED:
        if not reached(state, State.CLOSING):
            board = configured.with_fixed_of(board) if row["fixed_at"] is not None else configured
        elif not reached(state, State.RECONCILED):
            board = board.with_ledger_of(configured)
    hold = (
        Hold(row["hold_reason"], row["hold_detail"], row["hold_hint"], row["held_at"])
        if row["held_at"] is not None
        else None
    )
    return Season(
        key=row["season_id"],
        board=board,
        bounds=Bounds(row["starts_at"], row["ends_at"], row["season"]),
        state=state,
        live_key=row["live_key"],
        closes_at=row["closes_at"],
        backfill=row["backfill"],
        frozen_at=row["frozen_at"],
        sealed_at=row["sealed_at"],
        keep_until=row["keep_until"],
        hold=hold,
        attempts=row["attempts"],
        last_error=row["last_error"],
        adopted=row["adopted"],
        retry_at=row["retry_at"],
    )


def advance(
    database: Database,
    lease: Lease,
    before: State,
    after: State,
    *,
    definition: Board | None = None,
    live_key: str | None = None,
    sealed_at: datetime | None = None,
    keep_until: datetime | None = None,
) -> None:
    """Move the season from ``before`` to ``after``. Raises LeaseLostError if no row matches: somebody else owns it.

    To open it fixes ``definition``, unless a result has fixed it before.
    """
    if not may_follow(before, after):
        raise WrongStateError(f"no season goes from {before} to {after}")
    opens = before is State.SCHEDULED and definition is not None
    values = {
        **lease.params,
        "before": before,
        "after": after,
        "definition": Jsonb(definition.definition()) if definition and not opens else None,
        "live_key": None if opens else live_key,
        "sealed_at": sealed_at,
        "keep_until": keep_until,
    }
    with database.transaction():
        if opens:
            leases.check(database, lease)
            assert definition is not None
            opening.fix(database, lease.key, definition)
        if database.row("seasons.advance", values) is None:
            raise lost(lease)


def hold(database: Database, lease: Lease, reason: str, detail: str, hint: str) -> None:
    """Stop the season for a person. It goes on where it stood once released."""
    if database.row("seasons.hold", {**lease.params, "reason": reason, "detail": detail, "hint": hint}) is None:
        raise lost(lease)


def failed(database: Database, lease: Lease, error: str) -> None:
    """Count one more attempt that did not succeed, with its error. Raises LeaseLostError."""
    if database.row("seasons.failed", {**lease.params, "error": error}) is None:
        raise lost(lease)


def hold_by_hand(database: Database, season: Season, *, who: str, because: str) -> None:
    """Stop the season on an operator's word. Raises WrongStateError if it is held already."""
    with database.transaction():
        hint = f"release it with: finale season release {season.board.name} {season.id}"
        if database.row("seasons.hold_by_hand", {"key": season.key, "reason": because, "hint": hint}) is None:
            raise held_already(database, season)
        journal.write(database, season.key, "held", who=who, detail={"because": because})


def held_already(database: Database, season: Season) -> WrongStateError:
    """Return the error that tells who holds the season, since when and why."""
    season = find(database, season.board.name, season.id)
    held = [entry for entry in journal.entries(database, season.key) if entry.event == "held"]
    by = f" by {held[-1].who}" if held else ""
    hold, name = season.hold, f"{season.board.name} {season.id}"
    since = f" since {hold.since:%Y-%m-%d %H:%M:%S} UTC{by}: {hold.reason}" if hold else ""
    return WrongStateError(
        f"{season.name} is on hold already{since}",
        detail=hold.detail if hold else "",
        hint=f"it stays so until: finale season release {name}; see: finale season show {name}",
    )


def not_held(season: Season) -> WrongStateError:
    """Return the error of a release without a hold."""
    return WrongStateError(
        f"{season.name} is not on hold; there is nothing to release",
        detail=f"it is {season.state}",
        hint=f"what happens next: finale season show {season.board.name} {season.id}",
    )


def release(
    database: Database,
    season: Season,
    *,
    who: str,
    because: str,
    lease: Lease | None = None,
    snapshot_again: bool = False,
    accepted: str | None = None,
    empty: bool = False,
) -> None:
    """End the hold; the season goes on where it stood, or from a new snapshot, which needs a ``lease``: no step that is
    under way may record what it has read before.

    ``accepted`` is the hash of a difference that is accepted with it, which the journal keeps, as it does that nobody
    played: ``empty``. Raises WrongStateError without a hold, or for a new snapshot once a seal is committed, and
    LeaseLostError.
    """
    with database.transaction():
        if lease is not None:
            leases.check(database, lease)
        if database.row("seasons.release", {"key": season.key}) is None:
            raise not_held(season)
        if snapshot_again:
            assert lease is not None
            if database.row("seasons.back_to_frozen", lease.params) is None:
                raise not_again(season, sealing=True)
        detail = {"because": because, "snapshot_again": snapshot_again, **({"accepted": accepted} if accepted else {})}
        detail |= {"empty": True} if empty else {}
        journal.write(database, season.key, "released", who=who, detail=detail)


def as_json(season: Season) -> dict[str, Any]:
    """Return the season as an operator sees it, in plain JSON values; times in ISO 8601, UTC."""

    def text(instant: datetime | None) -> str | None:
        return instant.isoformat().replace("+00:00", "Z") if instant else None

    return {
        "board": season.board.name,
        "season": season.id,
        "state": str(season.state),
        "starts_at": text(season.bounds.starts_at),
        "ends_at": text(season.bounds.ends_at),
        "closes_at": text(season.closes_at),
        "frozen_at": text(season.frozen_at),
        "sealed_at": text(season.sealed_at),
        "keep_until": text(season.keep_until),
        "backfill": season.backfill,
        "adopted": season.adopted,
        "live_key": season.live_key,
        "live_keys": list(season.live_keys),
        "frozen_key": season.own_key if season.renames else None,
        "hold": {
            "reason": season.hold.reason,
            "detail": season.hold.detail,
            "hint": season.hold.hint,
            "since": text(season.hold.since),
        }
        if season.hold
        else None,
        "attempts": season.attempts,
        "last_error": season.last_error,
        "retry_at": text(season.retry_at),
    }
