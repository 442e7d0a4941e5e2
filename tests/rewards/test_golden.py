"""The same standings, table and facts give the same grants anywhere: a digest written down once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from rewards import compute
from rewards.ids import GrantIds, grant_id, line_key
from rewards.plan import plan
from rewards.table import parse_table
from rewards.totals import Totals
from tests.rewards.brute import fact_tables, player, standings
from tests.rewards.test_compute import batches

TABLE = """
version = 1
match = "all"
at_line = "out"
removed = "close_up"
exclude = [{ file = "bans.csv" }]
leagues = { file = "leagues.csv" }
eligible = { min_points = 3 }
[[rule]]
name = "champion"
rank = "1"
grant = { "title.champion" = 1, gems = 5000 }
[[rule]]
name = "best of its league"
league = "*"
position = "1-3"
grant = { gems = 300 }
[[rule]]
name = "top third"
percentile = "33.3"
grant = { gems = 100 }
[[rule]]
name = "kept the top 100"
rank = "1-100"
previous = "1-100"
grant = { chests = 2 }
[[rule]]
name = "long arm"
at_least = 40
grant = { gems = 7 }
"""
ROWS, DIGEST = 319, "e56e01b8bdcb03faa434e4ffa37972b528d8f74c00df7ae75a93b9be50f8f5f2"


@pytest.mark.parametrize("size", [1, 7, 100, 65_536])
def test_c78_the_digest_of_grants_is_golden(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """I5, I10, C78: with any batch or slice, library and Python version; another digest is another payment."""
    monkeypatch.setattr(compute, "_SLICE", size)
    rows = standings(sorted((at * 7919 % 101 // 2 for at in range(400)), reverse=True))
    facts = fact_tables(
        excluded={player(at) for at in range(0, 400, 37)},
        leagues={player(at): ("gold", "silver", "tin")[at % 3] for at in range(390)},
        previous={player(at): at // 2 + 1 for at in range(300, 0, -1)},
    )
    cuts = range(0, 400, 13 if size == 1 else size)
    table, totals = parse_table(TABLE, "golden"), Totals()
    for batch in compute.grants(batches(rows, cuts), plan(batches(rows), table, facts), "goals", "s2026"):
        totals.add(batch)
    assert (totals.rows, totals.digest()) == (ROWS, DIGEST)


GOLDEN = {
    b"player 1": "b0b46d34-c206-1ee0-a993-278eca20f190",
    "Zoë".encode(): "0a7ec2bf-9e35-c12e-0427-020d3a63b392",
    b"\xff\x00": "9cfcdb9e-9201-688c-2dc8-69341d039614",
}


def test_c78_ids_are_golden() -> None:
    """I5, I10, C78: written down once; any machine, Python and library gives them, one by one and in columns."""
    key = line_key("goals", "s2026", "champion", "title.champion")
    assert {player: grant_id(key, player) for player in GOLDEN} == GOLDEN
    with GrantIds([b"another", key]) as ids:
        found = ids.of(pa.array(list(GOLDEN), pa.binary()), np.ones(len(GOLDEN), np.intp))
    assert found.to_pylist() == list(GOLDEN.values())
