"""What no board can tell alone: that live keys and current keys never coincide, and that seasons fit their codecs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice

from leaderboard.board import Board
from leaderboard.calendar import seasons_from
from leaderboard.codec import codec_for
from leaderboard.errors import ConfigError
from leaderboard.keys import live_key, shard_keys, slot
from leaderboard.season import Bounds

_AHEAD = timedelta(days=5 * 366)  # a leap year is among them
_LEAST, _MOST = 3, 400
_EVER = datetime.min.replace(tzinfo=UTC)


def check_boards(boards: Iterable[Board], now: datetime, *, cluster: bool = False) -> list[str]:
    """Return what is wrong with the boards beside each other, and in a Redis ``cluster``, one line a fault.

    Listed seasons are tried wholly, repeated ones from ``now`` on for some years.
    """
    faults: list[str] = []
    live: dict[str, Board] = {}
    current: dict[str, Board] = {}
    for board in boards:
        template = _own(board.key, board)
        if cluster and board.freeze == "rename" and not _one_slot(template, board):
            faults.append(
                f'board.{board.name}.shards: freeze = "rename" renames all shards in one transaction, which a cluster '
                f"allows in one slot only; put <shard> outside a hash tag, such as {{{board.name}}}:<season>:<shard>"
            )
        if live.setdefault(template, board) is not board:
            faults.append(
                f"board.{board.name}.key = {board.key!r}: board {live[template].name} would have the same live keys; "
                "put <board> into one of the templates"
            )
        if board.current_key is None:
            continue
        name = _own(board.current_key, board)
        if current.setdefault(name, board) is not board:
            faults.append(f"board.{board.name}.current_key = {name!r}: board {current[name].name} has the same")
    return [*faults, *_season_faults(live.values(), current, now)]


def _one_slot(template: str, board: Board) -> bool:
    return len({slot(key) for key in shard_keys(template, board.shards.number)}) == 1


def sample(board: Board, now: datetime) -> Iterator[Bounds]:
    """Return every season of a list, or those of a period in the years to come: 3 at least, 400 at most."""
    if board.calendar.period is None:
        yield from seasons_from(board.calendar, _EVER)
        return
    for number, bounds in enumerate(islice(seasons_from(board.calendar, now), _MOST)):
        if number >= _LEAST and bounds.starts_at > now + _AHEAD:
            return
        yield bounds


def _own(template: str, board: Board) -> str:
    return template.replace("<board>", board.name)


def _season_faults(boards: Iterable[Board], current: Mapping[str, Board], now: datetime) -> Iterator[str]:
    """Return the first fault of each board's seasons."""
    taken: dict[str, str] = {}
    for board in boards:
        for bounds in sample(board, now):
            if fault := _fault(board, bounds, taken, current):
                yield fault
                break


def _fault(board: Board, bounds: Bounds, taken: dict[str, str], current: Mapping[str, Board]) -> str:
    """Return what is wrong with one season, ``""`` if nothing; note its live key in ``taken``."""
    try:
        codec_for(board, bounds)
        key = live_key(board.key, board.name, bounds.id, bounds.starts_at, bounds.ends_at)
    except ConfigError as error:
        return f"board.{board.name}: {error}"
    # Seasons of a board that is frozen by renaming may have one key, one after another.
    season = board.name if board.shares_key else f"{board.name}/{bounds.id}"
    for one in shard_keys(key, board.shards.number):
        other = taken.setdefault(one, season)
        if other != season:
            return f"board.{board.name}.key = {board.key!r}: {other} and {season} would have the same live key {one!r}"
        if one in current:
            return f"board.{board.name}.key = {board.key!r}: {one!r} is the current_key of board {current[one].name}"
    return ""
