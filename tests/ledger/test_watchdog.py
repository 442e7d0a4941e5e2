"""A server that takes a statement and never answers is given up, though its machine keeps the connection alive."""

from __future__ import annotations

import time

import pytest

from jobs.embedded.postgres_server import PostgresServer
from leaderboard.errors import FinaleError, UnavailableError
from ledger import facts
from ledger.database import Database
from tests.ledger.support import board, result, take
from tests.support.proxy import proxied


def test_c57_a_silent_server_is_given_up(shared_postgres: PostgresServer, ledger_url: str) -> None:
    """C57: a statement, and the end of a transaction, that hang are broken off; the next connection works."""
    name = ledger_url.rpartition("@/")[2].partition("?")[0]
    with proxied(shared_postgres.socket) as proxy:
        url = f"postgresql://finale@127.0.0.1:{proxy.port}/{name}"
        with Database(url, statement_timeout=0.5) as database:
            database.now()
            proxy.set("hang")
            begun = time.monotonic()
            with pytest.raises(UnavailableError):
                database.now()
            assert time.monotonic() - begun < 20
            assert not database.usable
        proxy.set("pass")
        with Database(url, statement_timeout=0.5) as database, pytest.raises(FinaleError), database.transaction():
            database.run(b"create temp table x ()")
            proxy.set("hang")
        proxy.set("pass")
        with Database(url) as database:
            assert database.usable and database.now()


@pytest.mark.parametrize("reads_on", [True, False])
def test_c57_a_server_that_hangs_between_portions_is_given_up(
    shared_postgres: PostgresServer, ledger_url: str, monkeypatch: pytest.MonkeyPatch, reads_on: bool
) -> None:
    """C57: rows from a cursor of the server, the ledger's and facts of the user's: hung, reading ends, on or off."""
    with Database(ledger_url) as direct:
        take(direct, result("m1"), boards=[board("one", source="goals"), board("two", source="goals")])
    monkeypatch.setattr(facts, "_LONGEST", 0.5)
    monkeypatch.setattr(facts, "_AT_ONCE", 1)
    name = ledger_url.rpartition("@/")[2].partition("?")[0]
    with proxied(shared_postgres.socket) as proxy:
        url = f"postgresql://finale@127.0.0.1:{proxy.port}/{name}"
        with Database(url, statement_timeout=0.5) as database:
            for rows in (
                database.stream("seasons.all", {}, 1),
                facts.queried(url, "select unnest(array['ann', 'bob']) as player_id", {}, ("player_id",)),
            ):
                assert len(next(rows)) == 1
                proxy.set("hang")
                begun = time.monotonic()
                with pytest.raises(UnavailableError):
                    if reads_on:
                        next(rows)
                    rows.throw(UnavailableError("the reader's own"))
                rows.close()
                assert time.monotonic() - begun < 20
                proxy.set("pass")


def test_cutting_a_connection_ends_a_wait_on_it(ledger_url: str) -> None:
    """What the heartbeat does to a runner that waits for the server which does not renew its lease either."""
    with Database(ledger_url) as database:
        database.cut()
        with pytest.raises(UnavailableError):
            database.now()
        database.cut()  # of a broken one there is nothing to cut
