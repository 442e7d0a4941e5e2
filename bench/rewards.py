"""How fast grants are computed and written, against reading the columns, bare COPY, and the usual pandas way.

    python -m bench.rewards --players 10000000 --rounds 3

One run, the same data: ids ``player_`` and nine digits, shuffled, three tiers and participation for all. Every
contestant runs in a process of its own, in turn, round after round; ratios are taken within a round. ``read`` decodes
the columns that computing needs and does nothing with them. ``copy`` sends rows that were encoded before into a table
with the primary key of the grants; ``grant`` reads the sealed grants, encodes them, and loads, verifies, indexes and
attaches a partition in one transaction. ``pandas`` computes the same grants with a frame and a list of ids.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from archive.parts import PartWriter, standings_schema
from bench.contestants import most_memory
from jobs.embedded import servers
from jobs.embedded.home import EmbeddedHome
from leaderboard.board import Board, Calendar
from leaderboard.season import Bounds
from ledger import copying, grants, leases, seasons
from ledger.database import Database
from ledger.grants import Loaded
from ledger.migrate import migrate
from rewards import compute
from rewards.plan import plan
from rewards.table import parse_table
from rewards.totals import Totals

TABLE = """
version = 1
[[rule]]
name = "champion"
rank = "1"
grant = { "title.champion" = 1, gems = 5000 }
[[rule]]
name = "top ten"
rank = "2-10"
grant = { gems = 1000 }
[[rule]]
name = "top percent"
percentile = "1"
grant = { gems = 100 }
[[rule]]
name = "took part"
all = true
grant = { gems = 10 }
"""
_SLICE = 200_000
_NEEDED = ["position", "rank", "player_id", "points"]


def main() -> None:
    """Make the standings, run the rounds, and print medians with their spread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--players", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="finale-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        _make(folder, given.players)
        with servers.session(EmbeddedHome.from_environ({**os.environ, "FINALE_HOME": str(folder / "home")})) as found:
            migrate(found.postgres_url)
            rounds = [
                {who: _run(who, folder, found.postgres_url, number) for who in CONTESTANTS}
                for number in range(given.rounds)
            ]
    told = {"players": given.players, "rounds": rounds}
    print(json.dumps(told, indent=2) if given.json else _shown(told))


def _make(folder: Path, players: int) -> None:
    """Write the standings, the grants that follow from them, and these as COPY takes them."""
    chance = np.random.default_rng(2026)
    numbers = chance.permutation(players)
    scores = np.sort(chance.integers(0, players * 4, players))[::-1]
    starts = np.concatenate([[True], scores[1:] != scores[:-1]])
    positions = np.arange(1, players + 1)
    ranks = np.maximum.accumulate(np.where(starts, positions, 0))
    schema = standings_schema()
    writer = PartWriter(schema)
    parts = []
    for at in range(0, players, _SLICE):
        here = slice(at, at + _SLICE)
        size = positions[here].size
        ids = pa.array([f"player_{number:09d}" for number in numbers[here].tolist()])
        nothing = pa.nulls(size, schema.field("reached_at").type)
        doubles = pa.array(scores[here].astype(np.float64))
        columns = [pa.array(positions[here]), pa.array(ranks[here]), ids, pa.array(scores[here]), nothing, doubles]
        parts += writer.add(pa.record_batch(columns, schema=schema))
    for part, data in [*parts, *writer.finish()]:
        (folder / f"standings-{part.name}").write_bytes(data)
    writer = PartWriter(compute.GRANTS_SCHEMA)
    with (folder / "grants.copy").open("wb") as copied:
        parts = []
        for batch in _computed(folder, Totals()):
            parts += writer.add(batch)
            for piece in copying.rows(batch, 1):
                copied.write(piece)
        for part, data in [*parts, *writer.finish()]:
            (folder / f"grants-{part.name}").write_bytes(data)


def _batches(folder: Path, kind: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    for path in sorted(folder.glob(f"{kind}-part-*.parquet")):
        yield from pq.ParquetFile(path).iter_batches(columns=columns)


def _computed(folder: Path, totals: Totals) -> Iterator[pa.RecordBatch]:
    planned = plan(_batches(folder, "standings", _NEEDED), parse_table(TABLE, "bench"))
    for batch in compute.grants(_batches(folder, "standings", _NEEDED), planned, "goals", "s2026"):
        totals.add(batch)
        yield batch


@dataclass(frozen=True)
class Run:
    """What a contestant is given: the folder of the data, PostgreSQL's URL, the number of the round."""

    folder: Path
    url: str
    number: int


def _read(run: Run) -> int:
    return sum(batch.num_rows for batch in _batches(run.folder, "standings", _NEEDED))


def _compute(run: Run) -> int:
    totals = Totals()
    for _ in _computed(run.folder, totals):
        pass
    return totals.rows


def _pandas(run: Run) -> int:
    import pandas as pd

    paths = sorted(run.folder.glob("standings-part-*.parquet"))
    frame = pd.concat([pd.read_parquet(path, columns=_NEEDED) for path in paths], ignore_index=True)
    line = len(frame) // 100
    tiers = [frame["rank"] == 1, frame["rank"] <= 10, frame["rank"] <= line]
    frame["rule"] = np.select(tiers, ["champion", "top ten", "top percent"], "took part")
    frame["amount"] = np.select(tiers, [5000, 1000, 100], 10)
    frame["item"] = "gems"
    titles = frame[frame["rank"] == 1].assign(item="title.champion", amount=1)
    found = pd.concat([titles, frame], ignore_index=True)
    space = uuid.uuid5(uuid.NAMESPACE_URL, "goals/s2026")
    found["grant_id"] = [
        str(uuid.uuid5(space, f"{player}/{rule}/{item}"))
        for player, rule, item in zip(found["player_id"], found["rule"], found["item"], strict=True)
    ]
    return len(found)


def _copy(run: Run) -> int:
    name = f"bare_{run.number}"
    with psycopg.connect(run.url) as connection, connection.cursor() as cursor:
        cursor.execute(
            f"create table {name} (season_id int not null, grant_id uuid not null, player_id bytea not null,"
            ' rule text collate "C" not null, item text collate "C" not null, amount bigint not null,'
            " position bigint not null, rank bigint not null, primary key (season_id, grant_id))"
        )
        with (
            cursor.copy(f"copy {name} from stdin (format binary)") as copy,
            (run.folder / "grants.copy").open("rb") as file,
        ):
            copy.write(copying.HEADER)
            while piece := file.read(2**20):
                copy.write(piece)
            copy.write(copying.TRAILER)
        return cursor.rowcount


def _grant(run: Run) -> int:
    starts = datetime(2000 + run.number, 1, 1, tzinfo=UTC)
    bounds = Bounds(starts, starts + timedelta(days=30), f"s{2000 + run.number}")
    board = Board(name="goals", ties="shared", calendar=Calendar(every="year"))
    with Database(run.url, statement_timeout=3_600) as database:
        seasons.create(database, board, bounds, database.now(), who="bench")
        season = seasons.find(database, "goals", bounds.id)
        lease = leases.acquire(database, season.key, season.name, "bench", timedelta(hours=2))
        sums = json.loads((run.folder / "expected.json").read_text())
        expected = Loaded(sums["rows"], sums["items"])
        return grants.load(database, lease, _batches(run.folder, "grants"), expected).rows


CONTESTANTS: dict[str, Callable[[Run], int]] = {
    "read": _read,
    "compute": _compute,
    "pandas": _pandas,
    "copy": _copy,
    "grant": _grant,
}


def _run(who: str, folder: Path, url: str, number: int) -> dict[str, float]:
    """Return what one contestant tells of one run, in a process of its own."""
    words = [sys.executable, "-m", "bench.rewards", "--contestant", who, str(folder), url, str(number)]
    said = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, float] = json.loads(said)
    return found


def contestant(who: str, folder: Path, url: str, number: int) -> None:
    """Run one contestant here and print rows, seconds and memory as JSON."""
    if who == "grant" and not (folder / "expected.json").exists():
        totals = Totals()
        for batch in _batches(folder, "grants"):
            totals.add(batch)
        (folder / "expected.json").write_text(json.dumps({"rows": totals.rows, "items": totals.items}))
    began = time.monotonic()
    rows = CONTESTANTS[who](Run(folder, url, number))
    seconds = time.monotonic() - began
    print(json.dumps({"rows": rows, "seconds": seconds, "memory": most_memory()}))


def _shown(told: dict[str, Any]) -> str:
    rounds = told["rounds"]
    lines = [f"{told['players']:,} players, {len(rounds)} rounds; median (least to most)", ""]
    lines.append(f"{'':10} {'seconds':>24} {'million rows/s':>16} {'memory, MB':>12}")
    for who in rounds[0]:
        seconds = [one[who]["seconds"] for one in rounds]
        speed = median(one[who]["rows"] / one[who]["seconds"] / 1e6 for one in rounds)
        memory = max(one[who]["memory"] for one in rounds) / 2**20
        lines.append(f"{who:10} {_spread(seconds):>24} {speed:16.2f} {memory:12.0f}")
    lines.append("")
    for mine, other in (("compute", "read"), ("compute", "pandas"), ("grant", "copy")):
        lines.append(f"{mine} / {other}: {_spread([one[mine]['seconds'] / one[other]['seconds'] for one in rounds])}")
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--contestant"]:
        contestant(sys.argv[2], Path(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
    else:
        main()
