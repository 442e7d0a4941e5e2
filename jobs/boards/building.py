"""Which names rebuilds of a season's live keys have used: each is in the journal before anything is written to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leaderboard.keys import building_keys
from leaderboard.season import Season
from ledger import journal
from ledger.database import Database
from ledger.leases import Lease

BEGUN, DONE = "rebuilding", "rebuilt"


def begin(database: Database, season: Season, lease: Lease, *, who: str, because: str = "") -> None:
    """Note that names with this lease's fence are going to be used."""
    journal.write(database, season.key, BEGUN, who=who, fence=lease.fence, detail={"because": because})


def end(database: Database, season: Season, lease: Lease, *, who: str, detail: Mapping[str, Any]) -> None:
    """Note that the rebuild is done and has left nothing."""
    journal.write(database, season.key, DONE, who=who, fence=lease.fence, detail=detail)


def left_behind(database: Database, season: Season) -> dict[str, list[str]]:
    """Return the names that broken-off rebuilds may have left, by the key of the season that they stand beside."""
    entries = journal.entries(database, season.key)
    done = {entry.fence for entry in entries if entry.event == DONE}
    fences = {entry.fence for entry in entries if entry.event == BEGUN and entry.fence is not None} - done
    return {own: [name for fence in sorted(fences) for name in building_keys(own, fence)] for own in season.own_keys}
