"""finale up, down, status, db migrate."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import typer

from jobs import output
from jobs.commands.common import AsJson, settings
from leaderboard.errors import ConfigError, InputError

if TYPE_CHECKING:
    from jobs.embedded.home import EmbeddedHome

db = typer.Typer(help="The ledger's schema.", no_args_is_help=True)


def _home(*, whatever: bool = False) -> tuple[EmbeddedHome, str]:
    """Return the home of the embedded servers and the store's URL; no configuration file is needed.

    ``whatever`` the configuration: what runs can be seen and stopped also while it cannot be read.
    """
    from jobs.embedded.home import EmbeddedHome

    try:
        found = settings(optional=True, servers_only=True)
    except ConfigError:
        if not whatever:
            raise
        return EmbeddedHome.from_environ(os.environ), "unknown: the configuration cannot be read"
    if not found.servers.embedded:
        raise InputError(
            "the servers are configured, so Finale runs none of its own",
            hint="take [servers], FINALE_REDIS and FINALE_POSTGRES away to use the embedded ones",
        )
    return EmbeddedHome.from_environ(os.environ), found.store


def up(as_json: AsJson = False) -> None:
    """Start the embedded Redis and PostgreSQL and keep them running.

    Example: finale up
    """
    from jobs.embedded import servers
    from ledger.migrate import migrate

    home, store = _home()
    endpoints = servers.up(home)
    migrate(endpoints.postgres_url)
    found = {"redis": endpoints.redis_url, "postgres": endpoints.postgres_url, "store": store}
    if as_json:
        output.print_json(found)
    else:
        output.print_table(("server", "url"), found.items())


def down(as_json: AsJson = False) -> None:
    """Stop the embedded servers; their data stays.

    Example: finale down
    """
    from jobs.embedded import servers

    stopped = servers.down(_home(whatever=True)[0])
    if as_json:
        output.print_json({"stopped": stopped})
    else:
        output.out.print("stopped" if stopped else "nothing was running")


def status(as_json: AsJson = False) -> None:
    """Show whether the embedded servers run, and where they live.

    Example: finale status --json
    """
    from jobs.embedded import servers

    home, store = _home(whatever=True)
    found = servers.status(home)
    if as_json:
        output.print_json(
            {
                "home": str(found.home),
                "redis": {"state": found.redis.state, "pid": found.redis.pid},
                "postgres": {"state": found.postgres.state, "pid": found.postgres.pid},
                "kept": found.kept,
                "in_use": found.in_use,
                "archive": store,
            }
        )
        return
    rows = [(name, server.state, server.pid) for name, server in (("redis", found.redis), ("postgres", found.postgres))]
    output.print_table(("server", "state", "pid"), rows)
    kept = ", kept running" if found.kept else ""
    output.out.print(f"home {found.home}, archive {store}{kept}", markup=False)


@db.command("migrate")
def db_migrate(as_json: AsJson = False) -> None:
    """Bring the ledger's schema up to date; safe to repeat.

    Example: finale db migrate
    """
    from jobs.endpoints import endpoints
    from ledger.migrate import migrate

    with endpoints(settings(optional=True, servers_only=True), os.environ, redis=False) as urls:
        applied = migrate(urls.postgres)
    if as_json:
        output.print_json({"applied": applied})
    else:
        output.out.print("\n".join(f"applied {name}" for name in applied) or "the schema is up to date")
