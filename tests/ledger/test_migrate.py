"""Migrations: each applied once, whoever asks and how often; the schema file says what they make."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import pytest

from jobs.embedded.postgres_server import PostgresServer
from leaderboard.errors import AccessError
from ledger import seasons
from ledger.database import Database
from ledger.migrate import applied, check, migrate, migrations, pending


def _dump(server: PostgresServer, url: str) -> str:
    """Return pg_dump's schema of a database, without the words that differ with every run."""
    program = server.programs.postgres() / "pg_dump"
    done = subprocess.run(
        [str(program), "--schema-only", "--no-owner", "--schema=finale", url],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.defpath, "LC_ALL": "C"},
    )
    return re.sub(r"^\\(un)?restrict .*$", "", done.stdout, flags=re.MULTILINE)


def test_schema_file_equals_all_migrations(shared_postgres: PostgresServer, ledger_url: str, postgres_url: str) -> None:
    """pg_dump finds no difference between a migrated database and one made from schema.sql."""
    with Database(postgres_url) as database:
        database.run(files("ledger").joinpath("schema.sql").read_bytes())
    assert "CREATE TABLE finale.match_result" in _dump(shared_postgres, ledger_url)
    assert _dump(shared_postgres, postgres_url) == _dump(shared_postgres, ledger_url)


def test_second_migration_does_nothing(postgres_url: str) -> None:
    assert migrate(postgres_url) == [f"{version:04d}_{name}" for version, name, _ in migrations()]
    assert migrate(postgres_url) == []


def test_versions_are_numbered_without_gaps() -> None:
    versions = [version for version, _, _ in migrations()]
    assert versions == list(range(1, len(versions) + 1))


def test_migrators_at_once_apply_each_migration_once(postgres_url: str) -> None:
    """Four migrators started together: one does the work, the others find it done, none fails."""
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(migrate, [postgres_url] * 4))
    assert sorted(map(len, done)) == [0, 0, 0, len(migrations())]


def test_migration_that_fails_leaves_nothing(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All migrations are one transaction: an error in the last undoes the first."""
    from ledger import migrate as module

    broken = [*migrations(), (9998, "broken", b"create table finale.half (n int); select nonsense;")]
    monkeypatch.setattr(module, "migrations", lambda: broken)
    with pytest.raises(AccessError):
        migrate(postgres_url)
    with Database(postgres_url) as database:
        assert applied(database) == []
        assert database.run(b"select to_regnamespace('finale') as found")[0]["found"] is None


def test_newer_database_is_refused(ledger_url: str) -> None:
    """A database with a migration that this program does not know is neither migrated nor passed as fit."""
    with Database(ledger_url) as database:
        database.run(b"insert into finale.migration (version, name) values (9999, 'of_the_future')")
        with pytest.raises(AccessError, match=r"9999.*upgrade Finale"):
            migrate(ledger_url)
        with pytest.raises(AccessError, match="9999"):
            check(database)


def test_database_without_schema_names_the_remedy(postgres_url: str) -> None:
    with Database(postgres_url) as database:
        with pytest.raises(AccessError) as caught:
            seasons.find(database, "goals", "s2021")
        assert caught.value.hint == "run: finale db migrate"
        with pytest.raises(AccessError, match=r"0001_spine.*finale db migrate"):
            check(database)
        assert pending(database) == [f"{version:04d}_{name}" for version, name, _ in migrations()]


def test_migrated_database_passes_the_check(ledger_url: str) -> None:
    with Database(ledger_url) as database:
        check(database)
