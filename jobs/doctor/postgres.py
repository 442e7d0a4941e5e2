"""PostgreSQL: version, clock, schema, what the role may do, whether a pooler stands in between, room."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from archive.disk import free_at
from config.settings import Settings
from jobs.clock import offset
from jobs.doctor.checks import Check, Checks
from jobs.endpoints import ledger_database
from ledger import inspection
from ledger.database import Database
from ledger.migrate import pending

_TIMES = 20


def look(settings: Settings, url: str) -> list[Check]:
    """Return what is found of PostgreSQL."""
    checks = Checks("postgres")
    with checks.trying("answers"), closing(ledger_database(settings, url)) as database:
        checks.latency(_latency(database))
        found = inspection.server(database)
        known = found.version >= inspection.OLDEST
        checks.add("version", "ok" if known else "fail", found.named, "use PostgreSQL 14 or newer")
        remedy = "name the primary in [servers] postgres"
        checks.add("role", "fail" if found.standby else "ok", "a standby" if found.standby else "a primary", remedy)
        checks.clock(offset(database.now), settings.runner.max_skew, "PostgreSQL")
        _durable(checks, found)
        with checks.trying("migrations"):
            lacking = pending(database)
            told = f"pending: {', '.join(lacking)}" if lacking else "the schema is this version's"
            checks.add("migrations", "fail" if lacking else "ok", told, "run: finale db migrate")
            _rights(checks, database, found)
        with checks.trying("pooling", "unknown"), closing(ledger_database(settings, url)) as second:
            _pooling(checks, inspection.pooling(database, second))
        _room(checks, database, found)
    return checks.found


def _latency(database: Database) -> float:
    taken = []
    for _ in range(_TIMES):
        begun = time.perf_counter()
        database.now()
        taken.append(time.perf_counter() - begun)
    return sorted(taken)[_TIMES // 2]


def _durable(checks: Checks, found: inspection.Server) -> None:
    loose = [
        f"{name} = off"
        for name, value in (("fsync", found.fsync), ("synchronous_commit", found.commits))
        if value == "off"
    ]
    told = ", ".join(loose) or "commits are on disk when they are confirmed"
    remedy = "set both on: a result that was confirmed may be lost with the machine"
    checks.add("persistence", "warn" if loose else "ok", told, remedy)


def _rights(checks: Checks, database: Database, found: inspection.Server) -> None:
    lacking = inspection.lacking(database)
    if not found.temporary:
        lacking = [*lacking, f"temporary on database {found.database}"]
    remedy = "run the grants that finale doctor --rights prints, as the owner of the schema"
    if lacking:
        checks.add("rights", "fail", f"{found.role} lacks {'; '.join(lacking)}", remedy)
    elif found.superuser:
        checks.add(
            "rights",
            "warn",
            f"{found.role} is a superuser",
            "use a role that may only do what it must: finale doctor --rights",
        )
    else:
        checks.add("rights", "ok", f"{found.role} may do what Finale does")


def _pooling(checks: Checks, kind: str) -> None:
    if kind == "transaction":
        remedy = (
            "connect to PostgreSQL itself, or pool by session: settings such as statement_timeout do not stay with "
            "Finale's connection, and another client may get them"
        )
        checks.add("pooling", "warn", "a pooler hands out server processes by transaction", remedy)
    else:
        checks.add("pooling", "ok", "a pooler by session" if kind == "session" else "no pooler in between")


def _room(checks: Checks, database: Database, found: inspection.Server) -> None:
    checks.add("size", "ok", f"database {found.database} has {found.bytes / (1 << 20):,.0f} MiB")
    place = inspection.folder(database) if found.same_machine else None
    checks.room("room", free_at(Path(place)) if place else None, "PostgreSQL's data directory")
