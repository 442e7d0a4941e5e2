"""finale rewards correct --voided where the table asks how many matches a player has."""

from __future__ import annotations

from tests.jobs.test_cli_correct import BOARD, CORRECT, TABLE, net, of_archive
from tests.support.cli import World, finale

TWICE = TABLE.replace("version = 1", "version = 1\neligible = { min_matches = 2 }")
WITHOUT_B = {("a", "title.first"): 1, ("a", "gems"): 500, ("c", "gems"): 100}


def _voided(world: World, table: str) -> None:
    """a, b and c played two matches each, d one; one of b's is voided after that was paid, so that b is the last."""
    world.configure(BOARD, cup=table)
    won = {"a": (30, 30), "b": (20, 20), "c": (12, 12), "d": (25,)}
    rows = [f"{name}{n},{name},{points}" for name, each in won.items() for n, points in enumerate(each)]
    world.played("cup", *(f"{row},2026-01-05T10:00:00Z" for row in rows))
    finale("close", "cup", "s1", "--as", "ops").ok()
    finale("results", "void", "b1", "--source", "cup", "--because", "cheated", "--as", "ana").ok()


def _right(world: World) -> None:
    assert net(world) == of_archive(world) == WITHOUT_B
    finale("audit", world.store.as_uri(), "cup", "s1").ok()
    page = finale("why", "cup", "s1", "b").ok().out
    assert "1 match, min_matches is 2" in page


def test_i10_a_voided_match_does_not_count_for_min_matches(world: World) -> None:
    """I10: whoever has too few matches left is granted nothing; what is left is sealed, so the audit agrees."""
    _voided(world, TWICE)
    assert net(world) == WITHOUT_B | {("b", "gems"): 100}
    finale(*CORRECT, "--voided").ok()
    _right(world)
    facts = finale("archive", "show", "cup", "s1", "--kind", "correction-0001", "--json").ok().json["facts"]
    assert sorted(file["kind"] for file in facts) == ["changed", "matches"]
    assert "nothing differs" in finale(*CORRECT, "--voided").ok().out
    finale(*CORRECT, "--exclude", "a").ok()
    assert net(world) == of_archive(world) == {("c", "title.first"): 1, ("c", "gems"): 500}


def test_matches_that_a_later_table_asks_for_are_without_the_voided_ones(world: World) -> None:
    """The table of a later correction is the first that counts matches: those of an earlier correction stay voided."""
    _voided(world, TABLE)
    finale(*CORRECT, "--voided").ok()
    (world.folder / "twice.toml").write_text(TWICE)
    finale(*CORRECT, "--table", str(world.folder / "twice.toml")).ok()
    _right(world)


def test_a_table_that_counts_matches_comes_with_the_voids(world: World) -> None:
    """Both at once are one correction."""
    _voided(world, TABLE)
    (world.folder / "twice.toml").write_text(TWICE)
    finale(*CORRECT, "--voided", "--table", str(world.folder / "twice.toml")).ok()
    _right(world)
