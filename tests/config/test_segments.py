"""Segments: one table makes a board of each; what is wrong with them is told where it was written."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from config.load import load
from config.settings import Settings
from config.show import json_schema
from leaderboard.errors import ConfigError, UnknownNameError

ARENA = """
[board.arena]
segments = ["eu", "na"]
segment_by = "region"
calendar = { every = "week" }
where = { ranked = true }
"""


def _load(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "finale.toml"
    path.write_text(dedent(text))
    return load(path, {"FINALE_HOME": str(tmp_path)})


def test_each_segment_is_a_board_in_its_own_right(tmp_path: Path) -> None:
    """Names, filters, live keys and source follow; the table itself is no board, and says what it stands for."""
    settings = _load(tmp_path, ARENA)
    assert settings.boards.keys() == {"arena-eu", "arena-na"}
    assert settings.segments == {"arena": ("arena-eu", "arena-na")}
    board = settings.boards["arena-na"]
    assert (board.name, board.source, board.where) == ("arena-na", "arena", {"ranked": True, "region": "na"})
    with pytest.raises(UnknownNameError, match="a name for its segments"):
        settings.board("arena")


def test_a_table_gives_names_to_values_that_could_be_none(tmp_path: Path) -> None:
    text = ARENA.replace('["eu", "na"]', '{ eu = "Europe/West", three = 3 }').replace(
        "calendar", "source = 's'\ncalendar"
    )
    settings = _load(tmp_path, text)
    assert settings.boards["arena-eu"].where["region"] == "Europe/West"
    assert settings.boards["arena-three"].where["region"] == 3
    assert settings.boards["arena-three"].source == "s"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('["eu", "na"]', "[]", "board.arena.segments must be a list"),
        ('["eu", "na"]', '"eu"', "board.arena.segments must be a list"),
        ('["eu", "na"]', '["eu", "eu"]', "names a segment twice"),
        ('["eu", "na"]', '["EU"]', "'arena-EU' cannot name a board"),
        ('segment_by = "region"', "", "board.arena.segment_by is missing"),
        ('segment_by = "region"', 'segment_by = "ranked"', "board.arena.where has 'ranked' too"),
        ('segments = ["eu", "na"]', "", "board.arena.segments must be a list"),
        ("calendar", "colour = 1\ncalendar", "board.arena.colour is an unknown key"),
    ],
)
def test_faults_are_told_at_the_table_that_has_them(tmp_path: Path, old: str, new: str, words: str) -> None:
    """Exit 3 with the place as it was written, not as it was made; and each fault once."""
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, ARENA.replace(old, new))
    assert words in str(caught.value)
    assert str(caught.value).count(words) == 1


def test_a_segment_may_not_take_a_boards_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is a board arena-eu already"):
        _load(tmp_path, ARENA + "[board.arena-eu]\ncalendar = { every = 'week' }\n")


def test_one_key_for_all_segments_is_refused(tmp_path: Path) -> None:
    """A template without <board> would give all segments one live key."""
    with pytest.raises(ConfigError, match="the same live keys"):
        _load(tmp_path, ARENA + 'key = "lb:<season>"\n')


def test_the_schema_knows_segments() -> None:
    properties = json_schema()["$defs"]["Board"]["properties"]
    assert "segments" in properties and "segment_by" in properties
