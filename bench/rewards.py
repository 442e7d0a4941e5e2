"""How fast grants are computed and written, against reading the columns, bare COPY, and the usual pandas way.

    python -m bench.rewards --players 10000000 --data /tmp/ten --rounds 0      # the data alone, kept
    python -m bench.rewards --players 10000000 --data /tmp/ten --rounds 3 --only read,compute

The same data: ids ``player_`` and nine digits, shuffled, three tiers and participation for all. Every
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
from psycopg import sql

from archive.parts import PartWriter, standings_schema
from bench.contestants import most_memory
from bench.folders import data_folder
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
    """Make the standings, unless they are kept from before, run the rounds, and print medians with their spread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--players", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(CONTESTANTS), help="contestants, with commas between")
    parser.add_argument("--data", type=Path, help="a folder in which the data are kept for the next call")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with data_folder(given.data) as folder:
        _make(folder, given.players)
        with servers.session(EmbeddedHome.from_environ({**os.environ, "FINALE_HOME": str(folder / "home")})) as found:
            migrate(found.postgres_url)
            rounds = []
            for _ in range(given.rounds):
                rounds.append({who: _run(who, folder, found.postgres_url) for who in given.only.split(",")})
                _forget(found.postgres_url)
    if not rounds:
        return
    told = {"players": given.players, "rounds": rounds}
    print(json.dumps(told, indent=2) if given.json else _shown(told))


def _make(folder: Path, players: int) -> None:
    """Write the standings, the grants that follow from them, these as COPY takes them, and last what they add up to.

    What ``folder`` has of an earlier call is taken as it is; raises SystemExit if that was of other players.
    """
    done = folder / "expected.json"
    if done.exists():
        if (there := json.loads(done.read_text())["players"]) != players:
            raise SystemExit(f"{folder} has data of {there:,} players")
        return
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
    totals = Totals()
    with (folder / "grants.copy").open("wb") as copied:
        parts = []
        for batch in _computed(folder, totals):
            parts += writer.add(batch)
            for piece in copying.rows(batch, 1):
                copied.write(piece)
        for part, data in [*parts, *writer.finish()]:
            (folder / f"grants-{part.name}").write_bytes(data)
    done.write_text(json.dumps({"players": players, "rows": totals.rows, "items": totals.items}))


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
    """What a contestant is given: the folder of the data and PostgreSQL's URL."""

    folder: Path
    url: str


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
    with psycopg.connect(run.url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "create table public.bare (season_id int not null, grant_id uuid not null, player_id bytea not null,"
            ' rule text collate "C" not null, item text collate "C" not null, amount bigint not null,'
            " position bigint not null, rank bigint not null, primary key (season_id, grant_id))"
        )
        with (
            cursor.copy("copy public.bare from stdin (format binary)") as copy,
            (run.folder / "grants.copy").open("rb") as file,
        ):
            copy.write(copying.HEADER)
            while piece := file.read(2**20):
                copy.write(piece)
            copy.write(copying.TRAILER)
        return cursor.rowcount


def _grant(run: Run) -> int:
    board = Board(name="goals", ties="shared", calendar=Calendar(every="year"))
    with Database(run.url, statement_timeout=3_600) as database:
        year = 2000 + len(seasons.of_board(database, "goals"))
        starts = datetime(year, 1, 1, tzinfo=UTC)
        bounds = Bounds(starts, starts + timedelta(days=30), f"s{year}")
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


def _forget(url: str) -> None:
    """Drop what a round has written."""
    with psycopg.connect(url) as connection:
        connection.execute("drop table if exists public.bare")
        written = connection.execute(
            "select inhrelid::regclass::text from pg_inherits where inhparent = %s::regclass", ["finale.grants"]
        )
        for (name,) in written.fetchall():
            connection.execute(sql.SQL("drop table {}").format(sql.SQL(name)))


def _run(who: str, folder: Path, url: str) -> dict[str, float]:
    """Return what one contestant tells of one run, in a process of its own."""
    words = [sys.executable, "-m", "bench.rewards", "--contestant", who, str(folder), url]
    said = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    found: dict[str, float] = json.loads(said)
    return found


def contestant(who: str, folder: Path, url: str) -> None:
    """Run one contestant here and print rows, seconds and memory as JSON."""
    began = time.monotonic()
    rows = CONTESTANTS[who](Run(folder, url))
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
    pairs = (("compute", "read"), ("compute", "pandas"), ("grant", "copy"))
    for mine, other in [pair for pair in pairs if rounds[0].keys() >= set(pair)]:
        lines.append(f"{mine} / {other}: {_spread([one[mine]['seconds'] / one[other]['seconds'] for one in rounds])}")
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--contestant"]:
        contestant(sys.argv[2], Path(sys.argv[3]), sys.argv[4])
    else:
        main()
