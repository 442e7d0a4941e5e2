"""I2: two installations, each with its own ledger and Redis, seal the same seasons of one board to one store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import redis

from jobs.embedded.postgres_server import PostgresServer
from jobs.steps import seal as sealing
from tests.support.cli import Answer, World, finale
from tests.support.servers import Databases

CONFIG = """
[board.cup]
ties = "shared"
ledger = "none"
keep_live = "0s"
rewards = "cup.toml"
calendar = { seasons = [
  { id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z },
  { id = "two", starts_at = 2026-02-01T00:00:00Z, ends_at = 2026-03-01T00:00:00Z },
] }
"""
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
ROWS = {f"p{number:02d}": float(number) for number in range(30)}


def key(season: str) -> str:
    return f"leaderboard:cup:{season}"


@dataclass(frozen=True)
class Installation:
    """One of the two: its world, and how its commands find its servers."""

    world: World
    urls: dict[str, str]

    def finale(self, *arguments: str) -> Answer:
        with pytest.MonkeyPatch.context() as patch:
            for name, url in self.urls.items():
                patch.setenv(f"FINALE_{name.upper()}", url)
            return finale(*arguments)

    def play(self, season: str, **changed: float) -> None:
        self.world.redis.zadd(key(season), ROWS | changed)

    def seals(self) -> dict[str, Any]:
        """Return number and body of each committed seal by season and kind."""
        rows = self.world.sql(
            "select s.season, seal.kind, seal.number, seal.body from finale.seal join finale.season s using (season_id)"
        )
        return {f"{season} {kind}": (number, bytes(body)) for season, kind, number, body in rows}


@pytest.fixture
def two(
    world: World, redis_url: str, store_url: str, shared_postgres: PostgresServer, migrated_template: str
) -> Iterator[tuple[Installation, Installation]]:
    """Two installations that share configuration and store, and nothing else."""
    world.configure(CONFIG, cup=TABLE)
    first = Installation(world, {"redis": redis_url, "postgres": world.postgres_url, "store": store_url})
    other_redis = redis_url + ("&" if "?" in redis_url else "?") + "db=1"
    with (
        Databases(shared_postgres).fresh(migrated_template) as ledger,
        redis.Redis.from_url(other_redis) as client,
    ):
        theirs = replace(world, redis=client, postgres_url=ledger)
        theirs.sql("update finale.installation set id = 'ffffffff'")  # the template's ledgers all have one name
        yield first, Installation(theirs, {"redis": other_redis, "postgres": ledger, "store": store_url})


def stored(world: World) -> dict[str, bytes]:
    return {path: (world.store / path).read_bytes() for path in world.files() if not path.startswith("staging")}


def test_i2_the_second_of_two_takes_over_what_the_first_has_sealed(two: tuple[Installation, Installation]) -> None:
    """I2: the same content: one archive, both clean, and each ledger has the seals that stand, with their numbers."""
    first, second = two
    for installation in two:
        installation.play("one")
        installation.play("two", p00=7.5e3)
    for season in ("one", "two"):
        first.finale("close", "cup", season).ok()
    before = stored(first.world)
    for season in ("two", "one"):  # the other way round, so that its own numbers would be others
        second.finale("close", "cup", season).ok()
    assert stored(first.world) == before
    assert second.seals() == first.seals()
    numbers = {name: number for name, (number, _) in first.seals().items()}
    assert numbers == {"one standings": 1, "one grants": 2, "two standings": 3, "two grants": 4}
    assert [first.world.redis.dbsize(), second.world.redis.dbsize()] == [0, 0]
    second.finale("archive", "verify", "--all").ok()


def test_i1_i2_the_second_of_two_with_other_content_is_held(two: tuple[Installation, Installation]) -> None:
    """I1, I2: another board under the same name: what was sealed stays, the second is held and keeps its key."""
    first, second = two
    first.play("one")
    second.play("one", p00=1_000.0)
    first.finale("close", "cup", "one").ok()
    before = stored(first.world)
    second.finale("close", "cup", "one").refused(22, "sealed already, with other content", "digest")
    assert stored(first.world) == before
    assert second.world.redis.zscore(key("one"), "p00") == 1_000
    assert second.finale("season", "show", "cup", "one", "--json").ok().json["state"] == "reconciled"


@pytest.mark.parametrize("same", [True, False])
def test_i1_i2_another_installation_seals_between_commit_and_put(
    two: tuple[Installation, Installation], monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    """I1, I2: whoever puts first has sealed; the other compares, and goes on or is held, its key untouched."""
    first, second = two
    first.play("one")
    second.play("one", **({} if same else {"p00": 1_000.0}))
    settle: Callable[..., bool] = sealing.settle
    struck: list[str] = []

    def late(store: Any, path: str, data: bytes) -> bool:
        if not struck:
            struck.append(path)
            second.finale("close", "cup", "one", "--until", "seal").ok()
        return settle(store, path, data)

    monkeypatch.setattr(sealing, "settle", late)
    answer = first.finale("close", "cup", "one")
    assert struck == ["seals/cup/one/standings.json"]
    sealed = json.loads((Path(first.world.store) / struck[0]).read_bytes())
    assert (sealed["rows"], sealed["first_score"]) == (30, 29 if same else 1_000)
    if same:
        answer.ok()
        assert first.world.redis.dbsize() == 0
        assert first.seals()["one standings"] == second.seals()["one standings"]
    else:
        answer.refused(22, "sealed already, with other content")
        assert first.world.redis.zcard(key("one")) == 30
    second.finale("archive", "verify", "cup", "one").ok()
