"""What the servers hold after a run, without times, fences, attempts and numbers given: good runs differ in these."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
import redis
from psycopg.rows import dict_row

from archive.store import open_store
from jobs.identity import has_ended

_QUERIES = {
    "seasons": "select board, season, state, starts_at, ends_at, closes_at, backfill, definition, live_key,"
    " frozen_at is not null as frozen, sealed_at is not null as sealed, keep_until is not null as kept,"
    " pruned_at is not null as pruned,"
    " hold_reason, attempts, last_error from finale.season order by board, season",
    "steps": "select season_id, step from finale.journal where event = 'done' order by journal_id",
    "held": "select season_id, detail - 'by' from finale.journal where event = 'held'",
    "results": "select season_id, step from finale.step_result order by season_id, step",
    "totals": "select season_id, player_id, points, reached_at, matches from finale.player_total order by 1, 2",
    "matches": "select name as source, match_id, player_id, points, played_at, voided"
    " from finale.match_result join finale.source using (source_id) order by 1, 2, 3",
    "voids": "select match_id, player_id, who, because from finale.void order by 1, 2",
    "late voids": "select season_id, match_id, player_id from finale.late_void order by 1, 2, 3",
    "removed": "select season_id, player_id from finale.removed_player order by 1, 2",
    "told": "select season_id, event from finale.journal where event in ('voided', 'pruned') order by journal_id",
    "late": "select season_id, match_id, player_id from finale.late_result order by 1, 2, 3",
    "set aside": "select kind, given from finale.set_aside order by fingerprint",
    "pending": "select distinct season_id, bucket, unnest(players) as player_id from finale.pending order by 1, 2, 3",
    "grants": "select * from finale.grants order by season_id, grant_id",
    "payable": "select board, season, grant_id, player_id, rule, item, amount, position, rank from finale.payable"
    " order by grant_id",
    "delivered": "select season_id, correction, mode, grants, delivered_at is not null as delivered"
    " from finale.delivery order by season_id, correction",
    "outbox": "select state, count(*) as grants from finale.outbox group by state order by state",
    "corrected": "select detail from finale.journal where event = 'corrected' order by journal_id",
    "corrections": "select * from finale.correction_grants order by season_id, correction, grant_id",
    "blocking": "select season_id, holder from finale.lease where expires_at > clock_timestamp()",
    "relations": "select relname::text from pg_class where relnamespace = 'finale'::regnamespace order by relname",
}
_MAY_DIFFER = ("attempt", "sealed_at", "standings_seal", "grants_seal", "software")
#: What killed writers leave, which no reader globs and which is removed by its age.
_LITTER = re.compile(r"\.incoming/|staging/[^/]+/canary/")


@dataclass(frozen=True)
class EndState:
    """``ledger``: rows by query. ``seals``: their content. ``files``: SHA-256 by path. ``keys``: values by key."""

    ledger: dict[str, Any]
    seals: dict[str, Any]
    files: dict[str, str]
    keys: dict[bytes, Any]

    def staged(self) -> list[str]:
        """Return the paths of what is staged."""
        return sorted(path for path in self.files if path.startswith("staging/"))

    def without_staging(self) -> EndState:
        """Return the same without what is staged, which harms nobody."""
        kept = {path: digest for path, digest in self.files.items() if not path.startswith("staging/")}
        return replace(self, files=kept)

    def differs(self, other: EndState) -> str:
        """Return what differs, in a few lines; nothing if nothing does."""
        found = []
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            found += [
                f"{field.name} {key!r}: {_short(mine.get(key))} instead of {_short(theirs.get(key))}"
                for key in sorted(mine.keys() | theirs.keys(), key=repr)
                if mine.get(key) != theirs.get(key)
            ]
        return "\n".join(found)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 600 else f"{text[:600]}… ({len(value)})"


def read_end_state(
    ledger_url: str, redis_url: str, store_url: str, environ: Mapping[str, str] | None = None
) -> EndState:
    """Read it. Seals in ledger and store must be the same bytes, and grants must name the standings they came from."""
    with psycopg.connect(ledger_url, row_factory=dict_row, autocommit=True) as connection:
        connection.execute("set timezone to 'UTC'")
        ledger = {name: connection.execute(query).fetchall() for name, query in _QUERIES.items()}
        seasons = _name_seasons(connection, ledger)
        # A dead process's lease keeps nobody out.
        ledger["blocking"] = [row for row in ledger["blocking"] if not has_ended(row["holder"])]
        rows = connection.execute("select season_id, kind, sha256, body from finale.seal").fetchall()
    store = _files(store_url, environ or {})
    return EndState(
        ledger=ledger,
        seals=_seals({(seasons[row["season_id"]], row["kind"]): bytes(row["body"]) for row in rows}, store),
        files={path: sha256(data).hexdigest() for path, data in store.items() if not path.startswith("seals/")},
        keys=_keys(redis_url),
    )


def _name_seasons(connection: psycopg.Connection[Any], ledger: dict[str, list[dict[str, Any]]]) -> dict[int, str]:
    """Put board and season for each season's number, and return these: a rolled-back insert uses a number up."""
    rows = connection.execute("select season_id, board, season from finale.season").fetchall()
    seasons = {row["season_id"]: f"{row['board']}/{row['season']}" for row in rows}
    for row in (row for found in ledger.values() for row in found if "season_id" in row):
        row["season_id"] = seasons[row["season_id"]]
    for row in ledger["relations"]:
        row["relname"] = re.sub(r"(?<=^grants_)\d+", lambda number: seasons[int(number[0])], row["relname"])
    return seasons


def _files(store_url: str, environ: Mapping[str, str]) -> dict[str, bytes]:
    """Return every object but litter."""
    parts = urlsplit(store_url)
    if parts.scheme == "file":
        root = Path(unquote(parts.path))
        found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
        return {name: path.read_bytes() for name, path in found.items() if not _LITTER.match(name)}
    store = open_store(store_url, environ)
    paths = [stored.path for stored in store.list("")]
    return {path: store.get(path) for path in paths if not _LITTER.match(path)}


def _seals(committed: dict[tuple[str, str], bytes], store: dict[str, bytes]) -> dict[str, Any]:
    stored = {path: data for path, data in store.items() if path.startswith("seals/")}
    # The ledger keeps no copy of the seal of a season's results.
    results = {path: json.loads(stored.pop(path)) for path in sorted(stored) if path.endswith("/results.json")}
    assert Counter(stored.values()) == Counter(committed.values()), "the store's seals are not those of the ledger"
    content = {}
    for (season, kind), body in committed.items():
        value = json.loads(body)
        if kind == "grants":
            standings = committed[season, "standings"]
            assert value["standings_seal"] == sha256(standings).hexdigest()
        content[f"{season} {kind}"] = {key: value[key] for key in value if key not in _MAY_DIFFER} | {
            "chain": (value["chain"]["number"], value["chain"]["previous"] is None)
        }
    for path, value in results.items():
        content[path] = {key: value[key] for key in value if key not in _MAY_DIFFER}
    return {"paths": sorted([*stored, *results]), **content}


def _keys(redis_url: str) -> dict[bytes, Any]:
    """Return the content of every key, but of the runner's fence and the appliers' hash only that they are there."""
    with redis.Redis.from_url(redis_url) as client:
        found: dict[bytes, Any] = {}
        for key in sorted(client.keys()):
            if key.endswith((b":finale:fence", b":finale:applied")):
                found[key] = "there"
            elif client.type(key) == b"zset":
                found[key] = client.zrange(key, 0, -1, withscores=True)
            elif client.type(key) == b"stream":
                found[key] = sorted(sorted(entry.items()) for _, entry in client.xrange(key))
            else:
                found[key] = client.get(key)
        return found
