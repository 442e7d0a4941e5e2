"""The bench of the archive runs, and every contestant did the same work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench import cluster, sorted_set
from bench.contestants import CONTESTANTS
from leaderboard.codec import LIMIT

ROOT = Path(__file__).parents[2]


def test_scores_are_a_seasons():
    """Whole scores below 2^53, of players most of whom have few points, the same for the same seed."""
    made = sorted_set.scores(10_000, days=30)
    assert made.tobytes() == sorted_set.scores(10_000, days=30).tobytes()
    assert (made == np.floor(made)).all()
    assert 0 <= made.min() <= made.max() < LIMIT


@pytest.mark.slow
def test_every_contestant_reads_all_rows_and_players_are_asked():
    """A small run in JSON: rows, seconds, memory and size of each contestant, and what ranks took meanwhile."""
    words = [sys.executable, "-m", "bench.archive", "--rows", "20000", "--rounds", "2", "--json"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=250)
    found = json.loads(done.stdout)
    assert len(found["rounds"]) == 2
    for one in found["rounds"]:
        assert one.keys() == CONTESTANTS.keys()
        assert {told["rows"] for told in one.values()} == {20_000}
        assert all(told["seconds"] > 0 and told["memory"] > 10 * 2**20 for told in one.values())
        assert one["Finale"]["bytes"] > 5 * 20_000
        assert one["floor"]["bytes"] == one["redis-py"]["bytes"] == one["drain"]["bytes"] == 0
    assert found["ranks"].keys() == {"nothing", "usual loop", "Finale"}
    assert all(felt["asked"] > 1 for felt in found["ranks"].values())


@pytest.mark.slow
def test_a_cluster_of_three_reads_the_same_rows():
    """Both layouts on three nodes, beside the floor of the one server that has all the players."""
    words = [sys.executable, "-m", "bench.archive", "--rows", "20000", "--rounds", "1", "--cluster", "--only", "floor"]
    done = subprocess.run([*words, "--json"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=250)
    (one,) = json.loads(done.stdout)["rounds"]
    assert one.keys() == {"floor", "by player", "by score"}
    assert {told["rows"] for told in one.values()} == {20_000}
    assert one["by player"]["bytes"] == one["by score"]["bytes"] > 5 * 20_000


def test_the_shards_of_the_bench_are_on_every_node():
    """Else three nodes would not share the work."""
    for layout in cluster.LAYOUTS:
        assert {cluster.node_of(name) for name in cluster.names(layout)} == {0, 1, 2}
