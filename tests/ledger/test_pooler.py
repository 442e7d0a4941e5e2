"""C62: the ledger behind a real PgBouncer that hands each transaction to another server process."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from jobs.embedded.account import Account
from leaderboard.marks import Mark
from ledger import pending, voids
from ledger.database import Database
from ledger.freeze import freeze
from tests.ledger import support
from tests.ledger.support import NOON, result, take
from tests.support.servers import ServerFactory

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
PORT = 6432  # only the name of a socket in a folder of the test's own
CONFIG = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr =
listen_port = {own}
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = 3
server_round_robin = 1
ignore_startup_parameters = options, extra_float_digits
logfile = {folder}/pgbouncer.log
"""

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed")


@contextmanager
def pooled(url: str, folder: Path, account: Account) -> Iterator[str]:
    """Yield the URL of the same database behind a pooler in transaction mode, for the length of the block."""
    there = conninfo_to_dict(url)
    folder.mkdir()
    config = folder / "pgbouncer.ini"
    config.write_text(
        CONFIG.format(host=there["host"], port=there["port"], user=there["user"], own=PORT, folder=folder)
    )
    account.give(folder)
    assert PROGRAM is not None
    with subprocess.Popen([PROGRAM, "-q", str(config)], stderr=subprocess.DEVNULL, **account.arguments()) as process:
        try:
            yield _answering(f"postgresql://{there['user']}@/{there['dbname']}?host={folder}&port={PORT}", process)
        finally:
            process.terminate()
            process.wait(20)


def _answering(url: str, process: subprocess.Popen[bytes]) -> str:
    until = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
            return url
        except psycopg.OperationalError:
            assert process.poll() is None and time.monotonic() < until, "pgbouncer does not answer"
            time.sleep(0.05)


@pytest.fixture
def pooler(ledger_url: str, private_dir: Path, server_factory: ServerFactory) -> Iterator[str]:
    """A pooler whose three server processes all stand, and serve by turns."""
    with pooled(ledger_url, private_dir / "pooler", server_factory.account) as url:
        with ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(psycopg.connect(url)).execute("select 1")
        yield url


def test_c62_transactions_wander_over_server_processes(pooler: str) -> None:
    """What the next test stands on: one connection's statements are answered by several processes."""
    with Database(pooler) as database:
        assert len({database.run(b"select pg_backend_pid() as pid")[0]["pid"] for _ in range(9)}) == 3


def test_c62_results_voids_leases_and_freeze_through_a_pooler(pooler: str, ledger_url: str) -> None:
    """C62: each of them works, over two connections by turns, and times are those that were given."""
    with Database(pooler) as one, Database(pooler) as other, Database(ledger_url) as direct:
        season, lease = support.closing(one)
        for number in range(20):
            assert take((one, other)[number % 2], result(f"m{number}", points=number)).new == 1
        assert take(other, *(result(f"n{number}", f"p{number}") for number in range(500))).new == 500
        assert take(one, result("m1", points=1)).repeated == 1
        voids.void(other, "goals", "m19", player=None, who="ana", because="test", dry_run=False)
        held = pending.claim(one, season.key, "applier", support.HOUR)
        found = pending.read(one, held, 1_000)
        assert len(found.totals) == 501
        assert {total.points for total in found.totals if total.player_id == b"ann"} == {sum(range(19))}
        assert {total.reached_at for total in found.totals} == {NOON}
        marks = {(lease.bucket, 0): Mark(1, "t") for lease in held}
        assert pending.record(one, held, marks, found.entries, support.HOUR) == {lease.bucket for lease in held}
        assert pending.count(other, season.key) == 0
        freeze(one, lease, season)
        assert take(other, result("late", points=3)).late == 1
        assert support.totals(direct, season)[b"ann"] == (sum(range(19)), NOON, 19)
