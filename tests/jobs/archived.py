"""An archive of seasons that were really closed, for tests of what reads it without any server."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from tests.support.cli import World, finale

CONFIG = """
[board.cup]
rewards = "cup.toml"
calendar = { seasons = [
  { id = "spring", starts_at = 2026-03-01T00:00:00Z, ends_at = 2026-06-01T00:00:00Z },
  { id = "autumn", starts_at = 2026-09-01T00:00:00Z, ends_at = 2026-11-01T00:00:00Z },
] }
[board.laps]
order = "low"
aggregate = "best"
ties = "shared"
calendar = { every = "year" }
"""
TABLE = """
version = 1
[[rule]]
name = "first"
rank = "1"
grant = { "title.first" = 1, gems = 50 }
[[rule]]
name = "all"
all = true
grant = { gems = 10 }
"""


def reach(patch: pytest.MonkeyPatch, folder: Path, **servers: str) -> None:
    """Let commands find the configuration and the archive in ``folder``, and these servers."""
    for name in ("FINALE_OPERATOR", "FINALE_DEBUG", "FORCE_COLOR", "COLUMNS"):
        patch.delenv(name, raising=False)
    patch.setenv("FINALE_CONFIG", str(folder / "finale.toml"))
    patch.setenv("FINALE_HOME", str(folder / "home"))
    patch.setenv("FINALE_STORE", (folder / "store").as_uri())
    for name, url in servers.items():
        patch.setenv(f"FINALE_{name.upper()}", url)


def close_seasons(patch: pytest.MonkeyPatch, folder: Path, client: redis.Redis, redis_url: str, ledger: str) -> None:
    """Close two seasons of one board, with grants, and one of another, with the archive in ``folder``/store."""
    client.flushall()
    reach(patch, folder, redis=redis_url, postgres=ledger)
    world = World(folder, client, ledger, folder / "store")
    world.configure(CONFIG, cup=TABLE)
    world.played("cup", *(f"m{day},p{day % 7},{day},2026-03-0{day}T10:00:00Z" for day in range(1, 10)))
    at = "2026-09-02T10:00:00Z"
    world.played("cup", f"m20,p3,5,{at}", f"m21,p2,5,{at}", "m22,[bold]Zoë,1,2026-09-02T10:00:01Z")
    world.played("laps", "l1,amy,90,2025-05-01T10:00:00Z", "l1,bob,80,2025-05-01T10:00:00Z")
    for board, season in (("cup", "spring"), ("cup", "autumn"), ("laps", "s2025")):
        finale("close", board, season, "--as", "ops").ok()
