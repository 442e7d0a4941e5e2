"""Redis, each primary of it: version, clock, memory, persistence, what this user may do, whether a WATCH is noticed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import timedelta
from typing import Any

from archive.canary import check_watch
from config.settings import Settings
from jobs.clock import offset
from jobs.doctor.checks import Check, Checks, Verdict
from jobs.redis_clients import connector, redis_client
from leaderboard.board import Board
from leaderboard.keys import canary_keys, shard_keys
from live import inspection
from live.eviction import eviction
from live.nodes import primaries, serving

OLDEST = (6, 2)
_FULL = 0.8
_MANY = 256  #: shards of one board that are tried, each a key of its own


def look(settings: Settings, url: str, keys: Mapping[str, str]) -> list[Check]:
    """Return what is found of Redis. ``keys`` has the present live key of each board to be tried."""
    checks = Checks("redis")
    with checks.trying("answers"), closing(redis_client(url, settings.runner.redis_timeout)) as client:
        for one in primaries(client):
            _server(checks, one, settings.runner.max_skew)
        for name, key in keys.items():
            _board(checks, client, settings.boards[name], key)
    return checks.found


def _server(checks: Checks, client: Any, max_skew: timedelta) -> None:
    checks.latency(inspection.latency(client))
    with checks.trying("version", "unknown"):
        found = inspection.server(client)
        known = found.number >= OLDEST
        checks.add(
            "version",
            "ok" if known else "fail",
            f"{found.version} ({found.address})",
            "use Redis 6.2 or newer, or Valkey",
        )
        primary = found.role == "master"
        checks.add("role", "ok" if primary else "fail", found.role or "not told", "name the primary in [servers] redis")
        _persistence(checks, found)
        _memory(checks, found)
        _eviction(checks, client)
    with checks.trying("clock", "unknown"):
        checks.clock(offset(lambda: inspection.clock(client)), max_skew, "Redis")


def _persistence(checks: Checks, found: inspection.Server) -> None:
    remedy = (
        "set appendonly yes: a restart loses what is not on disk; boards with a ledger are then written anew, boards "
        'with ledger = "none" are gone'
    )
    verdict: Verdict = "ok"
    if found.appends:
        told = "append-only file"
    elif found.saves is None:
        verdict, told = "unknown", "no append-only file; whether snapshots are on may not be asked (CONFIG GET)"
    elif found.saves:
        told = "snapshots alone, so a restart loses what came after the last one"
    else:
        verdict, told = "warn", "none: neither append-only file nor snapshots"
    if not found.saved:
        verdict, told, remedy = "warn", f"{told}; the last write to disk failed", "look at the server's log and disk"
    checks.add("persistence", verdict, told, remedy)


def _memory(checks: Checks, found: inspection.Server) -> None:
    if not found.limit:
        checks.add("memory", "ok", f"{found.used / (1 << 20):,.0f} MiB used, no maxmemory")
        return
    share = found.used / found.limit
    verdict: Verdict = "fail" if share >= 1 else "warn" if share > _FULL else "ok"
    checks.add("memory", verdict, f"{share:.0%} of maxmemory used", "raise maxmemory, or remove what is not needed")


def _eviction(checks: Checks, client: Any) -> None:
    told = eviction(client)
    if told.policy is None:
        checks.add("eviction", "unknown", "the server does not tell its maxmemory-policy", "allow the user INFO")
        return
    lost = f", {told.evicted:,} keys evicted since it started" if told.evicted else ""
    remedy = "set maxmemory-policy noeviction: a board that is dropped cannot be sealed"
    checks.add("eviction", "warn" if told.may_drop else "ok", f"maxmemory-policy {told.policy}{lost}", remedy)


def _board(checks: Checks, client: Any, board: Board, live_key: str) -> None:
    stream = board.deliver.stream_key(board.name, "doctor") if board.deliver.to == "stream" else None
    for key in list(shard_keys(live_key, board.shards.number))[:_MANY]:
        with checks.trying(f"rights {board.name}"):
            node = serving(client, key)
            missing = inspection.refusals(node, key, stream)
            told = f"this user may not: {', '.join(missing)}" if missing else f"all that {key} needs"
            name = f"rights {board.name}"
            checks.add(name, "fail" if missing else "ok", told, "finale doctor --rights prints the user's line")
        with checks.trying(f"WATCH {board.name}"):
            check_watch(connector(client, key), canary_keys(key)[0], _touching(node, canary_keys(key)[0]))
            inspection.forget(node, canary_keys(key)[0])
            checks.add(f"WATCH {board.name}", "ok", "a write in the middle was noticed")


def _touching(client: Any, key: str) -> Callable[[], None]:
    return lambda: inspection.touch(client, key)
