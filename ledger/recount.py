"""A season's totals counted anew from its match results: so that no broken one vouches for itself; and mended so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from leaderboard.errors import InputError
from leaderboard.season import Season
from ledger import barrier, counting, evidence, journal, leases, match_rows
from ledger.database import Database
from ledger.leases import Lease

MENDED = "totals mended"  #: the journal's event
SHOWN = 100  #: broken totals that are returned; all are counted


@dataclass(frozen=True, slots=True)
class BrokenTotal:
    """A player whose total is not what the results make; None where there is no total, or no result."""

    player_id: bytes
    total: int | None
    results: int | None
    total_reached_at: datetime | None
    results_reached_at: datetime | None

    def __str__(self) -> str:
        name = self.player_id.decode(errors="backslashreplace")
        if self.total == self.results:
            return f"{name}: total reached at {_text(self.total_reached_at)}, results {_text(self.results_reached_at)}"
        there, here = ("none" if value is None else f"{value:,}" for value in (self.total, self.results))
        return f"{name}: total {there}, results {here}"


@dataclass(frozen=True, slots=True)
class Recount:
    """How many totals the results do not make, and the first of them by id."""

    broken: int
    examples: tuple[BrokenTotal, ...] = ()


def recount(database: Database, season: Season) -> Recount:
    """Count every player's results anew, by another statement than totals are kept with, and compare; one statement.

    Raises WrongStateError for a season of which results were pruned, UnavailableError if it takes longer than the
    statement timeout.
    """
    _check_kept(database, season)
    with database.transaction():
        found = _broken(database, season)
        _check_kept(database, season)
    return found


def mend(database: Database, lease: Lease, season: Season, *, who: str, because: str) -> Recount:
    """Let every total be what the results make, make it pending for Redis, and note it in the journal; return which.

    All in one transaction, in which the lease stays the season's. The totals are counted anew as those of a voided
    match are, from the results that count by then, so that new ones may come meanwhile. Safe to repeat. Raises what
    ``recount`` does, LeaseLostError, and InputError if the results make points that no score of the board can hold.
    """
    _check_kept(database, season)
    with database.transaction():
        leases.check(database, lease)
        barrier.enter(database, barrier.SEASONS, [season.key])
        counting.stage(database, [counting.rule(season.key, season.board, season.bounds)])
        found = _broken(database, season)
        if not found.broken:
            return found
        database.rows("recount.touched", {"key": season.key})
        for beyond in counting.recount(database, counting.source_id(database, season.board.source)):
            raise InputError(
                f"the results of player {beyond['player_id']!r} make {beyond['points']:,} points",
                detail=f"board {beyond['board']} can hold {beyond['least']:,} to {beyond['most']:,}",
                hint="void the matches that are wrong first: finale results void",
            )
        _check_kept(database, season)
        counting.settle(database)
        detail = {"because": because, "totals": found.broken, "examples": [str(one) for one in found.examples[:20]]}
        journal.write(database, season.key, MENDED, who=who, fence=lease.fence, detail=detail)
    return found


def _check_kept(database: Database, season: Season) -> None:
    match_rows.check_kept(database, season, hint="no total can be counted anew without them; ask without --deep")


def _broken(database: Database, season: Season) -> Recount:
    values = evidence.of(database, season, aggregate=season.board.aggregate, descending=season.board.descending)
    database.rows("recount.broken", values)
    rows = database.rows("recount.examples", {"limit": SHOWN})
    found = tuple(
        BrokenTotal(
            bytes(row["player_id"]),
            _number(row["total_points"]),
            _number(row["results_points"]),
            row["total_reached_at"],
            row["results_reached_at"],
        )
        for row in rows
    )
    return Recount(rows[0]["count"] if rows else 0, found)


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _text(instant: datetime | None) -> str:
    return "never" if instant is None else instant.isoformat().replace("+00:00", "Z")
