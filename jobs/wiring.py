"""The one place where clients are built: PostgreSQL, Redis and the object store, embedded or the user's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from redis import Redis

from archive.objects import Store
from archive.proof import ProofConnection
from archive.store import open_store
from config.settings import Runner, Settings
from jobs.endpoints import endpoints, ledger_database
from jobs.redis_clients import connector, opened
from jobs.scheduler.working import Working
from leaderboard.board import Board
from ledger.database import Database


@dataclass(frozen=True, slots=True)
class Outside:
    """Everything outside the process that a command works with."""

    settings: Settings
    database: Database
    redis: Redis
    store: Store
    working: Working = field(default_factory=Working)
    replica: Redis | None = None  #: for what all players see alike, if there is one
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)  #: where a board's own ledger has its URL
    turn_ends: float = math.inf  #: by ``time.monotonic``: from then on a delivery leaves the rest to the next run

    @property
    def boards(self) -> Mapping[str, Board]:
        return self.settings.boards

    @property
    def runner(self) -> Runner:
        return self.settings.runner

    def connector(self, key: str) -> Callable[[], ProofConnection]:
        """Return what makes connections for a WATCH to the server of ``key``, none of them opened a second time."""
        return connector(self.redis, key)

    def connect(self, key: str) -> ProofConnection:
        """Return a new connection for a WATCH to the server of ``key``, which is never opened a second time."""
        return self.connector(key)()


@contextmanager
def outside(settings: Settings, environ: Mapping[str, str]) -> Iterator[Outside]:
    """Yield connected clients and close them afterwards.

    Raises UnavailableError or AccessError for a server that does not answer or refuses.
    """
    with ExitStack() as stack:
        urls = stack.enter_context(endpoints(settings, environ))
        database = stack.enter_context(ledger_database(settings, urls.postgres))
        timeout = settings.runner.redis_timeout
        client = stack.enter_context(opened(urls.redis, timeout))
        replica = stack.enter_context(opened(urls.replica, timeout)) if urls.replica else None
        store = open_store(urls.store, environ, settings.runner.store_timeout)
        yield Outside(settings, database, client, store, replica=replica, environ=environ)
