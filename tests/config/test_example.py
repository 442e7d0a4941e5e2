"""The example that ``finale init`` writes works at once, says what the design says, and overwrites nothing."""

import re
import subprocess
import sys
import tomllib
from datetime import timedelta
from pathlib import Path
from zipfile import ZipFile

import pytest

from config.example import NAMES, write_example
from config.load import load
from leaderboard.errors import InputError

ROOT = Path(__file__).parents[2]


def test_the_example_works_at_once(tmp_path):
    """Both boards load with embedded servers, each with its reward table."""
    paths = write_example(tmp_path / "new" / "folder")
    settings = load(paths[0], {"FINALE_HOME": str(tmp_path)})
    assert settings.servers.embedded
    assert settings.boards.keys() == settings.tables.keys() == {"goals", "arena"}
    arena = settings.board("arena")
    assert (arena.aggregate, arena.ties.by, arena.keep_live) == ("best", "shared", timedelta(days=3))
    assert (arena.calendar.every, arena.calendar.timezone) == ("week", "Europe/Berlin")


def test_goals_is_the_board_of_the_design(tmp_path):
    """The board that the documentation shows is the one that is written."""
    table = tomllib.loads(write_example(tmp_path)[0].read_text())["board"]["goals"]
    assert table == {
        "source": "goals",
        "key": "leaderboard:<board>:<season>",
        "order": "high",
        "aggregate": "sum",
        "ties": {"by": "first_to_reach", "unit": "minute"},
        "calendar": {"every": "year", "timezone": "UTC"},
        "grace": "15m",
        "keep_live": "7d",
        "rewards": "rewards/goals.toml",
    }


def test_what_is_commented_out_is_right_too(tmp_path):
    """With its comment signs taken away, the example still loads, and its runner has the defaults it claims."""
    path = write_example(tmp_path)[0]
    plain = load(path, {})
    path.write_text(re.sub(r"(?m)^# (\[\w+\]|\w+ += .*)$", r"\1", path.read_text()))
    full = load(path, {})
    assert not full.servers.embedded
    assert full.store == "s3://bucket/prefix"
    assert full.runner == plain.runner
    assert tomllib.loads(path.read_text())["runner"].keys() == type(full.runner).model_fields.keys()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_nothing_is_overwritten_and_nothing_else_written(tmp_path, name, kind):
    """One file that is there already is named, left as it is, and keeps the others from being written."""
    there = tmp_path / name
    there.parent.mkdir(exist_ok=True)
    if kind == "file":
        there.write_text("mine")
    else:
        there.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=re.escape(str(there))):
        write_example(tmp_path)
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == [there]
    assert kind != "file" or there.read_text() == "mine"


def test_a_folder_that_cannot_be_written_leaves_nothing(tmp_path):
    """Where the reward tables cannot be written, the configuration is taken back, and the error names the folder."""
    (tmp_path / "rewards").write_text("a file")
    with pytest.raises(InputError, match="cannot be written") as caught:
        write_example(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["rewards"]


def test_the_wheel_carries_the_example(tmp_path):
    """Installed from a wheel, ``finale init`` finds its files."""
    build = "import hatchling.build, sys; hatchling.build.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert {f"config/examples/{name}" for name in NAMES} <= set(ZipFile(wheel).namelist())
