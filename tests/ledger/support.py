"""Boards, results, and totals counted in plain Python, for the tests of the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Event, Lock
from typing import Any

from leaderboard.board import Board
from leaderboard.season import Bounds, Season
from leaderboard.states import State
from ledger import leases, seasons, single
from ledger.database import Database
from ledger.leases import Lease
from ledger.result_files import Chunk, Result
from ledger.results import Recorded, record

NOON = datetime(2021, 6, 1, 12, tzinfo=UTC)
YEAR = Bounds(datetime(2021, 1, 1, tzinfo=UTC), datetime(2022, 1, 1, tzinfo=UTC), "s2021")
HOUR = timedelta(hours=1)

#: A player's points, the time they were first held, and the matches counted.
Total = tuple[int, datetime, int]


def board(name: str = "goals", **fields: Any) -> Board:
    """Return a board of years with plain scores, unless ``fields`` say otherwise."""
    return Board.model_validate({"name": name, "calendar": {"every": "year"}, "ties": "shared", **fields})


def result(
    match: str, player: str | bytes = "ann", points: int = 1, at: datetime = NOON, line: int = 0, **attributes: Any
) -> Result:
    """Return one result; ``chunk`` numbers those without a line."""
    identity = player if isinstance(player, bytes) else player.encode()
    return Result(line, match, identity, points, at, attributes or None)


def chunk(results: Iterable[Result]) -> Chunk:
    """Return a chunk whose lines are numbered from 2, as after a header, where they are not."""
    return Chunk([one._replace(line=one.line or number) for number, one in enumerate(results, start=2)])


def take(
    database: Database, *results: Result, boards: Sequence[Board] | None = None, source: str = "goals"
) -> Recorded:
    """Record the results in one chunk."""
    return record(database, source, boards or [board()], chunk(results), origin="test")


def totals(database: Database, season: Season | int) -> dict[bytes, Total]:
    """Return the season's totals as the ledger has them."""
    key = season if isinstance(season, int) else season.key
    rows = database.run(b"select * from finale.player_total where season_id = %(key)s", {"key": key})
    return {row["player_id"]: (row["points"], row["reached_at"], row["matches"]) for row in rows}


def count(database: Database, table: str) -> int:
    """Return how many rows a table of the ledger has."""
    return int(database.run(f"select count(*) as n from finale.{table}".encode())[0]["n"])


def by_hand(results: Iterable[Result], aggregate: str = "sum", *, descending: bool = True) -> dict[bytes, Total]:
    """Count totals in plain Python: what a player holds after all matches up to each instant, and since when."""
    found: dict[bytes, Total] = {}
    of_player: dict[bytes, list[Result]] = {}
    for one in results:
        of_player.setdefault(one.player_id, []).append(one)
    for player, played in of_player.items():
        held = []
        for instant in sorted({one.played_at for one in played}):
            upto = [one for one in played if one.played_at <= instant]
            if aggregate == "sum":
                points = sum(one.points for one in upto)
            elif aggregate == "best":
                points = (max if descending else min)(one.points for one in upto)
            else:
                points = max(upto, key=lambda one: (one.played_at, one.match_id.encode())).points
            held.append((points, instant))
        final = held[-1][0]
        found[player] = (final, next(instant for points, instant in held if points == final), len(played))
    return found


def season_of(
    database: Database, name: str = "goals", season: str = "s2021", configured: Board | None = None
) -> Season:
    return seasons.find(database, name, season, configured)


def closing(database: Database, one: Board | None = None, bounds: Bounds = YEAR) -> tuple[Season, Lease]:
    """Return a season that waits for its freeze, made if need be, and a lease on it."""
    given = one or board()
    seasons.create(database, given, bounds, database.now(), who="test", state=State.OPEN)
    season = season_of(database, given.name, bounds.id)
    lease = leased(database, season)
    seasons.advance(database, lease, State.OPEN, State.CLOSING, definition=given)
    return season_of(database, given.name, bounds.id), lease


def leased(database: Database, season: Season, holder: str = "runner", length: timedelta = HOUR) -> Lease:
    """Return a lease on the season."""
    return leases.acquire(database, season.key, season.name, holder, length)


def taken_over(database: Database, lease: Lease) -> Lease:
    """Let another runner take the season over, as after the first one's death; return its lease."""
    return leases.acquire(database, lease.key, "a season", "another", HOUR, dead=lease.holder)


def await_that(condition: Callable[[], object], seconds: float = 30) -> None:
    """Return once the condition holds; fail if it does not come to hold in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "what was waited for did not happen"


def waits_for_lock(database: Database, kind: str = "advisory") -> bool:
    """Return whether some session of this database waits for a lock of that kind."""
    rows = database.run(
        b"select 1 from pg_locks where not granted and locktype = %(kind)s and"
        b" pid in (select pid from pg_stat_activity where datname = current_database())",
        {"kind": kind},
    )
    return bool(rows)


@dataclass
class Paused:
    """A function that waits, once called, until it is let go."""

    reached: Event
    go: Event


def only_batches(monkeypatch: Any) -> None:
    """Let single results take the way of batches, which has places to pause in."""
    monkeypatch.setattr(single, "record", lambda *_: None)


@contextmanager
def paused(monkeypatch: Any, module: object, name: str) -> Any:
    """Make the next call of ``module.name`` stop before it begins; later ones pass. At the end it is let go."""
    original = getattr(module, name)
    point = Paused(Event(), Event())
    first = Lock()

    def waiting(*args: Any, **named: Any) -> Any:
        if first.acquire(blocking=False):
            point.reached.set()
            assert point.go.wait(60)
        return original(*args, **named)

    monkeypatch.setattr(module, name, waiting)
    try:
        yield point
    finally:
        point.go.set()
