"""What an operator names: files that are none, empty texts, folders that are not there; each error has its remedy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.cli import World, finale

TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
SEASON = "{ id = 'one', starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }"
BOARD = f"[board.cup]\nrewards = 'cup.toml'\nties = 'shared'\ncalendar = {{ seasons = [{SEASON}] }}\n"
CORRECT = ("rewards", "correct", "cup", "one", "--as", "ana", "--because", "x")


@pytest.fixture
def cup(world: World) -> World:
    """A season that was paid, and beside its configuration files that are none."""
    world.configure(BOARD, cup=TABLE)
    world.played("cup", *(f"m1,p{number},{number},2026-01-02T00:00:00Z" for number in range(9)))
    finale("close", "cup", "one", "--as", "ops").ok()
    for name in ("pipe.toml", "pipe.csv", "pipe.txt", "pipe.parquet"):
        os.mkfifo(world.folder / name)
    for name in ("empty.toml", "empty.csv", "empty.txt", "cheaters"):
        (world.folder / name).touch()
    (world.folder / "header.csv").write_text("player,reason\nann,x\n")
    (world.folder / "broken.toml").write_text("version = = 1\n")
    (world.folder / "faulty.toml").write_text('version = 1\n[[rule]]\nname = "a"\n')
    (world.folder / "latin.toml").write_bytes(b"\xe9\n")
    return world


def test_a_pipe_is_refused_before_anything_waits_for_it(cup: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table, a configuration, a list of players, a Parquet file, a secret: opening a pipe would wait for ever."""
    at = cup.folder
    said = "it is a pipe, not a file"
    finale("rewards", "check", str(at / "pipe.toml")).refused(4, said, "hint:")
    finale("--config", str(at / "pipe.toml"), "config", "check").refused(3, said, "hint:")
    finale("rewards", "preview", "cup", "one", "--table", str(at / "pipe.toml")).refused(4, said, "hint:")
    finale(*CORRECT, "--exclude", str(at / "pipe.csv")).refused(4, said, "hint:")
    finale(*CORRECT, "--exclude", str(at / "pipe.txt")).refused(4, said, "hint:")
    finale("results", "import", str(at / "pipe.parquet"), "--board", "cup").refused(4, said, "hint:")
    cup.configure(BOARD.replace("cup.toml", "pipe.toml"))
    finale("config", "check").refused(3, said, "hint:")
    cup.configure(BOARD, cup="exclude = [{ file = 'pipe.csv' }]\n" + TABLE)
    finale("rewards", "preview", "cup", "one", "--table", str(at / "cup.toml")).refused(4, said, "hint:")
    monkeypatch.setenv("FINALE_STORE", "")
    monkeypatch.setenv("FINALE_STORE_FILE", str(at / "pipe.csv"))
    finale("config", "check").refused(3, "FINALE_STORE_FILE", said, "hint:")


def test_every_fault_of_a_file_has_a_remedy(cup: World) -> None:
    """Missing, empty, broken, faulty, in another encoding, without its column: said in one sentence, with a hint."""
    at = cup.folder
    check = ("rewards", "check")
    finale(*check, str(at / "none.toml")).refused(4, "none.toml cannot be read: No such file", "hint:")
    finale(*check, str(at / "empty.toml")).refused(3, "empty.toml is an empty file", "hint:")
    finale(*check, str(at / "broken.toml")).refused(3, "line 1, column", "this is no TOML", "hint:")
    finale(*check, str(at / "faulty.toml")).refused(3, "hint:")
    finale(*check, str(at / "latin.toml")).refused(4, "cannot be read: byte 1 is no UTF-8", "hint:")
    finale(*CORRECT, "--exclude", str(at / "none.csv")).refused(4, "none.csv cannot be read: No such file", "hint:")
    finale(*CORRECT, "--exclude", str(at / "empty.csv")).refused(4, "empty.csv is an empty file", "hint:")
    finale(*CORRECT, "--exclude", str(at / "empty.txt")).refused(4, "empty.txt is an empty file", "hint:")
    finale(*CORRECT, "--exclude", str(at / "header.csv")).refused(4, "the header lacks player_id", "hint:")
    finale("results", "import", str(at / "empty.csv"), "--board", "cup").refused(4, "is an empty file", "hint:")


def test_what_is_neither_a_file_nor_a_player_tells_how_files_are_named(cup: World) -> None:
    """--exclude takes a name without .csv or .txt for a player's, and says so where nobody has it."""
    named = ("--preview", "--exclude", str(cup.folder / "cheaters"))
    finale(*CORRECT, *named).refused(5, "none of the players", "a name that ends in .csv or .txt")
    answer = finale(*CORRECT, *named, "--exclude", "p1").ok()
    assert "not on the board: 1 player:" in answer.err and "a file of players is named .csv or .txt" in answer.err


def test_an_empty_text_names_nothing(cup: World) -> None:
    """It would be the folder in which the command runs."""
    for words in (
        ("rewards", "check", ""),
        ("audit", "", "cup", "one"),
        ("--config", "", "config", "check"),
        ("results", "import", "", "--board", "cup"),
        ("rewards", "preview", "cup", "one", "--table", ""),
        ("archive", "export", "cup", "one", "--to", ""),
        (*CORRECT, "--table", ""),
        ("init", ""),
    ):
        finale(*words).refused(4, "an empty text names no", "hint:")


def test_an_audit_of_a_folder_that_is_not_there_says_so(cup: World, tmp_path: Path) -> None:
    """A mistyped URL is no archive without the board; hints are about the URL that was given."""
    gone = tmp_path / "gone"
    finale("audit", str(gone), "cup", "one").refused(11, f"there is no folder {gone}", f"look at '{gone}'")
    answer = finale("audit", str(tmp_path), "cup", "one").refused(5, "nothing of board 'cup' is sealed")
    assert f"is {tmp_path.as_uri()} the archive" in answer.err and "finale archive list" not in answer.err


def test_a_broken_part_is_named_once(cup: World) -> None:
    """What could only be computed from it says so, without naming it again."""
    part = cup.store / "standings/board=cup/season=one/part-00000.parquet"
    part.write_bytes(part.read_bytes()[:-8] + b"tampered")
    answer = finale("audit", str(cup.store), "cup", "one").refused(30, "a file that was named is not as sealed")
    assert (answer.out + answer.err).count("is not the part that was sealed") == 1


def test_a_list_that_is_cut_says_how_many_more(cup: World) -> None:
    """The reconciled players, and the seasons that there are."""
    open_ = SEASON.replace("one", "two").replace("2026-02-01", "2090-01-01").replace("2026-01-01", "2026-02-02")
    others = [
        f"{{ id = 'x{at}', starts_at = {2000 + at}-01-01T00:00:00Z, ends_at = {2000 + at}-02-01T00:00:00Z }}"
        for at in range(14)
    ]
    cup.configure(BOARD.replace(f"[{SEASON}]", f"[{', '.join([SEASON, open_, *others])}]"))
    cup.played("cup", *(f"o{at},p1,1,{2000 + at}-01-02T00:00:00Z" for at in range(14)))
    finale("standings", "cup", "nope").refused(5, "and 5 more, the last ones first")
    cup.played("cup", *(f"n{number},q{number},{number},2026-03-01T00:00:00Z" for number in range(32)))
    cup.redis.delete("leaderboard:cup:two")
    answer = finale("reconcile", "cup", "two").refused(18, "differ in 32 players")
    assert "and 12 more; --json" in answer.out


def test_a_long_detail_pads_no_other_line(cup: World) -> None:
    """Where nobody watches a terminal, lines end where their words do."""
    finale("season", "hold", "cup", "one", "--because", "x" * 900, "--as", "ana")
    out = finale("season", "show", "cup", "one").ok().out
    assert all(line == line.rstrip() for line in out.splitlines())
