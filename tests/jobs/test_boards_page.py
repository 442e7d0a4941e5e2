"""docs/boards.md: the program that it shows runs, on a board in one sorted set and on one with shards."""

from __future__ import annotations

import re
from typing import Any

import pytest

from leaderboard.calendar_rule import Calendar
from live import Rank
from tests.support.cli import REPOSITORY, World

PAGE = (REPOSITORY / "docs/boards.md").read_text("utf-8")
SHARDS = ("", 'shards = { by = "player", count = 3 }\n', 'shards = { by = "score", cuts = [10, 20] }\n')


@pytest.mark.parametrize("shards", SHARDS)
def test_the_program_reads_the_board(world: World, monkeypatch: pytest.MonkeyPatch, shards: str) -> None:
    """Each line gives what its remark says, whatever the board is spread over."""
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    world.configure(f'[board.goals]\nties = "shared"\ncalendar = {{ every = "year" }}\n{shards}')
    world.played("goals", *(f"m1,{name},{points},2026-01-02T00:00:00Z" for name, points in [("ann", 5), ("bob", 30)]))
    monkeypatch.chdir(world.folder)
    found: dict[str, Any] = {}
    exec(program, found)  # the page's own text
    goals = found["goals"]
    assert isinstance(found["board"].calendar, Calendar)
    assert [row.player_id for row in goals.top(100)] == [b"bob", b"ann"] and found["top"].top(10) == goals.top(10)
    assert goals.page(200, 50) == [] and goals.count() == 2
    assert goals.rank(b"ann") == Rank(2, 2, 5.0) and goals.score(b"ann") == 5.0 and goals.percentile(b"ann") == 100
    assert goals.around(b"eve", 5) == [] and goals.rank(b"eve") is None
