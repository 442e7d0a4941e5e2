"""A year in seconds: PostgreSQL is given a clock that the test sets, and two schedulers tick under crashes and outages.

The clock is a function ``clock_timestamp()`` of a schema that is searched before PostgreSQL's own, so that every
statement of Finale, the leases' too, runs by it; nothing of Finale is changed for it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import redis

from config.load import load
from jobs.output import Watching
from jobs.scheduler.tick import tick
from jobs.wiring import Outside, outside
from leaderboard.errors import FinaleError
from ledger import agenda
from ledger.database import Database
from ledger.result_files import Chunk, Result
from ledger.results import record
from tests.harness.plan import Plan
from tests.harness.run import Harness
from tests.support.proxy import Mode, Proxy

CLOCK = """
create schema sim;
create table sim.clock (at timestamptz not null);
create function sim.clock_timestamp() returns timestamptz language sql stable return (select at from sim.clock);
create function sim.now() returns timestamptz language sql stable return (select at from sim.clock);
alter table finale.journal alter at set default sim.clock_timestamp();
alter table finale.step_result alter finished_at set default sim.clock_timestamp();
"""
#: The steps that the seasons will take next, and those that follow at once.
DUE = """
select case
    when state = 'scheduled' and starts_at <= sim.now() then array['open']
    when state = 'open' and ends_at <= sim.now() and closes_at > sim.now() then array['close']
    when state in ('open', 'closing') and closes_at <= sim.now()
        then array['freeze', 'snapshot', 'seal', 'reward', 'deliver']
    when state = 'delivered' and keep_until <= sim.now() then array['clean']
    else '{}' end
from finale.season
"""
FAULTS: tuple[Mode, ...] = ("refuse", "hang", "cut")


@dataclass
class Year:
    """The world that is simulated. ``direct`` is not disturbed; the schedulers go through the proxies."""

    folder: Path
    environ: dict[str, str]
    ledger_url: str
    proxies: dict[str, Proxy]
    harness: Harness
    chance: random.Random
    crashes: int = 0
    outages: int = 0
    rounds: int = 0
    kills: list[Plan] = field(default_factory=list)
    played: set[tuple[str, str]] = field(default_factory=set)

    def set_clock(self, at: datetime) -> None:
        """Let it be that time."""
        with psycopg.connect(self.ledger_url, autocommit=True) as connection:
            connection.execute("update sim.clock set at = %s", (at,))

    def begin(self, at: datetime) -> None:
        """Give the database its clock."""
        with psycopg.connect(self.ledger_url, autocommit=True) as connection:
            connection.execute(CLOCK)
            connection.execute("insert into sim.clock values (%s)", (at,))
            name = connection.info.dbname
            connection.execute(f'alter database "{name}" set search_path to sim, pg_catalog'.encode())

    @contextmanager
    def scheduler(self) -> Iterator[Outside]:
        """Yield a scheduler's clients, which go through the proxies."""
        with outside(load(self.folder / "finale.toml", self.environ), self.environ) as found:
            yield found

    def next_wake_up(self, boards: list[str]) -> datetime | None:
        """Return the next stored instant at which something may be due, as the daemon asks for it."""
        with Database(self.ledger_url) as database:
            found = agenda.wake_ups(database, boards, timedelta(days=800))
        return found[0] if found else None

    def round(self) -> None:
        """Let both schedulers tick at once; sometimes one is killed within, or a server goes away for the moment."""
        self.rounds += 1
        what = self.chance.random()
        if what < 0.25:
            self._crash()
        elif what < 0.40:
            self._outage()
        with ThreadPoolExecutor(2) as both:
            for done in [both.submit(self._tick) for _ in range(2)]:
                done.result()

    def _tick(self) -> None:
        with suppress(FinaleError), self.scheduler() as found:
            tick(found, who="scheduler", observer=Watching(quiet=True, logs=False))

    def play_matches(self, seasons: Mapping[str, str], at: datetime) -> None:
        """Let a few players have a match now on each of these boards, which count by the ledger.

        Recorded as a service would, in one chunk a board; the totals reach Redis by the next tick, or the freeze.
        """
        boards = load(self.folder / "finale.toml", self.environ).boards
        with Database(self.ledger_url) as database:
            for name, season in seasons.items():
                players = range(self.chance.randint(1, 5))
                results = [
                    Result(line, f"{season}-{line}", b"player %d" % line, self.chance.randint(1, 500), at, None)
                    for line in players
                ]
                taken = record(database, name, [boards[name]], Chunk(results, []), origin="simulation")
                assert taken.new == len(results), taken
                self.played.add((name, season))

    def _crash(self) -> None:
        """Run a tick that is killed in a step that is due, if one is."""
        with psycopg.connect(self.ledger_url, autocommit=True) as connection:
            due = {step for (steps,) in connection.execute(DUE) for step in steps}
        if not (plans := [plan for plan in self.kills if plan.call.step in due]):
            return
        plan = self.chance.choice(plans)
        outcome = self.harness.run(["tick"], env=self.environ, cwd=self.folder, plan=plan)
        self.crashes += outcome.hit

    def _outage(self) -> None:
        self.outages += 1
        proxy = self.proxies[self.chance.choice(sorted(self.proxies))]
        proxy.set(self.chance.choice(FAULTS))
        self._tick()
        proxy.set("pass")


def environ(folder: Path, redis_url: str, ledger_url: str) -> dict[str, str]:
    """Return the environment of the schedulers."""
    return {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "FINALE_CONFIG": str(folder / "finale.toml"),
        "FINALE_HOME": str(folder / "home"),
        "FINALE_REDIS": redis_url,
        "FINALE_POSTGRES": ledger_url,
        "FINALE_STORE": (folder / "store").as_uri(),
        "FINALE_OPERATOR": "scheduler",
    }


def play(client: redis.Redis, key: str, chance: random.Random) -> None:
    """Let a few players score on a board with its own writers."""
    client.zadd(key, {f"player {number}": chance.randint(1, 500) for number in range(chance.randint(1, 5))})
