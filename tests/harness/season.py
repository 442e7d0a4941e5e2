"""A season that is over, with its results in the ledger and most of its totals in Redis: to be closed, again and again.

2,600 players with ties, repeats and several results each; several pages a reading, three parts of standings and of
grants; a board that names its open season; totals of two buckets that Redis does not have yet, so that the freeze
writes some. Everything is prepared once and copied for each case.
"""

from __future__ import annotations

import csv
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from uuid import uuid4

import redis

from config.load import load
from jobs.embedded.postgres_server import PostgresServer
from jobs.results.taking import source_named, take_file
from jobs.wiring import Outside, outside
from leaderboard.calendar import season_at
from leaderboard.states import State
from ledger import pending, seasons
from tests.harness.endstate import EndState, read_end_state
from tests.harness.plan import Plan
from tests.harness.run import Harness, Outcome, Running
from tests.support.servers import Databases

PLAYERS = 2_600
BEHIND = (3, 41)  #: buckets whose totals Redis has not
STARTS = datetime(2021, 1, 1, tzinfo=UTC)
CONFIG = """
[runner]
lease = "5m"        # no heartbeat comes between, and nobody waits for a lease to run out
page_rows = 500
page_budget = "1s"  # so that every page has as many rows
part_rows = 1_000
batch_rows = 100

[board.cup]
current_key = "cup:current"
ties = { by = "first_to_reach", unit = "minute" }
grace = "1h"
keep_live = "0s"
ahead = 1
rewards = "cup.toml"

[board.cup.calendar]
seasons = [
  { id = "s1", starts_at = 2021-01-01T00:00:00, ends_at = 2021-07-01T00:00:00 },
  { id = "s2", starts_at = 2022-01-01T00:00:00, ends_at = 2050-01-01T00:00:00 },
]
"""
REWARDS = """
version = 1
[[rule]]
name = "champion"
rank = "1"
grant = { "title.champion" = 1, gems = 5000 }
[[rule]]
name = "top ten"
rank = "2-10"
grant = { gems = 1000 }
[[rule]]
name = "took part"
all = true
grant = { gems = 10 }
"""


def write_results(path: Path, players: int, seed: int, matches: str = "m") -> None:
    """Write a file of results for season s1: ties to the minute, repeated lines, up to three results a player.

    Files whose ``matches`` begin with another letter hold other matches, of the same players.
    """
    chance = random.Random(seed)
    rows = [
        (f"{matches}{number}-{turn}", f"player {number:05d}", chance.randint(1, 40), _played(chance))
        for number in range(players)
        for turn in range(chance.choice((1, 1, 1, 2, 3)))
    ]
    rows += chance.sample(rows, len(rows) // 20)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("match_id", "player_id", "points", "played_at"))
        writer.writerows(rows)


def _played(chance: random.Random) -> str:
    return (STARTS + timedelta(minutes=chance.randint(0, 300), seconds=chance.randint(0, 59))).isoformat()


@dataclass(frozen=True)
class Store:
    """Where the archive goes, and the variables that it takes to get there."""

    url: str
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class World:
    """One case's own database, Redis keys, store and configuration."""

    harness: Harness
    folder: Path
    redis_url: str
    ledger_url: str
    store: Store
    more: Mapping[str, str] = field(default_factory=dict, kw_only=True)  #: further variables of its commands

    @property
    def env(self) -> dict[str, str]:
        return {
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            "FINALE_CONFIG": str(self.folder / "finale.toml"),
            "FINALE_HOME": str(self.folder / "home"),
            "FINALE_REDIS": self.redis_url,
            "FINALE_POSTGRES": self.ledger_url,
            "FINALE_STORE": self.store.url,
            "FINALE_OPERATOR": "tester",
            "FINALE_DEBUG": "1",
            **self.store.environ,
            **self.more,
        }

    def run(self, *argv: str, plan: Plan | None = None) -> Outcome:
        """Run a command to its end."""
        return self.harness.run(argv, env=self.env, cwd=self.folder, plan=plan)

    @contextmanager
    def running(self, *argv: str, plan: Plan | None = None) -> Iterator[Running]:
        """Start a command."""
        with self.harness.running(argv, env=self.env, cwd=self.folder, plan=plan) as command:
            yield command

    @contextmanager
    def outside(self) -> Iterator[Outside]:
        """Give the same clients in this process."""
        with outside(load(self.folder / "finale.toml", self.env), self.env) as found:
            yield found

    def end_state(self) -> EndState:
        """Read what the servers hold."""
        return read_end_state(self.ledger_url, self.redis_url, self.store.url, self.store.environ)


@dataclass(frozen=True)
class Prepared:
    """Makes worlds that are all alike: the ledger is cloned, Redis restored, the store empty or as in ``origin``."""

    harness: Harness
    root: Path
    databases: Databases
    template: str
    redis_url: str
    dump: dict[bytes, bytes] = field(repr=False)
    config: str = CONFIG
    origin: Path | None = None  #: the folder that each world's is a copy of, with its store

    @contextmanager
    def after(self, happens: Callable[[World], None], *, config: str = "") -> Iterator[Prepared]:
        """Give what makes worlds in which something has happened already: once, and not again for each of them."""
        with self.world(config=config) as world:
            happens(world)
            dump = _dump(self.redis_url)
            yield replace(
                self,
                template=_name(world.ledger_url),
                dump=dump,
                config=config or self.config,
                origin=world.folder,
            )

    @contextmanager
    def world(self, *, config: str = "", store: Store | None = None) -> Iterator[World]:
        """Give a world for the length of the block; its store is an empty folder unless given."""
        folder = self.root / uuid4().hex[:8]
        if self.origin is None:
            folder.mkdir()
            write_configuration(folder, config or self.config)
        else:
            shutil.copytree(self.origin, folder, ignore=shutil.ignore_patterns("home"))
        with redis.Redis.from_url(self.redis_url) as client:
            client.flushall()
            client.script_flush()
            for key, value in self.dump.items():
                client.restore(key, 0, value)
        with self.databases.fresh(self.template) as ledger_url:
            yield World(self.harness, folder, self.redis_url, ledger_url, store or Store((folder / "store").as_uri()))


def write_configuration(folder: Path, config: str = CONFIG) -> None:
    """Write finale.toml and its reward table into a folder."""
    (folder / "finale.toml").write_text(dedent(config))
    (folder / "cup.toml").write_text(dedent(REWARDS))


@contextmanager
def prepared_season(
    harness: Harness, root: Path, postgres: PostgresServer, migrated: str, redis_url: str, config: str = CONFIG
) -> Iterator[Prepared]:
    """Prepare the season in a database of its own, a clone of ``migrated``, for the length of the block."""
    databases = Databases(postgres)
    write_configuration(root, config.replace("batch_rows = 100", "batch_rows = 10_000"))
    with databases.fresh(migrated) as ledger_url:
        world = World(harness, root, redis_url, ledger_url, Store((root / "store").as_uri()))
        with world.outside() as found:
            _play(found, root)
        yield Prepared(harness, root, databases, _name(ledger_url), redis_url, _dump(redis_url), config)


def _dump(redis_url: str) -> dict[bytes, bytes]:
    with redis.Redis.from_url(redis_url) as client:
        return {key: client.dump(key) for key in client.scan_iter()}


def _play(found: Outside, root: Path) -> None:
    board = found.boards["cup"]
    bounds = season_at(board.calendar, STARTS)
    assert bounds is not None
    seasons.create(found.database, board, bounds, found.database.now(), who="tester", state=State.SCHEDULED)
    file = root / "results.csv"
    write_results(file, PLAYERS, seed=2021)
    taken = take_file(found, file, *source_named(found, None, "cup"), lambda rows: None)
    assert taken.unapplied is None
    season = seasons.find(found.database, "cup", "s1", board)
    _fall_behind(found, season.key, season.live_keys)


def _fall_behind(found: Outside, key: int, live_keys: Sequence[str]) -> None:
    """Leave the totals of two buckets pending: half of these players are missing in Redis."""
    pending.again(found.database, key, BEHIND)
    members: Sequence[bytes] = [
        row["player_id"]
        for row in found.database.run(b"select unnest(players) as player_id from finale.pending order by 1")
    ]
    assert len(members) > 40
    for live_key in live_keys:
        found.redis.zrem(live_key, *members[::2])


def _name(url: str) -> str:
    return url.rpartition("@/")[2].partition("?")[0]
