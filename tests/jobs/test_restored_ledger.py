"""PostgreSQL restored from yesterday against a store with newer seals: adopted or held, and nobody is paid twice."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from jobs.embedded.postgres_server import PostgresServer
from tests.support.cli import REPOSITORY, World, finale
from tests.support.servers import Databases

CONFIG = """
[board.cup]
ties = "shared"
grace = "0s"
rewards = "cup.toml"
calendar = { seasons = [
  { id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z },
  { id = "two", starts_at = 2026-02-01T00:00:00Z, ends_at = 2026-03-01T00:00:00Z },
  { id = "three", starts_at = 2026-03-01T00:00:00Z, ends_at = 2026-04-01T00:00:00Z },
] }
"""
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
ROWS = {
    "one": ["m1,ann,5,2026-01-02T00:00:00Z", "m1,bob,3,2026-01-02T00:00:00Z"],
    "two": ["m2,ann,7,2026-02-02T00:00:00Z"],
    "three": ["m3,eve,1,2026-03-02T00:00:00Z"],
}
NEWER = "m9,joe,9,2026-01-20T00:00:00Z"
PAID = "select grant_id::text, player_id, amount from finale.payable where season = %s order by 1"


@pytest.fixture
def cup(world: World) -> World:
    world.configure(CONFIG, cup=TABLE)
    for rows in ROWS.values():
        world.played("cup", *rows)
    return world


@pytest.fixture
def yesterday(cup: World, shared_postgres: PostgresServer) -> Iterator[World]:
    """The world with a copy of its ledger as it is before anything is closed; ``restore`` lets commands use it."""
    name = cup.postgres_url.rpartition("@/")[2].partition("?")[0]
    with Databases(shared_postgres).fresh(name) as url:
        yield replace(cup, postgres_url=url)


def restore(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINALE_POSTGRES", world.postgres_url)


def sealed(world: World) -> dict[str, bytes]:
    return {
        path: (world.store / path).read_bytes() for path in world.files() if not path.startswith(("staging", "rep"))
    }


def test_i2_i5_a_restored_ledger_takes_over_what_is_sealed(
    cup: World, yesterday: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I2, I5: closed, paid and cleaned since: the board is written anew, the very seals adopted, the same ids paid."""
    finale("close", "cup", "one").ok()
    finale("clean", "cup", "one", "--now", "--as", "ana").ok()
    before, paid = sealed(cup), cup.sql(PAID, "one")
    restore(yesterday, monkeypatch)
    assert yesterday.sql(PAID, "one") == []
    assert "written again after lost writes" in finale("close", "cup", "one").ok().out
    assert sealed(cup) == before
    assert yesterday.sql(PAID, "one") == paid  # the same ids: whoever has paid them does nothing
    finale("archive", "verify", "--all").ok()
    finale("clean", "cup", "one", "--now", "--as", "ana").ok()


def test_i4_i5_a_ledger_that_lacks_results_pays_nobody_until_they_are_back(
    cup: World, yesterday: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I4, I5: results came after the backup: held, nobody paid; imported again, the page's commands adopt the seals.

    The board has no grace, so that reopening it without one would be refused.
    """
    cup.played("cup", NEWER)
    finale("close", "cup", "one").ok()
    before, paid = sealed(cup), cup.sql(PAID, "one")
    assert len(paid) == 3
    restore(yesterday, monkeypatch)
    cup.redis.delete("leaderboard:cup:one")
    finale("results", "apply", "cup", "one", "--all").ok()
    finale("close", "cup", "one").refused(22, "sealed already, with other content", "reopen")
    assert yesterday.sql(PAID, "one") == []
    assert sealed(cup) == before
    finale("tick", "--as", "cron")
    assert yesterday.sql(PAID, "one") == []
    yesterday.played("cup", NEWER)
    page = (REPOSITORY / "docs/backup.md").read_text("utf-8")
    said = re.findall(r"`finale ((?:season reopen|close) B S [^`]+)`", page)
    assert len(said) == 2
    for command in said:
        finale(*shlex.split(command.replace("B S", "cup one"))).ok()
    assert sealed(cup) == before
    assert yesterday.sql(PAID, "one") == paid
    finale("archive", "verify", "--all").ok()


def test_i2_the_chain_goes_on_after_seals_that_the_ledger_does_not_know(
    cup: World, yesterday: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I2: another season sealed first has the number after the store's last; the older ones are adopted later."""
    finale("close", "cup", "one").ok()
    finale("close", "cup", "two").ok()
    restore(yesterday, monkeypatch)
    finale("close", "cup", "three").ok()
    numbers = yesterday.sql("select number from finale.seal order by 1")
    assert numbers == [(5,), (6,)]
    finale("archive", "verify", "--all").ok()
    for season in ("two", "one"):
        finale("close", "cup", season).ok()
    assert yesterday.sql("select number from finale.seal order by 1") == [(n,) for n in range(1, 7)]
    finale("archive", "verify", "--all").ok()


def test_a_database_that_is_older_or_newer_than_the_program(
    world: World, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    """Upgrades: before the migration every command names it; a newer schema is refused by an older program, code 11."""
    world.configure(CONFIG, cup=TABLE)
    monkeypatch.setenv("FINALE_POSTGRES", postgres_url)
    finale("tick").refused(11, "finale db migrate")
    finale("db", "migrate").ok()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("insert into finale.migration (version, name) values (9999, 'of_a_newer')")
    finale("db", "migrate").refused(11, "migration 9999", "upgrade Finale")
