"""CSV files of ids: a row is taken whole or refused with its line; none is hidden by a quote or a missing cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.csv_files import csv_rows
from leaderboard.errors import InputError


def read(folder: Path, text: str) -> list[tuple[int, dict[str, str]]]:
    path = folder / "x.csv"
    path.write_bytes(text.encode())
    return list(csv_rows(path, ("player_id",), ("reason",)))


def test_rows_come_with_their_lines(tmp_path: Path) -> None:
    """Any line ends, empty lines, a byte order mark, quoted commas and quotes, further columns; no last line end."""
    found = read(tmp_path, '\ufeffreason,player_id,by,,\r\n"a, b",z1,ana,,\r\n\r\n,"z""2",,,')
    assert [(line, row["player_id"], row["reason"]) for line, row in found] == [(2, "z1", "a, b"), (4, 'z"2', "")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('player_id,reason\nz30,"cheater\nz29,bot\n', "line 2 cannot be read: unexpected end of data"),
        ('player_id,reason\nz30,x\n"z29', "line 3 cannot be read: unexpected end of data"),
        ('player_id,reason\nz30,"cheater\nz29,bot"\nz28,x\n', "line 2: the row goes on to line 3"),
        ('player_id\n"z30\nz29"\n', "line 2: the row goes on to line 3"),
        ('player_id,reason\n"z30" ,x\n', "line 2 cannot be read"),
        ("reason,player_id\nz30\nbot,z28\n", "line 2: 1 cells where the header names 2"),
        ("player_id,reason\nz30,x,y\n", "line 2: 3 cells where the header names 2"),
        ("player_id,reason\nz30,x\n\n,empty\n", "line 4: player_id is empty"),
        ("player_id,player_id\nz30,z29\n", "the header has player_id twice"),
        ("player,reason\nz30,x\n", "the header lacks player_id"),
        ("\nplayer_id\nz30\n", "the header lacks player_id"),
    ],
)
def test_what_could_hide_a_row_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """I4: every fault is told with its line and a remedy."""
    with pytest.raises(InputError, match=r"x\.csv") as raised:
        read(tmp_path, text)
    assert said in raised.value.message
    assert raised.value.hint
