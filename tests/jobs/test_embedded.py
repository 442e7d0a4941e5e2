"""The pair of embedded servers of one home: who starts them, who stops them, and where they may live."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest
import redis

from config.home import default_home
from jobs.embedded import EmbeddedHome, Endpoints, Status, down, session, status, up
from jobs.embedded import home as home_module
from jobs.embedded.account import Account
from jobs.embedded.postgres_server import SOCKET_NAME
from leaderboard.errors import EmbeddedError
from tests.support.servers import ServerFactory, survivors

REPOSITORY = Path(__file__).parents[2]
NOBODY = 65534


@pytest.fixture
def home(private_dir: Path) -> Iterator[EmbeddedHome]:
    """A home that does not exist yet; its servers are stopped after the test."""
    made = EmbeddedHome(private_dir / "home", durable=False)
    yield made
    down(made)


@dataclass(frozen=True)
class Command:
    """A running command, and the process ids of the Redis and the PostgreSQL it uses."""

    process: subprocess.Popen[str]
    pids: tuple[int, ...]

    def end(self) -> int:
        """Let it end by itself, unless it was killed, and return its exit code."""
        if self.process.poll() is None:
            self.process.communicate("\n")
        return self.process.returncode


@contextmanager
def another_command(home: EmbeddedHome, *words: str) -> Iterator[Command]:
    """A process of its own that is using the servers; it ends by itself at the end of the block."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.embedded_user", str(home.path), *words],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline().split()
        assert said[:1] == ["in"]
        command = Command(process, tuple(map(int, said[1:])))
        yield command
        command.end()


def pids(found: Status) -> tuple[int | None, int | None]:
    return found.redis.pid, found.postgres.pid


def write(endpoints: Endpoints) -> None:
    with redis.Redis.from_url(endpoints.redis_url) as client:
        client.set("a", "1")
    with psycopg.connect(endpoints.postgres_url) as connection:
        connection.execute("CREATE TABLE a AS SELECT 1 AS b")


def assert_written(endpoints: Endpoints) -> None:
    with redis.Redis.from_url(endpoints.redis_url) as client:
        assert client.get("a") == b"1"
    with psycopg.connect(endpoints.postgres_url) as connection:
        assert connection.execute("SELECT b FROM a").fetchall() == [(1,)]


def test_a_second_start_finds_the_first_and_the_last_one_out_stops(home: EmbeddedHome) -> None:
    with session(home) as first:
        started = status(home)
        assert (started.redis.state, started.postgres.state, started.in_use) == ("running", "running", True)
        with session(home) as second:
            assert second == first
            assert pids(status(home)) == pids(started)
        assert pids(status(home)) == pids(started)
        write(first)
    assert not survivors(home.path)
    stopped = status(home)
    assert (stopped.redis.state, stopped.postgres.state, stopped.in_use) == ("stopped", "stopped", False)
    with session(home) as again:
        assert_written(again)


def test_up_keeps_the_servers_until_down(home: EmbeddedHome) -> None:
    endpoints = up(home)
    started = status(home)
    assert started.kept
    assert not started.in_use
    with session(home) as found:
        assert found == endpoints
    assert up(home) == endpoints
    assert pids(status(home)) == pids(started)
    assert down(home)
    assert not survivors(home.path)
    assert not status(home).kept
    assert not down(home)


def test_nothing_is_made_by_asking_about_a_home_that_does_not_exist(home: EmbeddedHome) -> None:
    assert status(home).redis.state == "stopped"
    assert not down(home)
    assert not home.path.exists()


def test_the_store_is_a_folder_beside_the_servers(home: EmbeddedHome) -> None:
    with session(home) as endpoints:
        assert endpoints.store_url == f"file://{home.path}/archive"
        assert (home.path / "archive").is_dir()


def test_the_second_of_two_commands_outlives_the_first(home: EmbeddedHome) -> None:
    """The command that started the servers ends; the other one goes on, and the servers end with it."""
    with another_command(home) as first, session(home) as endpoints:
        assert first.end() == 0
        assert pids(status(home)) == first.pids
        write(endpoints)
        assert_written(endpoints)
    assert not survivors(home.path)


def test_a_killed_command_leaves_servers_that_the_next_one_finds(home: EmbeddedHome) -> None:
    """SIGKILL leaves them running and counted by nobody: the next command carries on with them and then stops them."""
    with another_command(home) as command:
        command.process.kill()
        command.process.wait()
        assert pids(status(home)) == command.pids
        assert not status(home).in_use
        with session(home):
            assert pids(status(home)) == command.pids
    assert not survivors(home.path)


def test_down_refuses_while_a_command_uses_the_servers(home: EmbeddedHome) -> None:
    """A refusal names the process and changes nothing: they stay when that command ends, as `up` had asked."""
    up(home)
    with session(home) as endpoints:
        with pytest.raises(EmbeddedError, match="Another command is using") as refused:
            down(home)
        assert f"process {os.getpid()} (" in refused.value.detail
        write(endpoints)
    assert status(home).kept
    assert_written(up(home))


def test_who_needs_no_redis_is_not_hindered_by_one_that_hangs(home: EmbeddedHome) -> None:
    """The ledger alone is served while Redis hangs; who needs it is told so, not the log's banner."""
    up(home)
    hung = status(home).redis.pid
    assert hung is not None
    os.kill(hung, signal.SIGSTOP)
    try:
        with session(home, redis=False) as endpoints, psycopg.connect(endpoints.postgres_url) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
        server = replace(home.servers()[0], patience_seconds=0.1, answer_seconds=1)
        with pytest.raises(EmbeddedError, match=f"runs but does not answer .process {hung}.") as told:
            server.start()
        assert "the last line of its log" in told.value.detail and "\n" not in told.value.detail
    finally:
        os.kill(hung, signal.SIGCONT)
    assert down(home)


def test_many_commands_at_once_never_decide_against_each_other(home: EmbeddedHome) -> None:
    """Commands that come and go at the same time: each has its servers, and nothing is left at the end."""
    code = (
        "import sys; from pathlib import Path; from jobs.embedded import EmbeddedHome, session; import redis\n"
        "for n in range(4):\n"
        "    with session(EmbeddedHome(Path(sys.argv[1]), durable=False)) as endpoints:\n"
        "        with redis.Redis.from_url(endpoints.redis_url) as client:\n"
        "            client.incr('n')\n"
    )
    commands = [subprocess.Popen([sys.executable, "-c", code, str(home.path)], cwd=REPOSITORY) for _ in range(4)]
    assert [command.wait() for command in commands] == [0, 0, 0, 0]
    assert not survivors(home.path)
    with session(home) as endpoints, redis.Redis.from_url(endpoints.redis_url) as client:
        assert client.get("n") == b"16"


def test_both_servers_killed_are_started_again_with_their_data(home: EmbeddedHome) -> None:
    write(up(home))
    for pid in pids(status(home)):
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    with session(home) as endpoints:
        assert_written(endpoints)


def test_a_home_too_long_for_a_socket_uses_a_short_private_folder(private_dir: Path) -> None:
    """The folder is recorded, reused, replaced if it was swept away, and removed when the servers stop."""
    home = EmbeddedHome(private_dir / ("long" * 30), durable=False)
    try:
        endpoints = up(home)
        folder = home.servers()[0].socket_directory
        assert len(str(folder / SOCKET_NAME)) < 107
        assert folder.stat().st_mode & 0o777 == 0o700
        write(endpoints)
        assert up(home) == endpoints
        for server in home.servers():
            server.kill()
        folder.rename(private_dir / "swept")
        moved = up(home)
        assert moved != endpoints
        assert_written(moved)
        folder = home.servers()[0].socket_directory
    finally:
        down(home)
    assert not folder.exists()
    assert not (home.path / "sockets").exists()


def test_an_ordinary_user_runs_the_servers_as_himself(private_dir: Path, server_factory: ServerFactory) -> None:
    """Without root rights nothing is copied, and everything in the home belongs to that user."""
    folder = private_dir / "ordinary"
    folder.mkdir()
    words: list[str] = []
    uid = os.geteuid()
    if uid == 0:
        uid = NOBODY
        os.chown(folder, uid, uid)
        programs = server_factory.programs
        words = ["--as", str(uid), "--programs", str(programs.redis()), str(programs.postgres())]
    home = EmbeddedHome(folder / "home")
    with another_command(home, *words) as command:
        for pid in command.pids:
            assert Path(f"/proc/{pid}").stat().st_uid == uid
        assert not (home.path / "bin").exists()
        assert {path.stat().st_uid for path in home.path.rglob("*")} == {uid}
        assert home.path.stat().st_mode & 0o777 == 0o700
        assert command.end() == 0
    assert not survivors(home.path)


def test_a_home_that_the_servers_user_cannot_enter_is_named(private_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's home of mode 700: the error says which folder is closed, and what to set."""
    closed = private_dir / "closed"
    closed.mkdir(mode=0o700)
    stranger = Account("stranger", os.geteuid() + 54321, os.getegid() + 54321, switch=True)
    monkeypatch.setattr(home_module, "server_account", lambda *_: stranger)
    with (
        pytest.raises(EmbeddedError, match=f"cannot enter {closed}. ") as caught,
        session(EmbeddedHome(closed / "home")),
    ):
        pytest.fail("no servers were to be had")
    assert "FINALE_HOME" in caught.value.hint


@pytest.mark.parametrize("use", [session, up])
def test_a_home_that_cannot_be_made_is_named(
    private_dir: Path, use: Callable[[EmbeddedHome], AbstractContextManager[Endpoints]]
) -> None:
    (private_dir / "file").write_text("")
    with (
        pytest.raises(EmbeddedError, match=str(private_dir / "file")) as caught,
        use(EmbeddedHome(private_dir / "file" / "home")),
    ):
        pytest.fail("no servers were to be had")
    assert "FINALE_HOME" in caught.value.hint


def test_a_server_that_cannot_start_leaves_none_running(home: EmbeddedHome) -> None:
    """If PostgreSQL does not start, the Redis that was started for the same command is stopped again."""
    with session(home):
        pass
    (home.path / "postgres" / "data" / "postgresql.conf").write_text("nonsense\n")
    with pytest.raises(EmbeddedError, match="PostgreSQL ended while it was starting"), session(home):
        pytest.fail("no servers were to be had")
    assert not survivors(home.path)


def test_the_default_home() -> None:
    """$FINALE_HOME first; root's is under /var/lib, everybody else's in the user's data folder."""
    assert default_home({"FINALE_HOME": "/srv/finale", "XDG_DATA_HOME": "/data"}) == Path("/srv/finale")
    if os.geteuid() == 0:
        assert default_home({"XDG_DATA_HOME": "/data"}) == Path("/var/lib/finale")
    else:
        assert default_home({"XDG_DATA_HOME": "/data"}) == Path("/data/finale")
        assert default_home({}) == Path.home() / ".local" / "share" / "finale"
