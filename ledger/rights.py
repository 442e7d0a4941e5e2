"""What the role that runs Finale must be allowed, read from the very statements that it sends."""

from __future__ import annotations

import re
from collections import defaultdict
from importlib.resources import files

#: Where every season has a partition, which only the table's owner may attach.
OWNED = ("grants",)
#: Written by COPY, so no named query says so.
_COPIED = {"correction_grants": "insert"}
_RULES = (
    (re.compile(r"insert into finale\.([a-z_]+)"), "insert"),
    (re.compile(r"insert into finale\.([a-z_]+)(?:(?!insert into).)*?do update", re.DOTALL), "update"),
    (re.compile(r"\bupdate finale\.([a-z_]+)"), "update"),
    (re.compile(r"delete from finale\.([a-z_]+)"), "delete"),
)
_LOCKS = re.compile(r"for (?:no key )?(?:update|share)")
_NAMED = re.compile(r"(?:from|join|,)\s+finale\.([a-z_]+)")


def written() -> dict[str, list[str]]:
    """Return, by table of the schema, what is done to it besides SELECT: ``insert``, ``update``, ``delete``."""
    found: dict[str, set[str]] = defaultdict(set)
    for table, right in _COPIED.items():
        found[table].add(right)
    for file in files("ledger").joinpath("queries").iterdir():
        if not file.name.endswith(".sql"):
            continue
        for text in file.read_text("utf-8").split("-- name: ")[1:]:
            for pattern, right in _RULES:
                for match in pattern.finditer(text):
                    found[match[1]].add(right)
            if _LOCKS.search(text):  # PostgreSQL asks for UPDATE where rows are locked
                for match in _NAMED.finditer(text):
                    found[match[1]].add("update")
    return {table: sorted(found[table]) for table in sorted(found)}


def grants(role: str, database: str) -> list[str]:
    """Return the statements that give ``role`` what it needs in a migrated ``database``, and nothing else.

    To be run by the schema's owner. Both names are quoted.
    """
    who, where = _quoted(role), _quoted(database)
    return [
        f"grant connect, temporary on database {where} to {who};",
        f"grant usage, create on schema finale to {who};",
        f"grant select on all tables in schema finale to {who};",
        *(f"grant {', '.join(rights)} on finale.{table} to {who};" for table, rights in written().items()),
        f"grant usage on sequence finale.outbox_claim to {who};",
        f"grant {who} to current_user;",
        *(f"alter table finale.{table} owner to {who};" for table in OWNED),
    ]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
