"""The two embedded servers, each alone: what a crash leaves behind is mended, a start that fails says why."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest
import redis

from jobs.embedded.binaries import Programs
from jobs.embedded.postgres_server import PostgresServer
from jobs.embedded.redis_server import RedisServer
from jobs.embedded.server import Server, works_in
from leaderboard.errors import EmbeddedError
from tests.support.servers import ServerFactory, running


@contextmanager
def unrelated_process(server: Server) -> Iterator[int]:
    """A living process of the servers' user that has nothing to do with the server: its id."""
    process = subprocess.Popen(["/bin/sleep", "600"], cwd="/", **server.account.arguments())
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_redis_keeps_its_data_over_a_kill(redis_server: RedisServer) -> None:
    """A killed Redis is started again on its stale socket and pid file, with what it had confirmed."""
    with redis.Redis.from_url(redis_server.url) as client:
        client.set("a", "1")
    redis_server.kill()
    assert redis_server.socket.exists()
    assert redis_server.recorded_pid()
    assert redis_server.pid() is None
    assert redis_server.start()
    with redis.Redis.from_url(redis_server.url) as client:
        assert client.get("a") == b"1"


def test_postgres_keeps_its_data_over_a_kill(postgres_server: PostgresServer) -> None:
    """A killed PostgreSQL is started again on its stale socket and pid file, with what it had committed."""
    with psycopg.connect(postgres_server.url) as connection:
        connection.execute("CREATE TABLE a AS SELECT 1 AS b")
    postgres_server.kill()
    assert postgres_server.recorded_pid()
    assert postgres_server.pid() is None
    assert postgres_server.start()
    with psycopg.connect(postgres_server.url) as connection:
        assert connection.execute("SELECT b FROM a").fetchall() == [(1,)]


def test_stale_postgres_pid_files_naming_another_program_are_removed(postgres_server: PostgresServer) -> None:
    """After a reset, the recorded pid may belong to another program of the same user: it is neither believed nor hurt.

    PostgreSQL itself would refuse to start here.
    """
    postgres_server.kill()
    with unrelated_process(postgres_server) as pid:
        for path in (postgres_server.data / "postmaster.pid", Path(f"{postgres_server.socket}.lock")):
            first, rest = path.read_text().split("\n", 1)
            assert first.isdigit()
            path.write_text(f"{pid}\n{rest}")
        assert postgres_server.pid() is None
        assert not postgres_server.stop()
        assert postgres_server.start()
        assert postgres_server.pid() not in (None, pid)
        os.kill(pid, 0)


def test_stale_redis_pid_file_naming_another_program_is_not_believed(redis_server: RedisServer) -> None:
    """Neither stopping nor killing touches the process that has the dead server's pid now."""
    redis_server.kill()
    with unrelated_process(redis_server) as pid:
        (redis_server.directory / "redis.pid").write_text(f"{pid}\n")
        assert redis_server.pid() is None
        assert not redis_server.stop()
        redis_server.kill()
        assert redis_server.start()
        os.kill(pid, 0)


@pytest.mark.parametrize("content", ["", "not a number\n", "999999999\n"])
def test_a_broken_postmaster_pid_is_mended(postgres_server: PostgresServer, content: str) -> None:
    """A pid file cut short by a full disk or a reset does not keep PostgreSQL from starting."""
    postgres_server.stop()
    (postgres_server.data / "postmaster.pid").write_text(content)
    assert postgres_server.start()


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_server_whose_socket_was_removed_is_replaced(server_factory: ServerFactory, kind: str) -> None:
    """A server that nobody can reach any more is ended before another one opens its data."""
    server = replace(getattr(server_factory, kind)(), patience_seconds=0.2)
    with running(server):
        first = server.recorded_pid()
        server.socket.unlink()
        assert server.start()
        assert server.pid() not in (None, first)
        assert not works_in(first, server.directory)


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_server_that_hangs_is_named_and_left_alone(server_factory: ServerFactory, kind: str) -> None:
    """A living server that only does not answer in time may be doing work: it is not ended, but reported."""
    server = replace(getattr(server_factory, kind)(), patience_seconds=0.0, answer_seconds=2)
    with running(server):
        pid = server.pid()
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(EmbeddedError, match=rf"runs but does not answer \(process {pid}\)"):
                server.start()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert not server.start()
        assert server.pid() == pid


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_starts_at_once_make_one_server(server_factory: ServerFactory, kind: str) -> None:
    """Of several starts at the same instant one starts the server and the others find it, also while it starts up."""
    server = getattr(server_factory, kind)()
    server.start()
    server.stop()
    try:
        with ThreadPoolExecutor(4) as pool:
            started = list(pool.map(lambda _: server.start(), range(4)))
        assert started.count(True) == 1
    finally:
        server.stop()


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_stop_leaves_no_process_and_is_repeatable(server_factory: ServerFactory, kind: str) -> None:
    server = getattr(server_factory, kind)()
    assert not server.stop()
    assert server.start()
    assert not server.start()
    assert server.alive()
    assert server.stop()
    assert not server.alive()
    assert server.pid() is None
    assert not server.stop()


def test_neither_server_listens_on_the_network(redis_server: RedisServer, postgres_server: PostgresServer) -> None:
    """The sockets lie in a folder of mode 700, and they are the only way in."""
    with redis.Redis.from_url(redis_server.url) as client:
        assert client.config_get("port") == {"port": "0"}
    with psycopg.connect(postgres_server.url) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    for server in (redis_server, postgres_server):
        assert server.socket_directory.stat().st_mode & 0o777 == 0o700


def test_redis_is_set_to_keep_everything(server_factory: ServerFactory) -> None:
    """A board must not be evicted, and a confirmed write is in the append-only file within a second."""
    with running(replace(server_factory.redis(), durable=True)) as server, redis.Redis.from_url(server.url) as client:
        wanted = {"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction", "save": ""}
        for name, value in wanted.items():
            assert client.config_get(name) == {name: value}


def test_postgres_is_made_durable_utf8_and_utc(server_factory: ServerFactory) -> None:
    """With durable=True nothing is traded for speed; text sorts by bytes, times show in UTC."""
    with running(replace(server_factory.postgres(), durable=True)) as server, psycopg.connect(server.url) as connection:
        wanted = {
            "fsync": "on",
            "full_page_writes": "on",
            "synchronous_commit": "on",
            "server_encoding": "UTF8",
            "lc_collate": "C",
            "TimeZone": "UTC",
            "max_connections": "100",
        }
        shown = connection.execute(
            "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)"
            " UNION SELECT 'lc_collate', datcollate FROM pg_database WHERE datname = current_database()",
            (list(wanted),),
        ).fetchall()
        assert dict(shown) == wanted


def test_a_redis_that_does_not_start_says_why(server_factory: ServerFactory) -> None:
    """The program's own words stand in the error."""
    with pytest.raises(EmbeddedError, match="maxmemory") as caught:
        server_factory.redis("--maxmemory", "nonsense").start()
    assert "server.log" in caught.value.hint


def test_a_postgres_that_does_not_start_shows_its_log(server_factory: ServerFactory) -> None:
    """The last lines of the server's log stand in the error's detail."""
    server = server_factory.postgres()
    server.start()
    server.stop()
    with (server.data / "postgresql.conf").open("a") as settings:
        settings.write("work_mem = 'nonsense'\n")
    with pytest.raises(EmbeddedError, match="ended while it was starting") as caught:
        server.start()
    assert "work_mem" in caught.value.detail


@dataclass(frozen=True, slots=True)
class DyingInitdb(Programs):
    """PostgreSQL's programs, but for an initdb that is killed half-way."""

    folder: Path = Path()

    def postgres(self) -> Path:
        self.folder.mkdir()
        initdb = self.folder / "initdb"
        initdb.write_text(
            '#!/bin/sh\nfor a; do case $a in --pgdata=*) d=${a#*=};; esac; done\nmkdir "$d/base"; kill -9 $$\n'
        )
        initdb.chmod(0o755)
        return self.folder


def test_an_interrupted_initdb_is_mended(server_factory: ServerFactory, private_dir: Path) -> None:
    """Half a cluster is never taken for one: the next start throws it away and makes a whole one."""
    server = server_factory.postgres()
    dying = DyingInitdb(server.account, private_dir, folder=private_dir / "bin")
    with pytest.raises(EmbeddedError, match="could not make its data"):
        replace(server, programs=dying).start()
    assert not server.data.exists()
    assert [path.name for path in server.directory.glob("init-*/*")] == ["base"]
    with running(server), psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert not list(server.directory.glob("init-*"))


def test_too_many_clients_do_not_make_postgres_look_dead(postgres_server: PostgresServer) -> None:
    """A server that refuses a connection is there: it is found, not ended and started anew."""
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute("ALTER DATABASE postgres CONNECTION LIMIT 0")
        connection.execute("ALTER DATABASE postgres ALLOW_CONNECTIONS false")
        pid = postgres_server.pid()
        with pytest.raises(EmbeddedError, match="did not give the database finale"):
            postgres_server.start()
        assert postgres_server.pid() == pid
