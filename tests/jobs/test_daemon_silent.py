"""C57: a PostgreSQL that takes what it is sent and never answers, under the timeouts that nobody has changed."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from psycopg.conninfo import conninfo_to_dict

from jobs.embedded.postgres_server import PostgresServer
from ledger.database import conninfo
from tests.ledger.support import await_that
from tests.support import watching
from tests.support.cli import World, started
from tests.support.proxy import proxied
from tests.support.watching import get, metrics, port_of, webhook


@pytest.mark.slow
def test_c57_a_daemon_whose_ledger_hangs_sees_it_says_so_and_can_be_stopped(
    world: World, shared_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C57: alive, not ready, the metric and one note within a minute; ready again after it; and SIGTERM ends it."""
    watching.ended_season(world)
    name = world.postgres_url.rpartition("@/")[2].partition("?")[0]
    with proxied(shared_postgres.socket) as proxy, webhook() as (url, notes), ExitStack() as stack:
        monkeypatch.setenv("FINALE_POSTGRES", f"postgresql://finale@127.0.0.1:{proxy.port}/{name}")
        monkeypatch.setenv("FINALE_NOTIFY_URL", url)
        world.config.write_text('[runner]\ninterval = "1s"\nstop_within = "2s"\n' + world.config.read_text())
        daemon = stack.enter_context(started("run", "--metrics", "0"))
        stack.callback(daemon.kill)
        assert daemon.stderr is not None
        log = ""
        while not port_of(log):
            log += daemon.stderr.readline().decode()
        port = port_of(log)
        await_that(lambda: world.state("cup", "one") == "delivered")
        await_that(lambda: get(port, "/readyz")[0] == 200)
        proxy.set("hang")
        await_that(lambda: get(port, "/readyz") == (503, "Service Unavailable: no answer from postgres\n"), 60)
        await_that(lambda: "ledger.away" in {note["event"] for note in notes})
        assert get(port, "/healthz")[0] == 200
        seen = metrics(port)
        assert (seen["finale_server_up", "postgres"], seen["finale_up",]) == (0, 0)
        proxy.set("pass")
        await_that(lambda: get(port, "/readyz")[0] == 200, 60)
        await_that(lambda: "ledger.back" in {note["event"] for note in notes})
        proxy.set("hang")
        rounds = metrics(port)["finale_rounds_total", "failed"]
        await_that(lambda: metrics(port)["finale_rounds_total", "failed"] > rounds, 60)
        daemon.terminate()
        log += daemon.communicate(timeout=40)[1].decode()
    assert daemon.returncode == 0 and '"round.failed"' in log and "Traceback" not in log


def test_c57_a_server_whose_machine_is_gone_is_noticed_in_the_middle_of_a_statement() -> None:
    """C57: Linux sends no keepalives while what was sent is unacknowledged; another setting bounds that."""
    given = conninfo_to_dict(conninfo("postgresql://db/finale", connect_timeout=10, statement_timeout=600))
    assert given["tcp_user_timeout"] == "60000"
    theirs = conninfo("postgresql://db/finale?tcp_user_timeout=5000", connect_timeout=10, statement_timeout=600)
    assert conninfo_to_dict(theirs)["tcp_user_timeout"] == "5000"
