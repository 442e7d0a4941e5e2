"""C57: what is read through the ADBC driver ends in time too where the server hangs."""

from __future__ import annotations

import threading

import pytest

from jobs.embedded.postgres_server import PostgresServer
from leaderboard.errors import UnavailableError
from ledger import stream
from ledger.silent import Caller, FellSilentError
from tests.ledger.support import await_that
from tests.support.proxy import proxied
from tests.support.servers import Databases

ROWS = "select n, repeat('x', 1000) as filling from generate_series(1, 200000) n"


@pytest.mark.parametrize("when", ["before the first rows", "in the middle"])
def test_c57_a_server_that_hangs_while_rows_are_streamed_is_given_up(
    shared_postgres: PostgresServer, when: str
) -> None:
    """C57: hung before or between the rows, the reader is told within seconds, and its thread ends with the server."""
    with Databases(shared_postgres).fresh() as direct, proxied(shared_postgres.socket) as proxy:
        name = direct.rpartition("@/")[2].partition("?")[0]
        url = f"postgresql://finale@127.0.0.1:{proxy.port}/{name}"
        with pytest.raises(UnavailableError, match="broke off"), stream.opened(url, silent_for=2) as opened:
            if when == "before the first rows":
                proxy.set("hang")
            with opened.rows(ROWS, {}) as batches:
                assert batches.read_next_batch().num_rows
                proxy.set("hang")
                for _ in batches:
                    pass
        proxy.set("refuse")
        await_that(lambda: not [one for one in threading.enumerate() if one.name == "finale-stream"])


def test_a_call_that_fell_silent_is_not_followed_by_another() -> None:
    """The first is told after its time, the next at once; what is left for later is done when the call comes back."""
    call, hangs, done = Caller("finale-test", 0.2), threading.Event(), threading.Event()
    assert call(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        call(lambda: 1 // 0)
    for _ in range(2):
        with pytest.raises(FellSilentError):
            call(lambda: hangs.wait(60))
    call.later(done.set)
    call.end()
    assert not done.is_set()
    hangs.set()
    assert done.wait(10)
