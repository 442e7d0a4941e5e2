"""I8, C57: a daemon, and a server that is away for longer than the lease within a step: the end is the same."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest

from jobs.embedded.postgres_server import PostgresServer
from jobs.embedded.redis_server import RedisServer
from leaderboard.states import Step
from tests.harness.plan import Plan
from tests.harness.run import Running
from tests.harness.season import CONFIG, Prepared, Store, World
from tests.jobs.kill.cases import Whole, undisturbed
from tests.ledger.support import await_that
from tests.support.proxy import Mode, Proxy, proxied
from tests.support.s3 import S3Server, s3_server
from tests.support.watching import get, metrics, port_of, webhook

RUN = ("run", "--as", "scheduler", "--metrics", "0")
SCHEDULED = CONFIG.replace(
    'lease = "5m"',
    'lease = "1s"\ninterval = "1s"\nredis_timeout = "1s"\nstore_timeout = "2s"\n'
    'postgres_connect_timeout = "2s"',  # statement_timeout is as nobody has changed it: ten minutes
).replace("starts_at = 2022-01-01T00:00:00, ends_at = 2050", "starts_at = 2049-01-01T00:00:00, ends_at = 2050")
#: In which step each server goes away, at its first call there.
WHERE = {"redis": Step.SNAPSHOT, "postgres": Step.SEAL, "store": Step.REWARD}


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    """A server that speaks S3."""
    with s3_server() as server:
        yield server


@dataclass(frozen=True)
class Away:
    """A world whose daemon reaches each server through a proxy."""

    world: World
    through: World
    proxies: dict[str, Proxy]


@contextmanager
def _proxied(season: Prepared, s3: S3Server, redis: RedisServer, postgres: PostgresServer) -> Iterator[Away]:
    host, _, port = s3.endpoint.removeprefix("http://").partition(":")
    with ExitStack() as stack:
        proxies = {
            "redis": stack.enter_context(proxied(redis.socket)),
            "postgres": stack.enter_context(proxied(postgres.socket)),
            "store": stack.enter_context(proxied((host, int(port)))),
        }
        direct = Store(f"s3://{s3.bucket()}/archive", s3.environ)
        world = stack.enter_context(season.world(config=SCHEDULED, store=direct))
        with psycopg.connect(world.ledger_url, autocommit=True) as connection:
            connection.execute("update finale.season set backfill = false")
        name = world.ledger_url.rpartition("@/")[2].partition("?")[0]
        through = replace(
            world,
            redis_url=f"redis://127.0.0.1:{proxies['redis'].port}",
            ledger_url=f"postgresql://finale@127.0.0.1:{proxies['postgres'].port}/{name}",
            store=Store(direct.url, {**s3.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxies['store'].port}"}),
        )
        yield Away(world, through, proxies)


@pytest.fixture(scope="module")
def whole(season: Prepared, s3: S3Server, shared_redis: RedisServer, shared_postgres: PostgresServer) -> Whole:
    """The season closed by one undisturbed tick, through the same proxies."""

    @contextmanager
    def worlds() -> Iterator[World]:
        with _proxied(season, s3, shared_redis, shared_postgres) as away:
            yield away.through

    return undisturbed(worlds, "tick")


def _cases() -> Iterator[object]:
    quick = {("postgres", "cut")}
    for server in WHERE:
        for mode in ("refuse", "hang", "cut"):
            marks = () if (server, mode) in quick else pytest.mark.slow
            yield pytest.param(server, mode, marks=marks, id=f"{server}-{mode}")


@pytest.mark.parametrize(("server", "mode"), list(_cases()))
def test_i8_c57_a_server_is_away_for_longer_than_the_lease(
    season: Prepared,
    s3: S3Server,
    shared_redis: RedisServer,
    shared_postgres: PostgresServer,
    whole: Whole,
    server: str,
    mode: Mode,
) -> None:
    """I5, I8, C57: refused, hanging or cut off in the middle: the daemon lives on, says so, and ends it once."""
    call = next(one for one in whole.of(WHERE[server]) if one.kind == server and one.text != "connect")
    with _proxied(season, s3, shared_redis, shared_postgres) as away, webhook() as (url, notes):
        plan = Plan(call, "pause", done=False)
        with replace(away.through, more={"FINALE_NOTIFY_URL": url}).running(*RUN, plan=plan) as daemon:
            daemon.wait_until_paused()
            port = port_of(_log(daemon))
            await_that(lambda: get(port, "/readyz")[0] == 200)
            assert metrics(port)["finale_up",] == 1
            away.proxies[server].set(mode)
            daemon.go_on()
            _wait_longer_than_the_lease(away.world)
            await_that(lambda: '"level": "error"' in _log(daemon))
            await_that(lambda: _says_so(server, port, notes), 60)
            assert get(port, "/healthz")[0] == 200
            away.proxies[server].set("pass")
            await_that(lambda: _state(away.world) == "cleaned", 60)
            await_that(lambda: get(port, "/readyz")[0] == 200, 60)
            after = metrics(port)
            assert after["finale_up",] == 1 and ("finale_season_attempts", "cup", "s1") not in after
            assert {("finale_last_success_timestamp_seconds", "cup", str(step)) for step in Step} <= after.keys()
            os.kill(daemon.pid, signal.SIGTERM)
            outcome = daemon.finish()
            assert outcome.code == 0, outcome
        end = away.world.end_state().without_staging()
        assert not end.differs(whole.end.without_staging())
        done = [note["step"] for note in notes if note["event"] == "season.done" and note["season"] == "cup/s1"]
        assert len(done) == len(set(done)) and {"deliver", "clean"} <= set(done)
        named = "ledger" if server == "postgres" else server
        events = [note["event"] for note in notes if note["event"].endswith((".away", ".back"))]
        assert events[:2] == [f"{named}.away", f"{named}.back"] and set(events) == set(events[:2])


def _says_so(server: str, port: int, notes: list[dict[str, Any]]) -> bool:
    """Return whether readiness, metrics and notifications all tell that this server is away."""
    events = {note["event"] for note in notes}
    status, text = get(port, "/readyz")
    named = status == 503 and server in text and metrics(port)["finale_server_up", server] == 0
    if server == "postgres":
        return named and metrics(port)["finale_up",] == 0 and "ledger.away" in events
    return named and metrics(port)["finale_up",] == 1 and f"{server}.away" in events


def _log(daemon: Running) -> str:
    return os.pread(daemon._err.fileno(), 1 << 20, 0).decode(errors="replace")


def _state(world: World) -> str:
    with psycopg.connect(world.ledger_url, autocommit=True) as connection:
        (state,) = connection.execute("select state from finale.season where season = 's1'").fetchone() or ("",)
        return str(state)


def _wait_longer_than_the_lease(world: World) -> None:
    """Return three leases later, by PostgreSQL's clock."""
    with psycopg.connect(world.ledger_url, autocommit=True) as connection:
        connection.execute("select pg_sleep(3)")
