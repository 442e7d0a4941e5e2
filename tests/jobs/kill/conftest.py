"""The kill harness and a season that it may close, once a pytest process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from jobs.embedded.postgres_server import PostgresServer
from jobs.embedded.redis_server import RedisServer
from tests.harness.run import Harness
from tests.harness.season import Prepared, prepared_season


@pytest.fixture(scope="session")
def harness() -> Iterator[Harness]:
    """Starts commands."""
    with Harness.start() as started:
        yield started


@pytest.fixture(scope="session")
def season(
    harness: Harness,
    private_root: Path,
    shared_redis: RedisServer,
    shared_postgres: PostgresServer,
    migrated_template: str,
) -> Iterator[Prepared]:
    """Season s1 of board cup, over and to be closed."""
    root = private_root / "season"
    root.mkdir()
    with redis.Redis.from_url(shared_redis.url) as client:
        client.flushall()
    with prepared_season(harness, root, shared_postgres, migrated_template, shared_redis.url) as prepared:
        yield prepared
