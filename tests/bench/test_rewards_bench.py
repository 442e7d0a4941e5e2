"""The bench of rewards runs, and every contestant makes the same grants."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_every_contestant_makes_all_grants() -> None:
    """A small run in JSON: rows, seconds and memory of each; one player of the first rank has two grants."""
    words = [sys.executable, "-m", "bench.rewards", "--players", "20000", "--rounds", "2", "--json"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=250)
    for one in json.loads(done.stdout)["rounds"]:
        assert one.keys() == {"read", "compute", "pandas", "copy", "grant"}
        assert one["read"]["rows"] == 20_000
        assert {one[name]["rows"] for name in ("compute", "pandas", "copy", "grant")} == {20_001}
