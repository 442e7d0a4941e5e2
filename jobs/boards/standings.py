"""Standings of a season: from the live key until it is cleaned, from the sealed Parquet afterwards, equal answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from archive import reading
from jobs.wiring import Outside
from leaderboard import merged
from leaderboard.errors import UnknownNameError
from leaderboard.season import Season
from leaderboard.standing import Standing
from leaderboard.states import State, reached
from live.board import LiveBoard, Rank
from live.keyspace import kinds


def top(outside: Outside, season: Season, k: int) -> list[Standing]:
    """Return the first ``k`` positions, fewer if there are fewer."""
    if live := _live(outside, season):
        rows = live.top(k)
        if not _sealed(season) or (rows and _is_whole(outside, season)):
            return rows
    return _rows(reading.top(outside.store, season.board.name, season.id, k).to_pylist())


def is_lost(outside: Outside, season: Season) -> bool:
    """Return whether the ledger has players of a season whose live key should be there, and is not."""
    if season.board.ledger != "own" or _sealed(season):
        return False
    from ledger.totals import summed

    there = kinds(outside.redis, season.standing_keys)
    return all(kind == "none" for kind in there.values()) and summed(outside.database, season.key).players > 0


def top_of_all(outside: Outside, found: Sequence[Season], k: int) -> list[Standing]:
    """Return the first ``k`` positions of several boards' seasons together, such as the segments of one board."""
    return merged.top([top(outside, season, k) for season in found], found[0].board, k)


def around(outside: Outside, season: Season, player_id: bytes, n: int) -> list[Standing]:
    """Return the player's row with up to ``n`` rows on either side, from one version of the board.

    Raises UnknownNameError for a player who is not on the board.
    """
    if live := _live(outside, season):
        rows = live.around(player_id, n)
        if not _sealed(season):
            if not rows:
                raise _unknown(season, player_id)
            return rows
        if rows and _is_whole(outside, season):
            return rows
    row = reading.player(outside.store, season.board.name, season.id, player_id)
    if row is None:
        raise _unknown(season, player_id)
    return _rows(reading.around(outside.store, season.board.name, season.id, row["position"], n).to_pylist())


def rank(outside: Outside, season: Season, player_id: bytes, *, exact: bool = True) -> Rank:
    """Return the player's rank among how many, from one version of the board. Raises what ``around`` raises.

    Not ``exact``, it is estimated while there is a live board; from the archive it is always exact.
    """
    if live := _live(outside, season):
        found = live.rank(player_id, exact=exact)
        if not _sealed(season):
            if found is None:
                raise _unknown(season, player_id)
            return found
        if found is not None and _is_whole(outside, season):
            return found
    row = reading.player(outside.store, season.board.name, season.id, player_id)
    if row is None:
        raise _unknown(season, player_id)
    return Rank(row["rank"], reading.count(outside.store, season.board.name, season.id), row["score"])


def _live(outside: Outside, season: Season) -> LiveBoard | None:
    """Return the live board; None once it was cleaned."""
    if season.state is State.CLEANED:
        return None
    return LiveBoard.of(outside.redis, season, outside.replica)


def _sealed(season: Season) -> bool:
    """Return whether the archive answers where the live key does not: it may be gone, and not yet be recorded so."""
    return reached(season.state, State.SEALED)


def _is_whole(outside: Outside, season: Season) -> bool:
    """Return whether no shard of a sealed season is gone, as while it is cleaned; asked after it was read.

    A band of score that nobody was in has no key either: then the archive answers, equally.
    """
    return not season.sharded or "none" not in kinds(outside.redis, season.standing_keys).values()


def _rows(rows: Iterable[dict[str, Any]]) -> list[Standing]:
    found = []
    for row in rows:
        player_id = row["player_id"]
        found.append(Standing(**{**row, "player_id": player_id.encode() if isinstance(player_id, str) else player_id}))
    return found


def _unknown(season: Season, player_id: bytes) -> UnknownNameError:
    return UnknownNameError(
        f"{season.name} has no player '{player_id.decode(errors='backslashreplace')}'",
        hint="ids are compared byte for byte",
    )
