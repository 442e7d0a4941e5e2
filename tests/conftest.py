"""Fixtures shared by all tests: real servers in private folders, a database of its own for each test.

Each pytest process (each xdist worker) starts one Redis and one PostgreSQL when a test first asks for them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import redis

from jobs.embedded.postgres_server import PostgresServer
from jobs.embedded.redis_server import RedisServer
from tests.support.servers import Databases, ServerFactory, end_survivors, running


@pytest.fixture(scope="session", autouse=True)
def private_root() -> Iterator[Path]:
    """A folder that the servers' user can enter; the run fails if a process is left in it at the end."""
    root = Path(tempfile.mkdtemp(prefix="finale-test-", dir="/tmp"))
    root.chmod(0o755)
    try:
        yield root
        left = end_survivors(root)
        if left:
            pytest.fail(f"server processes outlived the tests: {left}")
    finally:
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def private_dir(private_root: Path) -> Iterator[Path]:
    """A folder for one test that the servers' user can enter, with a short path; for homes and stores."""
    folder = private_root / uuid4().hex[:8]
    folder.mkdir()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def server_factory(private_root: Path) -> ServerFactory:
    """Makes private servers."""
    return ServerFactory.under(private_root)


@pytest.fixture(scope="session")
def shared_redis(server_factory: ServerFactory) -> Iterator[RedisServer]:
    """The Redis of this pytest process; tests use ``redis_url``."""
    with running(server_factory.redis()) as server:
        yield server


@pytest.fixture(scope="session")
def shared_postgres(server_factory: ServerFactory) -> Iterator[PostgresServer]:
    """The PostgreSQL of this pytest process; tests use ``postgres_url`` or ``ledger_url``."""
    with running(server_factory.postgres()) as server:
        yield server


@pytest.fixture
def redis_url(shared_redis: RedisServer) -> str:
    """The URL of a Redis with no keys."""
    with redis.Redis.from_url(shared_redis.url) as client:
        client.flushall()
        client.script_flush()
    return shared_redis.url


@pytest.fixture
def postgres_url(shared_postgres: PostgresServer) -> Iterator[str]:
    """The URL of an empty database, dropped after the test."""
    with Databases(shared_postgres).fresh() as url:
        yield url


@pytest.fixture(scope="session")
def migrated_template(shared_postgres: PostgresServer) -> Iterator[str]:
    """The name of a database with the ledger's schema, to be cloned."""
    from ledger.migrate import migrate

    with Databases(shared_postgres).fresh() as url:
        migrate(url)
        yield url.rpartition("@/")[2].partition("?")[0]


@pytest.fixture
def ledger_url(shared_postgres: PostgresServer, migrated_template: str) -> Iterator[str]:
    """The URL of a database with the ledger's schema and no rows, dropped after the test."""
    with Databases(shared_postgres).fresh(migrated_template) as url:
        yield url


@pytest.fixture
def store_url(private_dir: Path) -> str:
    """The URL of an empty folder that serves as the object store."""
    folder = private_dir / "store"
    folder.mkdir()
    return folder.as_uri()


@pytest.fixture
def redis_server(server_factory: ServerFactory) -> Iterator[RedisServer]:
    """A Redis of this test's own, running, which it may stop, kill and start again with its data kept."""
    with running(server_factory.redis()) as server:
        yield server


@pytest.fixture
def postgres_server(server_factory: ServerFactory) -> Iterator[PostgresServer]:
    """A PostgreSQL of this test's own, running, which it may stop, kill and start again with its data kept."""
    with running(server_factory.postgres()) as server:
        yield server
