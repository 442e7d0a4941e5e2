"""A store that is unmounted, empty or another folder than the earlier seals': nothing is sealed there, or removed."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.support.cli import Answer, World, finale

CONFIG = """
[board.g]
ties = "shared"
ledger = "none"
grace = "0s"
rewards = "g.toml"
calendar = { seasons = [
  { id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z },
  { id = "two", starts_at = 2026-02-01T00:00:00Z, ends_at = 2026-03-01T00:00:00Z },
  { id = "three", starts_at = 2026-03-01T00:00:00Z, ends_at = 2026-04-01T00:00:00Z },
] }
[board.other]
ties = "shared"
ledger = "none"
grace = "0s"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
KEYS = ("leaderboard:g:one", "leaderboard:g:two", "leaderboard:g:three", "leaderboard:other:one")


@pytest.fixture
def game(world: World) -> World:
    """Boards without a ledger, whose first season is sealed and paid."""
    world.configure(CONFIG, g=TABLE)
    for key in KEYS:
        world.redis.zadd(key, {"ann": 5, "bob": 3})
    finale("close", "g", "one").ok()
    return world


def test_i1_i2_nothing_is_sealed_into_a_store_without_the_earlier_seals(game: World) -> None:
    """I1, I2: the folder is gone, then empty, then has another archive: exit 11, nothing is put, no key removed.

    Neither is the first seal of another board. Once the store is back, all goes on in one chain.
    """
    away = game.store.with_name("away")
    game.store.rename(away)
    for folder in ("missing", "empty"):
        if folder == "empty":
            game.store.mkdir()
        for board, season in (("g", "two"), ("other", "one")):
            finale("close", board, season).refused(
                11, "is not the store of the earlier seals", "mount it, or restore it"
            )
            finale("close", board, season, "--dry-run").refused(11, "is not the store of the earlier seals")
        finale("clean", "g", "one", "--now", "--as", "ana")
        assert game.store.exists() == (folder == "empty")
        assert folder == "missing" or not any(game.store.iterdir())
    assert game.redis.exists(*KEYS) == len(KEYS)
    game.store.rmdir()
    shutil.copytree(away, game.store)
    seal = game.store / "seals/g/one/grants.json"
    seal.write_bytes(seal.read_bytes() + b" ")
    finale("close", "g", "two").refused(11, "is not the store of the earlier seals")
    shutil.rmtree(game.store)
    away.rename(game.store)
    for board, season in (("g", "two"), ("other", "one")):
        finale("close", board, season).ok()
    finale("clean", "g", "two", "--now", "--as", "ana").ok()
    finale("archive", "verify", "--all").ok()


def test_i2_the_store_may_vanish_after_the_snapshot(game: World) -> None:
    """I2: staged and compared, the season is not sealed where the earlier seals are not."""
    finale("close", "g", "two", "--until", "reconcile").ok()
    staged = game.store / "staging"
    away = game.store.with_name("away")
    game.store.rename(away)
    shutil.copytree(away / staged.name, staged)
    finale("close", "g", "two").refused(11, "is not the store of the earlier seals")
    assert {path.name for path in game.store.iterdir()} == {"staging"}
    shutil.rmtree(game.store)
    away.rename(game.store)
    finale("close", "g", "two").ok()
    finale("archive", "verify", "--all").ok()


def test_i1_a_season_is_not_cleaned_where_later_seals_are_not(game: World) -> None:
    """I1: an older copy of the store has the season's own seal, but not the board's newest: its key stays."""
    older = game.store.with_name("older")
    shutil.copytree(game.store, older)
    finale("close", "g", "two").ok()
    newest = game.store.with_name("newest")
    game.store.rename(newest)
    older.rename(game.store)
    finale("clean", "g", "one", "--now", "--as", "ana").refused(11, "is not the store of the earlier seals")
    assert game.redis.exists(KEYS[0])
    shutil.rmtree(game.store)
    newest.rename(game.store)
    finale("clean", "g", "one", "--now", "--as", "ana").ok()


def test_i8_a_seal_that_was_committed_and_not_yet_put_stops_no_other_season(game: World) -> None:
    """I8: killed between committing a seal and putting it, one season leaves the next free to be sealed."""
    finale("close", "g", "two", "--until", "seal").ok()
    game.sql("update finale.season set state = 'reconciled' where season = 'two'")
    (game.store / "seals/g/two/standings.json").unlink()
    finale("close", "g", "three").ok()
    finale("close", "g", "two", "--until", "reward").ok()
    finale("archive", "verify", "--all").ok()


def test_doctor_fails_for_a_store_without_the_newest_seal_and_makes_no_folder(game: World) -> None:
    """Gone, then empty: a row fails, exit 19, with the remedy, and nothing is made there; back again, all is ok."""
    assert earlier_seals(finale("doctor", "--json").ok())["verdict"] == "ok"
    away = game.store.with_name("away")
    game.store.rename(away)
    for made in (False, True):
        if made:
            game.store.mkdir()
        row = earlier_seals(finale("doctor", "--json").refused(19, "store earlier seals"))
        assert row["verdict"] == "fail" and "is not the store of the earlier seals" in row["found"]
        assert "mount it, or restore it" in row["remedy"]
        assert game.store.exists() == made
        assert not made or not any(game.store.iterdir())


def test_doctor_of_a_fresh_installation_makes_no_folder(world: World) -> None:
    """No seal and no folder yet is well, and the folder is left to the first seal."""
    world.configure(CONFIG, g=TABLE)
    world.store.rmdir()
    row = earlier_seals(finale("doctor", "--json").ok())
    assert row["verdict"] == "ok" and "does not exist yet; the first seal makes it" in row["found"]
    assert not world.store.exists()


def test_doctor_without_the_ledger_makes_no_folder(
    world: World, monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    """No server, then no schema: whether seals must be there is unknown, and said so; no folder is made."""
    world.configure(CONFIG, g=TABLE)
    world.store.rmdir()
    for url, failed in (("postgresql://game@127.0.0.1:1/finale", "answers"), (postgres_url, "migrations")):
        monkeypatch.setenv("FINALE_POSTGRES", url)
        row = earlier_seals(finale("doctor", "--json").refused(19, f"postgres {failed}"))
        assert row["verdict"] == "unknown" and "does not exist" in row["found"]
        assert not world.store.exists()


def earlier_seals(answer: Answer) -> dict[str, Any]:
    """Return doctor's row of the newest seal."""
    [row] = [one for one in answer.json["checks"] if (one["area"], one["name"]) == ("store", "earlier seals")]
    return dict(row)
