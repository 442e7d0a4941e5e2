"""finale rewards approve where the board's own table says little: none at the close, or facts beside another table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.test_cli_rewards import CONFIG, NAME, RULES, granted, played
from tests.support.cli import World, finale

PLAIN = CONFIG.replace('rewards = "cup.toml"\n', "")


def _sealed_without_a_table(world: World) -> None:
    played(world)
    world.configure(PLAIN)
    finale("close", "cup", "s1", "--until", "seal").ok()


def test_an_approved_table_pays_a_season_that_closed_without_one(world: World) -> None:
    """I5: what a person approved is granted and sealed, though the board named no reward table when it closed."""
    _sealed_without_a_table(world)
    told = finale("rewards", "preview", "cup", "s1", "--table", str(world.folder / "cup.toml"), "--json").ok().json
    finale("rewards", "approve", "cup", "s1", told["hash"], *NAME).ok()
    finale("close", "cup", "s1").ok()
    assert granted(world) == {"a": [100], **{name: [10] for name in "bcdef"}}
    sealed = finale("archive", "show", "cup", "s1", "--kind", "grants", "--json").ok().json
    assert sealed["digest"] == told["hash"]
    finale("audit", world.store.as_uri(), "cup", "s1").ok()


def test_a_table_that_is_configured_after_the_close_pays_nothing_unasked(world: World) -> None:
    """The close fixed that there is no table: a preview says so and how to pay by one, and the close grants nothing."""
    _sealed_without_a_table(world)
    world.configure(CONFIG, cup=f"version = 1\n{RULES}")
    said = "had no reward table when s1 closed"
    finale("rewards", "preview", "cup", "s1").refused(5, said, "--table FILE", "approve its preview")
    finale("close", "cup", "s1").ok()
    assert granted(world) == {}
    assert "approve" not in finale("rewards", "preview", "cup", "s1").refused(5, said).err


def test_files_of_an_approved_table_are_those_that_its_preview_read(world: World) -> None:
    """What a table names is beside it, also when it pays: another file of that name by the board's own table is not."""
    played(world, 'exclude = [{ file = "cheaters.csv" }]')
    (world.folder / "cheaters.csv").write_text("player_id\nb\n")
    finale("close", "cup", "s1", "--until", "seal").ok()
    fixes = world.folder / "fixes"
    fixes.mkdir()
    (fixes / "cup.toml").write_text((world.folder / "cup.toml").read_text())
    (fixes / "cheaters.csv").write_text("player_id\na\n")
    told = finale("rewards", "preview", "cup", "s1", "--table", str(fixes / "cup.toml"), "--json").ok().json
    finale("rewards", "approve", "cup", "s1", told["hash"], *NAME).ok()
    assert finale("rewards", "preview", "cup", "s1", "--json").ok().json["hash"] == told["hash"]
    finale("close", "cup", "s1").ok()
    assert granted(world) == {"b": [100], **{name: [10] for name in "cdef"}}


@pytest.mark.parametrize("within", [True, False], ids=["below the configuration", "elsewhere"])
def test_the_folder_of_an_approved_table_is_found_from_anywhere(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within: bool
) -> None:
    """It is kept as the configuration's folder sees it, so whoever closes may stand, or have that folder, elsewhere."""
    _sealed_without_a_table(world)
    fixes = (world.folder if within else tmp_path) / "fixes"
    fixes.mkdir()
    (fixes / "cup.toml").write_text(f'version = 1\nexclude = [{{ file = "cheaters.csv" }}]\n{RULES}')
    (fixes / "cheaters.csv").write_text("player_id\na\n")
    with monkeypatch.context() as patch:
        patch.chdir(fixes)
        told = finale("rewards", "preview", "cup", "s1", "--table", "cup.toml", "--json").ok().json
        finale("rewards", "approve", "cup", "s1", told["hash"], *NAME).ok()
    [kept] = [detail["folder"] for event, _, detail in world.journal("cup", "s1") if event == "rewards approved"]
    assert kept == ("fixes" if within else str(fixes.resolve()))
    finale("close", "cup", "s1").ok()
    assert granted(world) == {"b": [100], **{name: [10] for name in "cdef"}}
