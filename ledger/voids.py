"""Voiding a match: it counts no more, in every season that has not been frozen; in the others corrections undo it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Rollback

from leaderboard.errors import InputError, UnknownNameError, WrongStateError
from ledger import barrier, counting, journal, source_seasons
from ledger.database import Database


@dataclass(frozen=True, slots=True)
class VoidedSeason:
    """What a void does to one season. ``frozen``: its totals stand, and the void is kept for corrections."""

    key: int
    board: str
    season: str
    players: int
    frozen: bool


@dataclass(frozen=True, slots=True)
class Voided:
    """What a void did: ``results`` that counted until now, and the seasons they counted in.

    ``before`` tells, of what was voided already, by whom, when and why; None if nothing was.
    """

    results: int
    seasons: tuple[VoidedSeason, ...]
    before: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class LateVoid:
    """A result that still counts in a frozen season's totals although it was voided since."""

    match_id: str
    player_id: bytes
    points: int
    played_at: datetime
    attributes: dict[str, Any] | None
    who: str
    because: str
    voided_at: datetime


def void(
    database: Database,
    source: str,
    match: str,
    *,
    who: str,
    because: str,
    player: bytes | None = None,
    dry_run: bool = False,
) -> Voided:
    """Void a match, or one ``player``'s result of it, and count anew whoever it counted for; all in one transaction.

    From then on a result of the match that the ledger does not have yet is refused. Voiding again changes nothing.
    Raises UnknownNameError if the ledger has no such result, WrongStateError if its season was pruned, and InputError
    if without the match a player had points that a board's scores cannot hold; then nothing is changed. ``dry_run``
    changes nothing either.
    """
    row = database.row("results.source_id", {"name": source})
    if row is None:
        raise UnknownNameError(
            f"the ledger has no result of a source {source!r}", hint="a board's source is in its definition"
        )
    number = int(row["source_id"])
    values = {"source_id": number, "match_id": match, "player_id": player, "who": who, "because": because}
    with database.transaction():
        # Whoever records results has read which matches are void: there is nobody before the void and after its commit.
        barrier.close(database, barrier.SOURCES, number, f"source {source}")
        found = database.row("voids.results", values)
        assert found is not None
        before = database.row("voids.standing", values)
        if not found["results"]:
            raise _unknown(source, match, player)
        if found["results"] == found["voided"] and before is not None:
            # A player's void may grow to the whole match, for results that are still to come.
            if not dry_run:
                database.rows("voids.note", values)
            return Voided(0, (), before)
        voided = _void(database, source, values, (found["first"], found["last"]), because)
        if dry_run:
            raise Rollback
    return Voided(found["results"] - found["voided"], voided, before)


def after_freeze(database: Database, key: int) -> list[LateVoid]:
    """Return what was voided after the season's freeze, by match and player: what corrections have to undo."""
    return [LateVoid(**row) for row in database.rows("voids.after_freeze", {"key": key})]


def _void(
    database: Database, source: str, values: dict[str, Any], span: tuple[datetime, datetime], because: str
) -> tuple[VoidedSeason, ...]:
    found = [season for season, fixed in source_seasons.of_source(database, source, *span) if fixed]
    counting.stage(database, [counting.rule(season.key, season.board, season.bounds) for season in found])
    barrier.enter(database, barrier.SEASONS, [season.key for season in found])
    database.rows("results.read_states")
    for one in database.rows("voids.pruned"):
        raise WrongStateError(
            f"the results of {one['board']}/{one['season']} were pruned: what is in the archive cannot be voided",
            hint=f"see: finale results voided {one['board']} {one['season']}",
        )
    database.rows("voids.note", values)
    for name in ("mark", "late", "touched"):
        database.rows(f"voids.{name}", values)
    for beyond in counting.recount(database, values["source_id"]):
        raise InputError(
            f"without match {values['match_id']!r} player {beyond['player_id']!r} would have {beyond['points']:,} "
            "points",
            detail=f"board {beyond['board']} can hold {beyond['least']:,} to {beyond['most']:,}",
            hint="void the matches that take points from this player first",
        )
    counting.settle(database)
    seasons_touched = tuple(
        VoidedSeason(row["season_id"], row["board"], row["season"], row["players"], row["frozen"])
        for row in database.rows("voids.seasons")
    )
    _write_journal(database, seasons_touched, values, because)
    return seasons_touched


def _write_journal(database: Database, touched: Sequence[VoidedSeason], values: dict[str, Any], because: str) -> None:
    for one in touched:
        detail = {
            "match": values["match_id"],
            "player": values["player_id"].decode("utf-8", "backslashreplace") if values["player_id"] else None,
            "players": one.players,
            "after_freeze": one.frozen,
            "because": because,
        }
        journal.write(database, one.key, "voided", who=values["who"], detail=detail)


def _unknown(source: str, match: str, player: bytes | None) -> UnknownNameError:
    whose = f" of player {player.decode('utf-8', 'backslashreplace')!r}" if player is not None else ""
    return UnknownNameError(
        f"the ledger has no result{whose} of a match {match!r} of source {source}",
        hint="a match can be voided once one of its results has come; what comes after that is refused",
    )
