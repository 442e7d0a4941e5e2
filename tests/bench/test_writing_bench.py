"""The bench of writing runs, and every contestant wrote the same rows."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_the_bench_of_writing_runs_small() -> None:
    """Results are written in every way that is compared, and seen on the board after each commit."""
    words = "--results 3000 --players 500 --single 5 --rate 600 --seconds 1 --rounds 1 --json"
    done = subprocess.run(
        [sys.executable, "-m", "bench.writing", *words.split()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert all(value > 0 for value in found.values())
    assert found["visible after the commit, p50, s"] <= found["visible after the commit, p99, s"]
