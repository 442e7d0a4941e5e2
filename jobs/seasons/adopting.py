"""Adopting a sorted set that Finale never opened: checked, then taken through the seal; nothing is written to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.seasons import closing, runner
from jobs.seasons.leasing import leased
from jobs.seasons.runner import Observer, Run
from jobs.wiring import Outside
from leaderboard import keys, strays
from leaderboard.board import Board
from leaderboard.calendar import season_called, seasons_from
from leaderboard.codec import codec_for
from leaderboard.errors import ConfigError, InputError, NotDueError, UnknownNameError, WrongStateError
from leaderboard.names import check_name
from leaderboard.season import Bounds, Season
from leaderboard.standing import Standing
from leaderboard.states import State, Step, reached
from ledger import adoption, seasons
from live.board import LiveBoard
from live.eviction import dangers
from live.keyspace import kinds, sizes

#: How many of the first rows must read like the board's.
LOOKED_AT = 100
#: How many of them a dry run shows.
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asks to have adopted: a key, as a season of a configured board.

    Its ``bounds`` are the calendar's unless given. With ``no_ledger`` nothing is compared, which the seal says.
    """

    key: str
    board: str
    season: str
    bounds: tuple[datetime, datetime] | None = None
    no_ledger: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """What that comes to: the key, and the board and bounds of the season that it is to be."""

    key: str
    board: Board
    bounds: Bounds


def adopt(
    outside: Outside,
    request: Request,
    *,
    who: str,
    because: str = "",
    observer: Observer,
) -> Run:
    """Archive the sorted set as the season that it is asked to be, and return what was done: up to the seal.

    Safe to repeat; until it is sealed, a repetition with another board, other bounds or no ledger begins anew.

    Raises UnknownNameError for an unknown board, season or key, InputError for a key that cannot be the season's or a
    board with shards, NotDueError for a season that has not ended, WrongStateError for a season or key that Finale has
    already, ConfigError for overlapping bounds, and what ``runner.run`` raises.
    """
    asked, known = _asked(outside, request)
    if known is None:
        _check(outside, asked)
        adoption.adopt(outside.database, asked.board, asked.bounds, asked.key, who=who, because=because)
        known = seasons.find(outside.database, request.board, request.season)
        for danger in dangers(outside.redis, asked.key):
            observer.warned(known, Step.SNAPSHOT, danger)
    else:
        _check_same(known, asked.key)
        if not reached(known.state, State.SEALED) and _differs(known, asked):
            _begin_anew(outside, known, asked, who, because)
    season = seasons.find(outside.database, request.board, request.season)
    return runner.run(outside, season, who=who, observer=observer, until=Step.SEAL)


def plan_adopt(
    outside: Outside,
    request: Request,
    *,
    who: str,
) -> list[dict[str, Any]]:
    """Return what ``adopt`` would decide, a line a step, and raise what it would refuse, without changing anything."""
    asked, known = _asked(outside, request)
    if known is not None:
        _check_same(known, asked.key)
        if reached(known.state, State.SEALED):
            return []
        if not _differs(known, asked):
            return closing.plan_close(outside, known, who=who, until=Step.SEAL, early=False)
        _check_bounds(outside, asked)
    else:
        _check_name(outside, asked)
        _check_bounds(outside, asked)
    first = "; ".join(_shown(row) for row in _check_rows(outside, asked)[:SHOWN])
    anew = "begin the season anew: " if known is not None else ""
    compared = "nothing" if asked.board.ledger == "none" else "the ledger's totals, every player"
    rows = sizes(outside.redis, [asked.key])[asked.key]
    name = f"{request.board}/{request.season}"
    return [
        {"step": str(Step.SNAPSHOT), "verdict": "act", "why": f"{anew}read {rows:,} rows at one instant: {first}"},
        {"step": str(Step.RECONCILE), "verdict": "follows", "why": f"compare with {compared}"},
        {
            "step": str(Step.SEAL),
            "verdict": "follows",
            "why": f"seal as {name}, write nothing to it",
        },
    ]


def _shown(row: Standing) -> str:
    reached_at = f", reached at {row.reached_at:%Y-%m-%d %H:%M:%S} UTC" if row.reached_at else ""
    return f"{row.position}. {row.name()} has {row.points:,} points{reached_at}"


def _asked(outside: Outside, request: Request) -> tuple[Asked, Season | None]:
    """Return what is to be adopted, and the season of that name if the ledger has one already."""
    board = outside.settings.board(request.board)
    try:
        check_name(request.season, "season")
    except ConfigError as error:  # here it is no file that is wrong
        raise InputError(f"--season {error.message}", hint=error.hint or "choose another name") from None
    if board.shards.by != "none":
        raise InputError(
            f"board {board.name} is spread over {board.shards.number} sorted sets, and {request.key} is one",
            detail="a standing over several keys cannot be adopted from one of them",
            hint=f"keys named as the board names them are closed with: finale close {board.name} {request.season}; "
            "else adopt the key for a board without shards",
        )
    if request.no_ledger:
        board = board.model_copy(update={"ledger": "none"})
    known = _known(outside, request.board, request.season)
    return Asked(request.key, board, _bounds(board, request.season, request.bounds, known)), known


def _known(outside: Outside, board: str, season: str) -> Season | None:
    return next((one for one in seasons.of_board(outside.database, board) if one.id == season), None)


def _bounds(board: Board, season: str, given: tuple[datetime, datetime] | None, known: Season | None) -> Bounds:
    if given is not None:
        starts_at, ends_at = given
        if starts_at >= ends_at:
            raise InputError(
                f"a season from {starts_at.isoformat()} to {ends_at.isoformat()} does not end after its start"
            )
        return Bounds(starts_at, ends_at, season)
    if known is not None:
        return known.bounds
    if (bounds := season_called(board.calendar, season)) is None:
        raise UnknownNameError(
            f"the calendar of board {board.name} has no season {season!r}",
            hint=f"finale calendar {board.name} lists the ids; or give --starts-at and --ends-at",
        )
    return bounds


def _differs(known: Season, asked: Asked) -> bool:
    return known.bounds != asked.bounds or known.board.definition() != asked.board.definition()


def _begin_anew(outside: Outside, known: Season, asked: Asked, who: str, because: str) -> None:
    _check_bounds(outside, asked)
    _check_rows(outside, asked)
    with leased(outside, known, who) as (lease, _):
        adoption.adopt_again(outside.database, lease, known, asked.board, asked.bounds, who=who, because=because)


def _check_same(known: Season, key: str) -> None:
    """Raise WrongStateError unless the season is an adopted one, of this very key."""
    name = f"{known.board.name} {known.id}"
    if not known.adopted:
        raise WrongStateError(
            f"season {known.name} exists already: it is {known.state}, its live key is {known.live_key}",
            hint=f"close it with: finale close {name}; or adopt the key as another season",
        )
    if known.live_key != key:
        raise WrongStateError(
            f"season {known.name} was adopted already, from the key {known.live_key}",
            hint="adopt this key as another season, with bounds of its own",
        )


def _check(outside: Outside, asked: Asked) -> None:
    _check_name(outside, asked)
    _check_bounds(outside, asked)
    _check_rows(outside, asked)


def _check_name(outside: Outside, asked: Asked) -> None:
    """Raise InputError for a name that no helper key can stand beside, or that says it is another season's."""
    key = asked.key
    if not key:
        raise InputError("no key is named", hint="finale archive adopt KEY --board BOARD --season SEASON")
    if not key.isprintable():
        raise InputError(
            f"{key!r} cannot be adopted: its name is not printable text", hint="COPY it to a plain name, and adopt that"
        )
    if strays.helper(key) is not None:
        raise InputError(
            f"{key!r} cannot be adopted: by its name it is a helper key, which Finale keeps beside a live key",
            hint="adopt the live key itself; or, if it is a board all the same, COPY it to another name and adopt that",
        )
    try:
        keys.helper_key(key, "fence")
    except ConfigError as error:
        raise InputError(error.message, hint="copy it to a name without stray braces, and adopt that: COPY") from None
    for board in outside.boards.values():
        season = strays.shape_of(board.name, board.key, sharded=board.shards.by != "none").season(key)
        mine = (board.name, season) == (asked.board.name, asked.bounds.id)
        if season is not None and not mine and season_called(board.calendar, season) is not None:
            raise InputError(
                f"{key} is by its name the live key of {board.name}/{season}, not of "
                f"{asked.board.name}/{asked.bounds.id}",
                hint=f"adopt it with --board {board.name} --season {season}",
            )


def _check_bounds(outside: Outside, asked: Asked) -> None:
    """Raise NotDueError for a season that has not ended, InputError for one in the way of a season yet to end."""
    now, bounds, board = outside.database.now(), asked.bounds, asked.board
    if bounds.ends_at > now:
        raise NotDueError(
            f"season {board.name}/{bounds.id} has not ended: it ends at {bounds.ends_at:%Y-%m-%d %H:%M:%S} UTC",
            hint="adopt it then; or as it stands now, with --starts-at and an --ends-at that has passed",
        )
    coming = next(seasons_from(board.calendar, now), None) if board.calendar.opens else None
    if coming is not None and coming.id != bounds.id and coming.starts_at < bounds.ends_at:
        raise InputError(
            f"the bounds reach into {board.name}/{coming.id}, which begins at {coming.starts_at:%Y-%m-%d %H:%M:%S} UTC",
            detail="seasons of a board do not overlap, so that one could not be opened",
            hint="let --ends-at be no later, or adopt the key for a board of its own",
        )
    codec_for(board, bounds)


def _check_rows(outside: Outside, asked: Asked) -> list[Standing]:
    """Return the key's first rows; raise unless it is a sorted set and they read as the board writes them."""
    kind = kinds(outside.redis, [asked.key])[asked.key]
    if kind == "none":
        raise UnknownNameError(f"there is no key {asked.key!r} in Redis", hint="check the name, and the database")
    if kind != "zset":
        raise InputError(f"the key {asked.key!r} is a {kind}, not a sorted set", hint="only a sorted set is a board")
    try:
        rows = LiveBoard(outside.redis, asked.board, asked.bounds, asked.key).top(LOOKED_AT)
    except InputError as error:
        raise InputError(
            f"{asked.key} does not read as board {asked.board.name} writes it: {error.message}",
            detail=error.detail,
            hint=_remedy(asked, error.message),
        ) from None
    if asked.board.member == "text" and (odd := next((row for row in rows if not row.is_text), None)) is not None:
        raise InputError(
            f"{asked.key} has the member '{odd.name()}' at position {odd.position:,}, which is not UTF-8",
            hint='a board with such ids needs member = "binary"; until it is sealed, adopting again begins anew',
        )
    if (odd := next((row for row in rows if not _in_time(row, asked)), None)) is not None:
        raise InputError(
            f"{asked.key} does not read as board {asked.board.name} writes it: {odd.name()!r} with score {odd.score!r} "
            f"would have {odd.points:,} points, reached at {odd.reached_at}",
            detail=f"that is outside {asked.bounds.starts_at} to {asked.bounds.ends_at}",
            hint='plain points need a board with ties = "shared"; else check its multiplier and unit, and the bounds',
        )
    return rows


def _remedy(asked: Asked, fault: str) -> str:
    """Return what can be done about a score that the board cannot have written."""
    if "finite" in fault:
        return f"a board has no inf: ZRANGE {asked.key} -inf (-1e308 BYSCORE and (1e308 inf BYSCORE show these members"
    if asked.board.points == "integer" and "whole number" in fault:
        return 'scores with fractions need a board with points = "fraction" and ties = "shared" (docs/adopt.md)'
    return 'plain points need a board with ties = "shared"; else check its multiplier and unit, and the bounds'


def _in_time(row: Standing, asked: Asked) -> bool:
    """Return whether the row was reached in the season, or in its grace; a plain score does not say."""
    last = asked.bounds.ends_at + asked.board.grace
    return row.reached_at is None or asked.bounds.starts_at <= row.reached_at <= last
