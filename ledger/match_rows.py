"""The results of one season, row by row: to be exported, or to be moved into the archive and removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from leaderboard.errors import WrongStateError
from leaderboard.season import Season
from ledger import barrier, leases
from ledger.database import Database
from ledger.leases import Lease, lost
from ledger.result_files import as_text
from ledger.seasons import from_row

ROWS = 20_000  #: read, or removed, at a time


def read(database: Database, season: Season) -> Iterator[list[DictRow]]:
    """Yield every result in the season's bounds and filter, by time, match and player, in portions.

    Columns: ``match_id, player_id, points, played_at, recorded_at, attributes`` and ``state``, which is counted, late
    or voided, with its ``reason``. One statement, so one state of the ledger.
    """
    return database.stream("match_rows.of_season", _of(database, season), ROWS)


def attribute_names(database: Database, season: Season) -> list[str]:
    """Return the names of all attributes that the season's results have."""
    return [row["name"] for row in database.rows("match_rows.attributes", _of(database, season))]


def removable(database: Database, season: Season) -> int:
    """Return how many results ``remove`` would take of the season: all but those that corrections have yet to undo."""
    row = database.row("match_rows.removable", _of(database, season))
    assert row is not None
    return int(row["count"])


def check_kept(database: Database, season: Season, *, hint: str) -> None:
    """Raise WrongStateError if results that the season counted are gone, or going, with its own prune or another's.

    Those that several seasons count go with the first that is pruned. Whoever reads results asks afterwards too: what
    was read before a prune began is whole.
    """
    values = {"key": season.key, "source": season.board.source}
    span = {"starts_at": season.bounds.starts_at, "ends_at": season.bounds.ends_at}
    for row in database.rows("match_rows.pruned", values | span):
        other = from_row(row, None)
        if other.key != season.key and not may_share(season, other):
            continue
        what, how = ("the results", "") if other.key == season.key else ("results", f" with those of {other.name}")
        raise WrongStateError(
            f"{what} of {season.name} were pruned from the ledger{how} at {row['pruned_at']:%Y-%m-%d %H:%M} UTC",
            detail=f"they are in the archive: results/board={other.board.name}/season={other.id}/",
            hint=hint,
        )


def begun(database: Database) -> dict[int, datetime]:
    """Return the seasons, by number, whose results have been claimed to be pruned and are not, and since when."""
    return {row["season_id"]: row["pruned_at"] for row in database.rows("match_rows.begun")}


def first_claim(database: Database, season: Season, every: Iterable[Season]) -> Season | None:
    """Return the season of ``every`` that may take results of ``season`` too and began before it to be pruned.

    None if there is none: until that one is done, its rows are in the ledger and may be in its seal as well. No row is
    asked, since one may still be recorded by whoever had begun before the claim.
    """
    claims = begun(database)
    mine = claims.get(season.key)
    for other in every:
        since = claims.get(other.key)
        if other.key == season.key or since is None or (mine is not None and (mine, season.key) < (since, other.key)):
            continue
        if may_share(season, other):
            return other
    return None


def may_share(season: Season, other: Season) -> bool:
    """Return whether both could take one and the same result: of their source, played in both, passing both filters."""
    mine, others = as_text(season.board.where), as_text(other.board.where)
    return (
        other.board.source == season.board.source
        and other.board.ledger == "own"
        and other.bounds.starts_at < season.bounds.ends_at
        and season.bounds.starts_at < other.bounds.ends_at
        and all(mine[name] == others[name] for name in mine.keys() & others.keys())
    )


def claim(database: Database, lease: Lease, season: Season, every: Iterable[Season]) -> Season | None:
    """Take no results of the season any more, unless ``first_claim`` names another season, which is returned.

    The mark is the claim on the season's rows: it outlives whoever set it, so that what was broken off is finished
    before another season's prune reads the same rows. Seasons of one source claim one after the other. Safe to repeat.
    Raises LeaseLostError.
    """
    with database.transaction():
        source = database.row("results.source_id", {"name": season.board.source})
        barrier.close(database, barrier.PRUNES, source["source_id"] if source else 0, season.name)
        # A statement of its own: one that also took the lock would not see the claim it waited for.
        other = first_claim(database, season, every)
        if other is None and database.row("match_rows.mark_pruned", lease.params) is None:
            raise lost(lease)
    return other


def close(database: Database, season: Season) -> None:
    """Wait for whoever is still recording a result of a season that was claimed. Safe to repeat."""
    with database.transaction():
        barrier.close(database, barrier.SEASONS, season.key, season.name)


def remove(database: Database, lease: Lease, season: Season, rows: Sequence[tuple[str, bytes]]) -> None:
    """Remove results, each given as match and player, all or none. Safe to repeat. Raises LeaseLostError."""
    with database.transaction():
        leases.check(database, lease)
        database.rows(
            "match_rows.remove",
            {
                **_of(database, season),
                "matches": [match for match, _ in rows],
                "players": [player for _, player in rows],
            },
        )


def _of(database: Database, season: Season) -> dict[str, Any]:
    row = database.row("results.source_id", {"name": season.board.source})
    return {
        "key": season.key,
        "source_id": row["source_id"] if row else None,
        "starts_at": season.bounds.starts_at,
        "ends_at": season.bounds.ends_at,
        "wanted": Jsonb(as_text(season.board.where)),
    }
