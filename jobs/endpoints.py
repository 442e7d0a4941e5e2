"""Where the servers are, and the ledger alone: for commands that only tell what it has, and should start quickly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from config.settings import Settings
from leaderboard.board import Board
from ledger.database import Database


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The URLs in force; they may hold secrets, so they are never shown."""

    redis: str
    postgres: str
    store: str
    replica: str | None = None

    def __repr__(self) -> str:
        return "Endpoints(…)"


@contextmanager
def endpoints(settings: Settings, environ: Mapping[str, str], *, redis: bool = True) -> Iterator[Endpoints]:
    """Yield the configured URLs; without any, start the embedded servers and stop afterwards what was started.

    Without ``redis`` its URL is not used, so an embedded one is neither started nor asked.
    """
    given = settings.servers
    if given.redis and given.postgres:
        replica = given.replica.get_secret_value() if given.replica else None
        yield Endpoints(given.redis.get_secret_value(), given.postgres.get_secret_value(), settings.store, replica)
        return
    from jobs.embedded import servers
    from jobs.embedded.home import EmbeddedHome
    from ledger.migrate import migrate

    with servers.session(EmbeddedHome.from_environ(environ), redis=redis) as embedded:
        migrate(embedded.postgres_url)
        yield Endpoints(embedded.redis_url, embedded.postgres_url, settings.store)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The configuration and the ledger, without Redis and the store."""

    settings: Settings
    database: Database

    @property
    def boards(self) -> Mapping[str, Board]:
        return self.settings.boards


@contextmanager
def ledger(settings: Settings, environ: Mapping[str, str]) -> Iterator[Ledger]:
    """Yield a connection to the ledger and close it afterwards. Raises UnavailableError or AccessError."""
    with endpoints(settings, environ, redis=False) as urls, ledger_database(settings, urls.postgres) as database:
        yield Ledger(settings, database)


def ledger_database(settings: Settings, url: str, *, within: timedelta | None = None) -> Database:
    """Return a new connection to PostgreSQL; ``within`` bounds an answer where the configuration allows it longer.

    Raises UnavailableError or AccessError.
    """
    runner = settings.runner
    connecting, statement = runner.postgres_connect_timeout, runner.statement_timeout
    if within is not None:
        connecting, statement = min(connecting, within), min(statement, within)
    return Database(url, connect_timeout=connecting.total_seconds(), statement_timeout=statement.total_seconds())
