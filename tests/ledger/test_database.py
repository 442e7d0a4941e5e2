"""The connection: its settings, its transactions, and its errors in an operator's words."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, timedelta

import psycopg
import pytest
from psycopg import Rollback, sql

from jobs.embedded.postgres_server import PostgresServer
from leaderboard.errors import AccessError, ConfigError, FinaleError, OutcomeUnknownError, UnavailableError
from ledger import barrier, leases, pending, totals
from ledger.database import Database
from ledger.failures import where
from ledger.freeze import freeze
from tests.ledger import support
from tests.ledger.support import NOON, result, take

SECRET = "s3cr3t-w0rd"
WRONG = "wr0ng-w0rd"
HBA = "local all finale trust\nlocal barred all reject\nlocal all all scram-sha-256\n"


def _words(error: FinaleError) -> str:
    """Return everything of an error that a person or a log could see."""
    return f"{error!s} {error!r} {error.detail} {error.hint} {''.join(traceback.format_exception(error))}"


def _end_backend(database: Database, url: str) -> None:
    """End the server process behind ``database``, as a crash of the network would."""
    pid = database.run(b"select pg_backend_pid() as pid")[0]["pid"]
    with Database(url) as other:
        other.run(b"select pg_terminate_backend(%(pid)s, 10000)", {"pid": pid})


def test_times_are_aware_utc_whatever_the_server_prefers(ledger_url: str) -> None:
    with Database(ledger_url) as database:
        name = sql.Identifier(database.run(b"select current_database() as name")[0]["name"])
        database.run(sql.SQL("alter database {} set timezone = 'Asia/Kolkata'").format(name))
    with Database(ledger_url) as database:
        assert database.now().utcoffset() == timedelta(0)
        assert database.now().tzinfo in (UTC, database.now().tzinfo)


def test_transactions_read_what_was_committed_while_they_waited(ledger_url: str) -> None:
    """I6: the barriers need READ COMMITTED, also where the database's own default is stricter."""
    with Database(ledger_url) as database:
        name = sql.Identifier(database.run(b"select current_database() as name")[0]["name"])
        database.run(sql.SQL("alter database {} set default_transaction_isolation = 'serializable'").format(name))
    with Database(ledger_url) as database, Database(ledger_url) as other, database.transaction():
        assert database.run(b"select count(*) as n from finale.source")[0]["n"] == 0
        other.run(b"insert into finale.source (name) values ('goals')")
        assert database.run(b"select count(*) as n from finale.source")[0]["n"] == 1


def test_inner_blocks_are_savepoints(ledger_url: str) -> None:
    with Database(ledger_url) as database:
        with database.transaction():
            database.run(b"insert into finale.source (name) values ('kept')")
            with pytest.raises(FinaleError), database.transaction():
                database.run(b"insert into finale.source (name) values ('undone')")
                database.run(b"insert into finale.source (name) values ('kept')")
        assert [row["name"] for row in database.run(b"select name from finale.source")] == ["kept"]


@pytest.mark.parametrize("pooled", [True, False])
def test_c62_only_a_server_process_of_ones_own_prepares(
    ledger_url: str, monkeypatch: pytest.MonkeyPatch, pooled: bool
) -> None:
    """C62: a pooler hands each transaction to another server process, which knows no statement of the last.

    It names a process of its own making at login. Without one, what runs often is planned once, and nothing else.
    """
    if pooled:
        monkeypatch.setattr(Database, "told_pid", 1)
    with Database(ledger_url) as database:
        for number in range(20):
            leases.find(database, 1)
            pending.any_left(database, 1)
            take(database, result(f"m{number}", at=NOON + timedelta(minutes=number)))
        prepared = {row["statement"] for row in database.run(b"select statement from pg_prepared_statements")}
        assert len(prepared) == (0 if pooled else 3)


def test_c62_no_state_of_a_session_is_needed_between_transactions(
    ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C62: results, lease, freeze and pending totals work when every session state is thrown away between them."""
    run = Database.run

    def discarding(self: Database, *args: object, **named: object) -> object:
        if not self._depth:
            self._connection.execute("discard all")
        return run(self, *args, **named)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(Database, "run", discarding)
    monkeypatch.setattr(Database, "told_pid", 1)  # as behind a pooler
    with Database(ledger_url) as database:
        season, lease = support.closing(database)
        assert take(database, result("m1", points=3)).new == 1
        freeze(database, lease, season)
        assert take(database, result("m2", points=3)).late == 1
        [bucket] = pending.claim(database, season.key, "applier", support.HOUR)
        assert [total.points for total in pending.read(database, [bucket], 10).totals] == [3]


def test_c71_a_copy_that_fails_leaves_a_usable_connection(ledger_url: str) -> None:
    """C71: an error amid COPY rolls the transaction back, and the connection is as good as before."""
    with Database(ledger_url) as database:
        broken = result("m\x00", points=1)
        with pytest.raises((FinaleError, psycopg.Error, ValueError)):
            take(database, result("m1"), broken)
        assert support.count(database, "match_result") == 0
        assert take(database, result("m1")).new == 1


def test_a_broken_read_is_unavailable(ledger_url: str) -> None:
    with Database(ledger_url) as database:
        _end_backend(database, ledger_url)
        with pytest.raises(UnavailableError):
            database.now()


def test_a_write_whose_answer_is_lost_has_an_unknown_outcome(ledger_url: str) -> None:
    """Only the commit decides: before it nothing was changed, at it nobody knows."""
    with Database(ledger_url) as database:
        _end_backend(database, ledger_url)
        with pytest.raises(OutcomeUnknownError):
            database.run(b"insert into finale.source (name) values ('goals')")


def test_a_commit_whose_answer_is_lost_has_an_unknown_outcome(ledger_url: str) -> None:
    with Database(ledger_url) as database, pytest.raises(OutcomeUnknownError), database.transaction():
        database.run(b"insert into finale.source (name) values ('goals')")
        _end_backend(database, ledger_url)


def test_a_transaction_that_begins_with_its_statements_is_one_like_any_other(ledger_url: str) -> None:
    """It commits, rolls back on purpose or on an error, and tells a commit whose answer is lost."""
    source = ("results.source", {"name": "goals"})
    with Database(ledger_url) as database:
        with database.begun(source, ("results.source_id", {"name": "goals"})) as [row]:
            assert row["source_id"] > 0 and not database.usable
        for name, error in (("kept", None), ("undone", Rollback), ("wrong", ValueError)):
            with suppress(ValueError), database.begun(("results.source", {"name": name})) as rows:
                assert rows == []
                if error:
                    raise error
        with pytest.raises(FinaleError), database.begun(source, ("results.source", {"name": None})):
            raise AssertionError("a statement failed before")
        assert database.usable
        assert [row["name"] for row in database.run(b"select name from finale.source")] == ["goals", "kept"]
        with pytest.raises(OutcomeUnknownError), database.begun(source):
            _end_backend(database, ledger_url)
    with Database(ledger_url) as database:
        _end_backend(database, ledger_url)
        with pytest.raises(UnavailableError), database.begun(source):
            raise AssertionError("there is no connection")


def test_statements_sent_together_take_effect_together(ledger_url: str) -> None:
    """All or none, each with its rows, the later ones seeing what the earlier did; a break leaves it unknown."""
    with Database(ledger_url) as database:
        find = ("results.source_id", {"name": "goals"})
        nothing, _, [row] = database.together(find, ("results.source", {"name": "goals"}), find)
        assert nothing == [] and row["source_id"] > 0
        with pytest.raises(FinaleError):
            database.together(("results.source", {"name": "undone"}), ("results.source", {"name": None}))
        assert [row["name"] for row in database.run(b"select name from finale.source")] == ["goals"]
        _end_backend(database, ledger_url)
        with pytest.raises(OutcomeUnknownError):
            database.together(find)


def test_a_break_before_the_commit_is_unavailable(ledger_url: str) -> None:
    with Database(ledger_url) as database, pytest.raises(UnavailableError), database.transaction():
        _end_backend(database, ledger_url)
        database.run(b"insert into finale.source (name) values ('goals')")


def test_a_statement_that_takes_too_long_is_unavailable(ledger_url: str) -> None:
    with Database(ledger_url, statement_timeout=0.05) as database, pytest.raises(UnavailableError, match="in time"):
        database.run(b"select pg_sleep(60)")


def test_i9_a_client_that_hangs_in_a_transaction_loses_its_locks(ledger_url: str) -> None:
    """I9: a host that vanished there must not keep every other runner out; what it did is rolled back."""
    with Database(ledger_url) as database, Database(ledger_url) as other:
        [limit] = database.run(b"show idle_in_transaction_session_timeout")[0].values()
        assert limit == "1min"
        with pytest.raises(UnavailableError), database.transaction():
            database.run(b"set local idle_in_transaction_session_timeout = '50ms'")
            database.run(b"lock table finale.season")
            other.run(b"select count(*) from finale.season")
            database.run(b"select 1")


def test_deadlock_is_told_as_a_transaction_given_up(ledger_url: str) -> None:
    with Database(ledger_url) as database, pytest.raises(UnavailableError, match="gave up a transaction"):
        database.run(b"do $$ begin raise exception 'deadlock detected' using errcode = '40P01'; end $$")


def test_no_driver_error_escapes(ledger_url: str) -> None:
    for statement in (b"select 1/0", b"selekt", b"insert into finale.source (source_id) values (1)"):
        with Database(ledger_url) as database, pytest.raises(FinaleError, match="refused a statement"):
            database.run(statement)


def test_closed_connection_is_unavailable(ledger_url: str) -> None:
    database = Database(ledger_url)
    database.close()
    with pytest.raises(UnavailableError, match="closed"):
        database.now()


def test_a_server_that_only_reads_is_named(ledger_url: str) -> None:
    """A standby given by mistake is told as that."""
    separator = "&" if "?" in ledger_url else "?"
    url = f"{ledger_url}{separator}options=-c%20default_transaction_read_only%3Don"
    with Database(url) as database, pytest.raises(AccessError, match=r"only reads.*primary"):
        database.run(b"insert into finale.source (name) values ('goals')")


def test_no_server(tmp_path: object) -> None:
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1/finale did not answer") as caught:
        Database(f"postgresql://user:{SECRET}@127.0.0.1:1/finale")
    assert SECRET not in _words(caught.value)
    with pytest.raises(UnavailableError):
        Database(f"postgresql:///finale?host={tmp_path}")


@pytest.fixture(scope="module")
def guarded(server_factory: object) -> Iterator[PostgresServer]:
    """A PostgreSQL that asks everyone but its superuser for a password."""
    from tests.support.servers import ServerFactory, running

    assert isinstance(server_factory, ServerFactory)
    with running(server_factory.postgres()) as server:
        (server.data / "pg_hba.conf").write_text(
            "local all finale trust\nlocal barred all reject\nlocal all all scram-sha-256\n"
        )
        with Database(server.url) as database:
            database.run(f"create role player login password '{SECRET}'; create role barred nologin".encode())
            database.run(b"create database barred")
            database.run(b"select pg_reload_conf()")
        yield server


def _as(server: PostgresServer, user: str, password: str = SECRET, database: str = "finale") -> str:
    return server.database_url(database).replace("finale@", f"{user}:{password}@", 1)


def test_wrong_password(guarded: PostgresServer) -> None:
    with Database(_as(guarded, "player")):
        pass
    with pytest.raises(AccessError, match="refused the login") as caught:
        Database(_as(guarded, "player", WRONG))
    assert WRONG not in _words(caught.value)


def test_missing_password(guarded: PostgresServer) -> None:
    with pytest.raises(AccessError, match="refused the login"):
        Database(guarded.url.replace("finale@", "player@", 1))


def test_missing_role_is_refused(guarded: PostgresServer) -> None:
    with pytest.raises(AccessError) as caught:
        Database(_as(guarded, "nobody"))
    assert SECRET not in _words(caught.value)


def test_missing_database(guarded: PostgresServer) -> None:
    with pytest.raises(AccessError, match="/nowhere has no such database") as caught:
        Database(_as(guarded, "player", database="nowhere"))
    assert SECRET not in _words(caught.value)


def test_connection_that_the_server_bars(guarded: PostgresServer) -> None:
    with pytest.raises(AccessError, match="refused the connection") as caught:
        Database(_as(guarded, "player", database="barred"))
    assert SECRET not in _words(caught.value)


def test_insufficient_privilege(guarded: PostgresServer) -> None:
    from ledger.migrate import migrate

    migrate(guarded.url)
    with Database(_as(guarded, "player")) as database, pytest.raises(AccessError, match="does not allow it") as caught:
        leases.find(database, 1)
    assert caught.value.hint == "grant the role what it lacks"
    with pytest.raises(AccessError), totals.reader(_as(guarded, "player"), 1):
        pass


def test_totals_over_a_wrong_password(guarded: PostgresServer) -> None:
    with pytest.raises(FinaleError) as caught, totals.reader(_as(guarded, "player", WRONG), 1):
        pass
    assert WRONG not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:p4ss/{SECRET}@host/db",
        f"postgresql://user:12/{SECRET}@host/db",
        f"postgresql://user:p@{SECRET}@host/db",
        f"postgres://host/db?nonsense={SECRET}",
        f"host=a password={SECRET} nonsense",
    ],
)
def test_url_that_cannot_be_read_shows_nothing_of_it(url: str) -> None:
    """A password with / @ or ? unescaped is taken apart wrongly; no piece of it reaches a message."""
    with pytest.raises(ConfigError) as caught:
        Database(url)
    assert SECRET not in _words(caught.value)
    assert "p4ss" not in _words(caught.value)


def test_where_names_the_place_only() -> None:
    assert where(f"postgresql://user:{SECRET}@db.example:6432/finale") == "db.example:6432/finale"
    assert where(f"host=/run/pg user=u password={SECRET} dbname=d") == "/run/pg/d"


def test_a_barrier_that_never_opens_is_unavailable(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that never ends is named as the cause, and the lock's timeout is the transaction's again."""
    monkeypatch.setattr(barrier, "TRIES", 2)
    monkeypatch.setattr(barrier, "LOCK_TIMEOUT", "10ms")
    with Database(ledger_url) as one, Database(ledger_url) as other, one.transaction():
        barrier.enter(one, barrier.SEASONS, [1])
        with other.transaction():
            with pytest.raises(UnavailableError, match="goals/s2021 does not end"):
                barrier.close(other, barrier.SEASONS, 1, "goals/s2021")
            barrier.close(other, barrier.SEASONS, 2, "another")
            assert other.run(b"show lock_timeout")[0]["lock_timeout"] == "0"
