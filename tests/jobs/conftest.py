"""Fixtures of the command line's tests: a world of its own for each."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import redis

from jobs.embedded.postgres_server import PostgresServer
from jobs.embedded.redis_server import RedisServer
from tests.jobs.archived import close_seasons, reach
from tests.support.cli import World
from tests.support.servers import Databases


@pytest.fixture
def world(
    monkeypatch: pytest.MonkeyPatch, private_dir: Path, redis_url: str, ledger_url: str, store_url: str
) -> Iterator[World]:
    """An empty world, which the environment names to every command of the test."""
    for name in ("FINALE_OPERATOR", "FINALE_DEBUG", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FINALE_HOME", str(private_dir / "home"))
    monkeypatch.setenv("FINALE_CONFIG", str(private_dir / "finale.toml"))
    monkeypatch.setenv("FINALE_REDIS", redis_url)
    monkeypatch.setenv("FINALE_POSTGRES", ledger_url)
    monkeypatch.setenv("FINALE_STORE", store_url)
    with redis.Redis.from_url(redis_url) as client:
        yield World(private_dir, client, ledger_url, Path(store_url.removeprefix("file://")))


@pytest.fixture(scope="module")
def archived(
    shared_redis: RedisServer, shared_postgres: PostgresServer, migrated_template: str, private_root: Path
) -> Path:
    """A folder with a configuration and the archive of two seasons of the board ``cup`` and one of ``laps``."""
    folder = private_root / uuid4().hex[:8]
    (folder / "store").mkdir(parents=True)
    with (
        Databases(shared_postgres).fresh(migrated_template) as ledger,
        redis.Redis.from_url(shared_redis.url) as client,
        pytest.MonkeyPatch.context() as patch,
    ):
        close_seasons(patch, folder, client, shared_redis.url, ledger)
    return folder


@pytest.fixture
def closed_store(archived: Path, private_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that archive for one test, with no server that could be reached."""
    folder = private_dir / "closed"
    shutil.copytree(archived, folder)
    reach(monkeypatch, folder, redis="redis://127.0.0.1:1/0", postgres="postgresql://127.0.0.1:1/none")
    return folder / "store"
