"""Applies the numbered migrations, each once, in one transaction under a lock."""

from __future__ import annotations

import re
from importlib.resources import files

from leaderboard.errors import AccessError
from ledger.database import Database

_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_LOCK = 0x46494E_4D  # any number that no other program locks


def migrations() -> list[tuple[int, str, bytes]]:
    """Return version, name and text of every migration, in order."""
    found = []
    for file in files("ledger").joinpath("migrations").iterdir():
        match = _FILE.fullmatch(file.name)
        if match:
            found.append((int(match.group(1)), match.group(2), file.read_bytes()))
    return sorted(found)


def applied(database: Database) -> list[int]:
    """Return the versions that the database has, in order; none if it has no schema yet."""
    if database.run(b"select to_regclass('finale.migration') as found")[0]["found"] is None:
        return []
    return [row["version"] for row in database.run(b"select version from finale.migration order by version")]


def migrate(url: str) -> list[str]:
    """Bring the database at ``url`` up to date and return the names of the migrations applied now.

    Raises AccessError if the database is newer than this program.
    """
    with Database(url) as database, database.transaction():
        database.run(b"select pg_advisory_xact_lock(%(lock)s)", {"lock": _LOCK})
        names = pending(database)
        database.run(
            b"create schema if not exists finale;"
            b"create table if not exists finale.migration (version int primary key, name text not null,"
            b" applied_at timestamptz not null default clock_timestamp())"
        )
        for version, name, text in migrations():
            if _full(version, name) in names:
                database.run(text)
                database.run(
                    b"insert into finale.migration (version, name) values (%(version)s, %(name)s)",
                    {"version": version, "name": name},
                )
        return names


def pending(database: Database) -> list[str]:
    """Return the names of the migrations that the database lacks.

    Raises AccessError if it has one that this program does not know.
    """
    done = set(applied(database))
    known = migrations()
    if newer := done - {version for version, _, _ in known}:
        raise AccessError(
            f"the database has migration {max(newer)}, which this version of Finale does not know",
            hint="upgrade Finale; an older one must not write to a newer ledger",
        )
    return [_full(version, name) for version, name, _ in known if version not in done]


def check(database: Database) -> None:
    """Raise AccessError unless the database's schema is this program's, neither older nor newer."""
    if lacking := pending(database):
        raise AccessError(
            "the database lacks a part of Finale's schema",
            detail=f"not applied: {', '.join(lacking)}",
            hint="run: finale db migrate",
        )


def _full(version: int, name: str) -> str:
    return f"{version:04d}_{name}"
