"""A year in minutes: PostgreSQL is given a clock that the test sets, and two daemons work under crashes and outages.

The clock is a function ``clock_timestamp()`` of a schema that is searched before PostgreSQL's own, so that every
statement of Finale, the leases' too, runs by it; nothing of Finale is changed for it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import redis

from jobs.scheduler.wanting import boards_wanting
from jobs.wiring import Outside
from ledger import agenda
from ledger.result_files import Chunk, Result
from ledger.results import record
from tests.harness.plan import Plan
from tests.harness.run import Harness
from tests.support.proxy import Mode, Proxy
from tests.support.schedulers import Scheduler, settle

#: After which a daemon looks again, whatever it knows of.
INTERVAL = timedelta(seconds=10)
CLOCK = """
create schema sim;
create table sim.clock (at timestamptz not null);
create function sim.clock_timestamp() returns timestamptz language sql stable return (select at from sim.clock);
create function sim.now() returns timestamptz language sql stable return (select at from sim.clock);
alter table finale.journal alter at set default sim.clock_timestamp();
alter table finale.step_result alter finished_at set default sim.clock_timestamp();
"""
#: The steps that the seasons will take next, and those that follow at once.
DUE = b"""
select case
    when state = 'scheduled' and starts_at <= sim.now() then array['open']
    when state = 'open' and ends_at <= sim.now() and closes_at > sim.now() then array['close']
    when state in ('open', 'closing') and closes_at <= sim.now()
        then array['freeze', 'snapshot', 'seal', 'reward', 'deliver']
    when state = 'delivered' and keep_until <= sim.now() then array['clean']
    else '{}' end as steps
from finale.season
"""


@dataclass
class Year:
    """The world that is simulated. ``direct`` is not disturbed; the daemons and the ticks go through the proxies."""

    folder: Path
    environ: dict[str, str]
    direct: Outside
    proxies: dict[str, Proxy]
    harness: Harness
    chance: random.Random
    daemons: Sequence[Scheduler]
    crashing: float  #: how likely a tick is killed at a bound
    failing: float  #: how likely a server goes away at a bound
    faults: Sequence[Mode]
    kills: Sequence[Plan]
    crashes: int = 0
    outages: int = 0
    rounds: int = 0
    played: set[tuple[str, str]] = field(default_factory=set)

    def round(self) -> None:
        """Let both daemons do what is due; sometimes a tick is killed before, or a server goes away for the moment."""
        self.rounds += 1
        what = self.chance.random()
        if what < self.crashing:
            self._crash()
        elif what < self.crashing + self.failing:
            self._outage()
        settle(self.daemons)

    def following(self, now: datetime) -> datetime:
        """Return when the daemons would wake up next: at a stored bound, or after an interval to try again."""
        if boards_wanting(self.direct, now):
            return now + INTERVAL
        found = agenda.wake_ups(self.direct.database, self.direct.boards, timedelta(days=800))
        return max(found[0], now)

    def play_matches(self, seasons: Mapping[str, str], at: datetime) -> None:
        """Let a few players have a match now on each of these boards, which count by the ledger.

        Recorded as a service would, in one chunk a board; the totals reach Redis by the next tick, or the freeze.
        """
        for name, season in seasons.items():
            players = range(self.chance.randint(1, 5))
            results = [
                Result(line, f"{season}-{line}", b"player %d" % line, self.chance.randint(1, 500), at, None)
                for line in players
            ]
            chunk = Chunk(results, [])
            taken = record(self.direct.database, name, [self.direct.boards[name]], chunk, origin="simulation")
            assert taken.new == len(results), taken
            self.played.add((name, season))

    def _crash(self) -> None:
        """Run a tick that is killed in a step that is due, if one is."""
        due = {step for row in self.direct.database.run(DUE) for step in row["steps"]}
        if not (plans := [plan for plan in self.kills if plan.call.step in due]):
            return
        plan = self.chance.choice(plans)
        outcome = self.harness.run(["tick"], env=self.environ, cwd=self.folder, plan=plan)
        self.crashes += outcome.hit

    def _outage(self) -> None:
        """Let a server go away before the daemons look, or while they work, and come back when they are through."""
        self.outages += 1
        proxy = self.proxies[self.chance.choice(sorted(self.proxies))]
        fault = self.chance.choice(self.faults)
        if self.chance.random() < 0.5:
            for one in self.daemons:
                one.look(enough=lambda one=one: one.daemon.in_flight > 0)
        proxy.set(fault)
        for one in self.daemons:
            one.daemon.wake()
        for one in self.daemons:
            one.suffer()
        proxy.set("pass")


def set_clock(ledger_url: str, at: datetime) -> None:
    """Let it be that time."""
    with psycopg.connect(ledger_url, autocommit=True) as connection:
        connection.execute("update sim.clock set at = %s", (at,))


def begin(ledger_url: str, at: datetime) -> None:
    """Give the database its clock; connections made from now on have it."""
    with psycopg.connect(ledger_url, autocommit=True) as connection:
        connection.execute(CLOCK)
        connection.execute("insert into sim.clock values (%s)", (at,))
        name = connection.info.dbname
        connection.execute(f'alter database "{name}" set search_path to sim, pg_catalog'.encode())


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
