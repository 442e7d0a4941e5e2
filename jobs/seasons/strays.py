"""The report of keys that look like Finale's and belong to no season that needs them. It touches none of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from shlex import quote
from typing import Any, Literal

from jobs.scheduler.returned import resemblance
from jobs.seasons import renaming
from jobs.seasons.closing import untaken
from jobs.wiring import Outside
from leaderboard import keys, strays
from leaderboard.errors import FinaleError
from leaderboard.season import Season
from leaderboard.states import State
from leaderboard.strays import Helper, Shape, Stray
from ledger import seasons
from live.keyspace import called, kinds, lifetimes, sizes, sorted_sets
from live.nodes import primaries

ALL_HELPERS = "*:finale:*"


@dataclass(frozen=True, slots=True)
class Found:
    """One key. ``board``: it fits a board's template; ``helper``: it stands beside a key that no season needs any more;
    ``returned``: the live key of a cleaned season; ``late``: the old name of a season frozen by renaming. ``rows`` is
    None for what is no sorted set, or was not counted.
    """

    kind: Literal["board", "helper", "returned", "late"]
    key: str
    board: str | None
    season: str | None
    rows: int | None
    what: str
    hint: str

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return asdict(self)


def find_strays(outside: Outside, board: str | None = None) -> list[Found]:
    """Return every such key of the board, or of all: sorted sets by SCAN on the primary, the ledger's seasons
    subtracted; helper keys; live keys of cleaned seasons that are there again.

    Raises UnknownNameError for an unknown board, UnavailableError where the server is no primary.
    """
    every = seasons.every(outside.database, outside.boards)
    if board is not None and all(season.board.name != board for season in every):
        outside.settings.board(board)
    shapes = _shapes(outside, every, board)
    sets = {key for key in sorted_sets(primaries(outside.redis)) if strays.helper(key) is None}
    return [
        *_boards(outside, strays.stray_keys(sets, shapes, every)),
        *_returned(outside, [one for one in _cleaned(every) if board in (None, one.board.name)]),
        *_late(outside, [one for one in every if board in (None, one.board.name)]),
        *_helpers(outside, every, shapes, board),
    ]


def _shapes(outside: Outside, every: Sequence[Season], board: str | None) -> list[Shape]:
    """Return what keys look like: as configured, and as they were named when seasons in the ledger opened."""
    boards = [*outside.boards.values(), *(season.board for season in every)]
    looks = {(one.name, one.key, one.shards.by != "none") for one in boards if board in (None, one.name)}
    return [strays.shape_of(name, template, sharded=sharded) for name, template, sharded in sorted(looks)]


def _boards(outside: Outside, found: Sequence[Stray]) -> list[Found]:
    rows = sizes(outside.redis, [one.key for one in found])
    return [_board(outside, one, rows[one.key]) for one in found if rows[one.key]]


def _board(outside: Outside, one: Stray, rows: int) -> Found:
    board, season = one.fits[0]
    names = " or ".join(f"{name} {id_}" if id_ else name for name, id_ in one.fits)
    by_hand = f"finale archive adopt {quote(one.key)} --board {board} --season {season or 'SEASON'}"
    if season and _is_untaken(outside, board, season, one.key):
        by_hand = f"finale close {board} {season}"
    what = f"looks like a key of {names}; the ledger has no season with this key"
    return Found("board", one.key, board, season, rows, what, f"archive it: {by_hand}; or remove it by hand")


def _is_untaken(outside: Outside, board: str, season: str, key: str) -> bool:
    """Return whether ``finale close`` would take this very key on as the season's."""
    bounds = untaken(outside, board, season)
    if bounds is None:
        return False
    known = outside.boards[board]
    live_key = keys.live_key(known.key, board, season, bounds.starts_at, bounds.ends_at)
    return key in keys.shard_keys(live_key, known.shards.number)


def _cleaned(every: Sequence[Season]) -> list[Season]:
    """Return the seasons whose live keys were removed, and are no other season's since."""
    return list({season.key: season for season in strays.cleaned_keys(every).values()}.values())


def _returned(outside: Outside, cleaned: Sequence[Season]) -> list[Found]:
    found = kinds(outside.redis, [key for season in cleaned for key in season.own_keys])
    back = [(season, [key for key in season.own_keys if found[key] != "none"]) for season in cleaned]
    return [_back(outside, season, names, {found[key] for key in names}) for season, names in back if names]


def _back(outside: Outside, season: Season, names: Sequence[str], types: set[str]) -> Found:
    by_hand = "find out what wrote it; then keep it under another name, or remove it by hand"
    kind = next((kind for kind in sorted(types) if kind != "zset"), "zset")
    rows, told = None, f"it is a {kind}, not a sorted set"
    if kind == "zset":
        try:
            like = resemblance(outside, season)
            rows, told = like.rows, "not what was sealed: " + like.told
            if like.equal:
                told, by_hand = "the very rows that were sealed", _again(season)
        except FinaleError as error:
            told = f"it could not be compared with the archive: {error.message}"
    which = "its live key is" if not season.sharded else f"{len(names)} of its {len(season.own_keys)} live keys are"
    what = f"{season.name} was cleaned, and {which} back; {told}"
    return Found("returned", names[0], season.board.name, season.id, rows, what, by_hand)


def _late(outside: Outside, every: Sequence[Season]) -> list[Found]:
    return [
        Found("late", key, season.board.name, season.id, None, told, "remove it by hand")
        for season in every
        for key, told in renaming.late_keys(outside, season).items()
    ]


def _helpers(outside: Outside, every: Sequence[Season], shapes: Sequence[Shape], board: str | None) -> list[Found]:
    named = [one for one in map(strays.helper, called(primaries(outside.redis), ALL_HELPERS)) if one]
    left = strays.stray_helpers(named, every)
    # A private name under which a cleaned key waits for its end is no stray.
    ending = lifetimes(outside.redis, [one.name for one in left if one.kind == "expiring"])
    seen = {key: season for season in every if season.state is State.CLEANED for key in season.own_keys}
    found = []
    for one in left:
        season = next((seen[key] for key in one.beside if key in seen), None)
        if ending.get(one.name, -1) < 0 and (board is None or _is_of(board, one, season, shapes)):
            found.append(_helper(one, season))
    return found


def _is_of(board: str, one: Helper, season: Season | None, shapes: Sequence[Shape]) -> bool:
    if season is not None:
        return season.board.name == board
    return any(shape.fits(key) for shape in shapes for key in one.beside)


def _helper(one: Helper, season: Season | None) -> Found:
    if season is None:
        what = f"a helper key ({one.kind}) beside {one.beside[0]}, which is no season's"
        return Found("helper", one.name, None, None, None, what, "remove it by hand")
    what = f"a helper key ({one.kind}) of {season.name}, which was cleaned"
    by_hand = "it was to expire, and does not: remove it by hand" if one.kind == "expiring" else _again(season)
    return Found("helper", one.name, season.board.name, season.id, None, what, by_hand)


def _again(season: Season) -> str:
    return f"remove it, once it is proved equal again: finale clean {season.board.name} {season.id} --again"
