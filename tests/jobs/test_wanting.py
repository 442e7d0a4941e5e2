"""What a tick works on: the boards on which something is due, found by one look, and no other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.output import Watching
from jobs.scheduler.tick import tick
from jobs.scheduler.wanting import boards_wanting
from ledger.database import Database
from tests.support.cli import World, finale

HOUR = timedelta(hours=1)
NOW = datetime.now(UTC).replace(microsecond=0)
BOARD = (
    '[board.{name}]\nties = "shared"\ngrace = "0s"\nahead = 1\ncalendar = {{ every = "day", at = {at} }}\n'
    'reconcile = {{ live = "off" }}\n'
)


def boards(*names: str) -> str:
    """Return boards of days that begin two hours ago."""
    at = (NOW - 2 * HOUR).time().isoformat()
    return "".join(BOARD.format(name=name, at=at) for name in names)


def wanting(world: World, after: timedelta = timedelta(0)) -> list[str]:
    with world.outside() as outside:
        return boards_wanting(outside, outside.database.now() + after)


@pytest.fixture
def idle(world: World) -> World:
    """Two boards whose season is being played, with a result each, and on which nothing is due."""
    world.configure(boards("a", "b"))
    finale("tick").ok()
    for name in ("a", "b"):
        world.played(name, f"m1,ann,5,{(NOW - HOUR).isoformat()}")
    assert wanting(world) == []
    return world


def test_c55_nothing_is_due_until_a_stored_bound(idle: World) -> None:
    """C55: the season's end makes its board wanted, by what is stored, not by the calendar; a lever moves it."""
    assert wanting(idle, 23 * HOUR) == ["a", "b"]
    assert wanting(idle, HOUR) == []
    idle.sql("update finale.season set ends_at = now() + interval '30m' where board = 'b' and state = 'open'")
    assert wanting(idle, HOUR) == ["b"]


def _lost(world: World) -> None:
    (key,) = [key for key in world.redis.scan_iter() if b":a:" in key and key.endswith(b":applied")]
    world.redis.delete(key)


def _foreign(world: World) -> None:
    (key,) = [key for key in world.redis.scan_iter() if b":a:" in key and key.endswith(b":applied")]
    world.redis.delete(key)
    world.redis.set(key, "not a hash")


OPEN = "from finale.season s where board = 'a' and state = 'open'"
REASONS: dict[str, Callable[[World], Any]] = {
    "a total is pending": lambda world: world.sql(
        f"insert into finale.pending (season_id, bucket, players) select season_id, 1, array['x'::bytea] {OPEN}"
    ),
    "redis has lost writes": _lost,
    "redis cannot be asked": _foreign,
    "a season is missing": lambda world: world.sql(
        "delete from finale.season where board = 'a' and state = 'scheduled'"
    ),
    "the last season is over": lambda world: world.sql(
        "update finale.season set starts_at = starts_at - interval '9 days', ends_at = ends_at - interval '9 days',"
        " closes_at = closes_at - interval '9 days' where board = 'a'"
    ),
    "grants are owed": lambda world: (
        world.sql(
            "insert into finale.season (board, season, state, starts_at, ends_at, closes_at, definition, live_key)"
            " select 'a', 's1', 'cleaned', '2020-01-01', '2020-01-02', '2020-01-02', definition, 'k'"
            f" {OPEN} returning season_id"
        )
        and world.sql(
            "insert into finale.delivery (season_id, mode, grants) select season_id, 'webhook', 1"
            " from finale.season where season = 's1'"
        )
    ),
    "a correction is not finished": lambda world: (
        world.sql(
            "update finale.season set state = 'delivered', keep_until = now() + interval '9 days'"
            " where board = 'a' and state = 'open'"
        )
        or world.sql(
            "insert into finale.seal select season_id, 'correction-1', 'a', 1, null, 'x', 'x', 1"
            " from finale.season s where board = 'a' and state = 'delivered'"
        )
    ),
    "a step is to be tried again": lambda world: world.sql(
        "update finale.season set state = 'frozen', retry_at = now() where board = 'a' and state = 'open'"
    ),
    "its definition cannot be read": lambda world: world.sql(
        "update finale.season set definition = '{}' where board = 'a' and state = 'open'"
    ),
}


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_makes_its_board_wanted_and_no_other(idle: World, reason: str) -> None:
    """Each is found by the one look, whatever is wrong with a board, and says nothing of the other."""
    REASONS[reason](idle)
    assert wanting(idle) == ["a"], reason


def test_a_check_is_due_after_its_time(world: World) -> None:
    """The scores of a season that is played are looked at every so often, and its board is wanted then."""
    world.configure(boards("a").replace('live = "off"', 'every = "10m"'))
    finale("tick").ok()
    world.played("a", f"m1,ann,5,{(NOW - HOUR).isoformat()}")
    finale("tick").ok()
    assert (wanting(world), wanting(world, timedelta(minutes=11))) == ([], ["a"])


def test_redis_that_is_away_makes_wanted_what_was_written_there(idle: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether writes were lost cannot be told, so each such board is ticked and says what is wrong."""
    monkeypatch.setenv("FINALE_REDIS", "redis://127.0.0.1:1/0")
    assert wanting(idle) == ["a", "b"]


def test_idle_boards_cost_no_statement(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick with nothing due asks the ledger as often for thirty boards as for three."""
    asked = 0
    run = Database.run

    def counted(self: Database, *arguments: Any, **named: Any) -> Any:
        nonlocal asked
        asked += 1
        return run(self, *arguments, **named)

    monkeypatch.setattr(Database, "run", counted)
    found = []
    for names in (3, 30):
        world.configure(boards(*(f"b{number:02}" for number in range(names))))
        finale("tick").ok()
        with world.outside() as outside:
            asked = 0
            assert tick(outside, who="test", observer=Watching(quiet=True)) == []
            found.append(asked)
    assert found[0] == found[1] <= 5
