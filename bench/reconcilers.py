"""The contestants of bench.reconcile, each run as ``python -m bench.reconcilers NAME DATA``, and their data."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa

from archive.fetch import fetch_part, open_part
from archive.parts import Part, PartWriter, standings_schema
from archive.store import open_store
from bench.contestants import most_memory
from jobs.embedded.binaries import POSTGRES_INSTALL, POSTGRES_PACKAGE, package_folder
from leaderboard.codec import to_microseconds
from ledger import totals
from ledger.database import Database, conninfo
from reconcile.buckets import compared_by_buckets
from reconcile.compare import Rule, Unit, compared
from reconcile.report import files, told

KEY = 1
START = datetime(2026, 1, 1, tzinfo=UTC)
UNIT = Unit(to_microseconds(START), 60_000_000)
_BATCH = 200_000
_QUERY = f"select player_id, points, reached_at from finale.player_total where season_id = {KEY}"


@dataclass(frozen=True)
class Prepared:
    """Where the data are, and how many players were made to differ."""

    url: str
    folder: str
    table: str  #: the standings as reladiff reads them
    parts: list[dict[str, Any]]
    drift: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def prepare(database: Database, folder: Path, players: int, share: float) -> Prepared:
    """Fill the ledger, write the standings as parts, and the same standings as a table for reladiff.

    What ``folder`` has of an earlier call is taken as it is; raises SystemExit if that was of other players.
    """
    step = round(1 / share) if share else players + 1
    table = f"public.standing_{step}"
    mine = folder / f"differs-{share}"
    known = mine / "parts.json"
    if not known.exists():
        _fill(database, players, table, step)
        shutil.rmtree(mine, ignore_errors=True)
        mine.mkdir()
        known.write_text(json.dumps(_parts(mine, players, step)))
    if (there := totals.summed(database, KEY).players) != players:
        raise SystemExit(f"{folder} has data of {there:,} players")
    return Prepared(database.url, str(mine), table, json.loads(known.read_text()), players // step)


def _fill(database: Database, players: int, table: str, step: int) -> None:
    if not totals.summed(database, KEY).players:
        database.run(
            b"insert into finale.player_total (season_id, player_id, points, reached_at, matches, version)"
            b" select %(key)s, ('p' || lpad(n::text, 9, '0'))::bytea, (n::bigint * 7919) %% 100000,"
            b" %(start)s::timestamptz + make_interval(mins => ((n::bigint * 104729) %% 40000)::int), 1, 1"
            b" from generate_series(0, %(players)s - 1) n",
            {"key": KEY, "start": START, "players": players},
        )
        database.run(b"vacuum analyze finale.player_total")
    database.run(f"drop table if exists {table}".encode())
    database.run(
        f"create table {table} as select player_id,"
        " points + (substr(convert_from(player_id, 'UTF8'), 2)::bigint %% %(step)s = %(step)s - 1)::int as points,"
        " reached_at from finale.player_total".encode(),
        {"step": step},
    )
    database.run(f"alter table {table} add primary key (player_id)".encode())
    database.run(f"vacuum analyze {table}".encode())


def _parts(folder: Path, players: int, step: int) -> list[dict[str, Any]]:
    (folder / "store").mkdir()
    store = open_store((folder / "store").as_uri(), {})
    writer = PartWriter(standings_schema())
    parts = []
    shuffled = np.random.default_rng(2026).permutation(players)  # a board is in no order of the ids
    for start in range(0, players, _BATCH):
        for part, data in writer.add(_standings(shuffled[start : start + _BATCH], start, step)):
            store.put_new(f"staging/b/s/one/{part.name}", data)
            parts.append(part.to_json())
    for part, data in writer.finish():
        store.put_new(f"staging/b/s/one/{part.name}", data)
        parts.append(part.to_json())
    return parts


def _standings(numbers: Any, start: int, step: int) -> pa.RecordBatch:
    points = (numbers * 7919) % 100_000 + (numbers % step == step - 1)
    minutes = (numbers * 104_729) % 40_000
    times = to_microseconds(START) + minutes * 60_000_000
    positions = pa.array(np.arange(start + 1, start + 1 + numbers.size))
    return pa.record_batch(
        [
            positions,
            positions,
            pa.array([f"p{number:09d}" for number in numbers.tolist()]),
            pa.array(points),
            pa.array(times).cast(pa.timestamp("us", tz="UTC")),
            pa.array(points.astype(np.float64) * 2**24),
        ],
        schema=standings_schema(),
    )


def _rows(made: Prepared) -> Iterator[pa.RecordBatch]:
    store = open_store((Path(made.folder) / "store").as_uri(), {})
    for value in made.parts:
        part = Part.from_json(value)
        file = open_part(part.name, part, fetch_part(store, "staging/b/s/one", part))
        yield from file.iter_batches(columns=["player_id", "points", "reached_at"])


def floor(made: Prepared) -> int:
    """Drain the totals by COPY with psql, which drops the rows as they come."""
    folder = package_folder(POSTGRES_PACKAGE)
    assert folder is not None, "the server whose data these are came with psql"
    psql = folder / POSTGRES_INSTALL / "bin" / "psql"
    words = [psql, made.url, "--no-psqlrc", "--command", f"copy ({_QUERY}) to stdout (format binary)"]
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    return -1


def drained(made: Prepared) -> int:
    """Drain the totals by COPY in Python, row by row as psycopg gives them, and drop them."""
    settings = conninfo(made.url, connect_timeout=10, statement_timeout=0)
    statement = f"copy ({_QUERY}) to stdout (format binary)".encode()
    with psycopg.connect(settings) as connection, connection.cursor() as cursor, cursor.copy(statement) as copy:
        for _ in copy:
            pass
    return -1


def finale(made: Prepared) -> int:
    """Compare as the reconcile step does."""
    folder = Path(made.folder) / "work"
    folder.mkdir(exist_ok=True)
    with totals.reader(made.url, KEY) as reader, compared(_rows(made), reader, Rule(UNIT, folder=folder)) as found:
        return found.counts.drift


def reported(made: Prepared) -> int:
    """Compare, hash the difference, and write every drifting player into the Parquet files of a report."""
    folder = Path(made.folder) / "work"
    folder.mkdir(exist_ok=True)
    with totals.reader(made.url, KEY) as reader, compared(_rows(made), reader, Rule(UNIT, folder=folder)) as found:
        found.difference("b/s")
        for data in files(found.batches(), told([]), 500_000):
            (folder / "report.parquet").write_bytes(data)
        return found.counts.drift


def buckets(made: Prepared) -> int:
    """Compare counts and checksums of buckets first."""
    folder = Path(made.folder) / "work"
    folder.mkdir(exist_ok=True)
    with (
        totals.in_buckets(made.url, KEY, (UNIT.epoch, UNIT.size)) as ledger,
        compared_by_buckets(lambda: _rows(made), ledger, Rule(UNIT, folder=folder)) as found,
    ):
        return found.counts.drift


def pandas(made: Prepared) -> int:
    """Both sides into data frames, merged on the player, as it is usually done."""
    import pandas as pd

    with psycopg.connect(conninfo(made.url, connect_timeout=10, statement_timeout=0)) as connection:
        rows = connection.execute(_QUERY.encode(), binary=True).fetchall()
    ledger = pd.DataFrame(rows, columns=["player_id", "points", "reached_at"])
    ledger["player_id"] = ledger["player_id"].map(lambda value: bytes(value).decode())
    standings = pa.Table.from_batches(list(_rows(made))).to_pandas()
    merged = standings.merge(ledger, on="player_id", how="outer", indicator=True, suffixes=("", "_ledger"))
    differs = (
        (merged["_merge"] != "both")
        | (merged["points"] != merged["points_ledger"])
        | (merged["reached_at"] != merged["reached_at_ledger"])
    )
    return int(differs.sum())


def reladiff(made: Prepared) -> int:
    """Two tables of the same server, by checksums of key ranges."""
    try:
        import psycopg2  # noqa: F401 - reladiff's own driver
        from reladiff import connect_to_table, diff_tables
    except ImportError as error:
        raise SystemExit(f"{error.name} is missing: pip install 'finale[bench]'") from None

    parts = psycopg.conninfo.conninfo_to_dict(made.url)
    url = {
        "driver": "postgresql",
        **{name: parts[name] for name in ("host", "port", "user", "dbname") if name in parts},
    }
    with psycopg.connect(made.url, autocommit=True) as connection:
        connection.execute("drop view if exists public.of_ledger, public.of_redis")
        for view, table in (
            ("of_ledger", f"finale.player_total where season_id = {KEY}"),
            ("of_redis", made.table),
        ):
            connection.execute(
                f"create view public.{view} as select convert_from(player_id, 'UTF8') as player_id, points, reached_at"
                f" from {table}".encode()
            )
    one, other = (
        connect_to_table(url, view, "player_id", extra_columns=("points", "reached_at"))
        for view in ("of_ledger", "of_redis")
    )
    return len({row[1][0] for row in diff_tables(one, other)})


CONTESTANTS = {one.__name__: one for one in (floor, drained, finale, reported, buckets, pandas, reladiff)}


def main() -> None:
    """Run one contestant; tell its seconds, those of processors, peak memory in bytes, and the differences found."""
    made = Prepared(**json.loads(sys.argv[2]))
    begun, worked = time.perf_counter(), time.process_time()
    drift = CONTESTANTS[sys.argv[1]](made)
    seconds, processor = time.perf_counter() - begun, time.process_time() - worked
    print(json.dumps({"seconds": seconds, "processor": processor, "memory": most_memory(), "drift": drift}))


if __name__ == "__main__":
    main()
