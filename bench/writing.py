"""How fast results reach PostgreSQL and Redis, in batches and one by one, and how soon the board shows them.

    python -m bench.writing --results 500000 --rounds 3

One run, one pair of embedded servers. The floor of batches is COPY of the same rows into a table with the same primary
key, then one ZADD a row, pipelined; that of single results an INSERT, a COMMIT and a ZADD each. Neither does any of
Finale's work: no seasons, no totals, no fences. Freshness is the time from a batch's commit until the board has it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import redis

from config.settings import Settings
from jobs import identity
from jobs.boards.projection import apply_pending
from jobs.results.taking import Taken, take_chunk, take_chunks
from jobs.wiring import Outside, outside
from leaderboard.board import Board
from ledger import seasons
from ledger.database import Database
from ledger.result_files import Chunk, Result
from ledger.results import record

STARTS = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = timedelta(days=28)
BATCH = 50_000  #: as [runner] batch_rows has it
_PIPELINED = 1_000
_EVERY = 0.1  # seconds between batches while freshness is watched


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is written: results in batches and alone, of how many players; and how freshness is watched."""

    results: int
    players: int
    single: int
    rate: int  #: results a second
    seconds: int


def main() -> None:
    """Run the rounds and print medians with their spread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=int, default=200_000)
    parser.add_argument("--players", type=int, default=100_000)
    parser.add_argument("--single", type=int, default=1_000)
    parser.add_argument("--rate", type=int, default=6_000)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    sizes = Sizes(given.results, given.players, given.single, given.rate, given.seconds)
    found = measured(sizes, given.rounds)
    print(json.dumps(found, indent=2) if given.json else table(found))


def measured(sizes: Sizes, rounds: int) -> list[dict[str, float]]:
    """Return the figures of each round: results a second, and seconds until they were visible."""
    with tempfile.TemporaryDirectory(prefix="finale-bench-") as folder:
        Path(folder).chmod(0o755)
        home = Path(folder) / "home"
        with outside(Settings(home=home), {**os.environ, "FINALE_HOME": str(home)}) as wired:
            return [_round(wired, number, sizes) for number in range(rounds)]


def table(rounds: list[dict[str, float]]) -> str:
    """Return medians with their spread, a line a figure."""
    lines = [f"{len(rounds)} rounds; median (least to most)"]
    for name in rounds[0]:
        values = [one[name] for one in rounds]
        digits = 3 if max(values) < 100 else 0
        low, middle, high = (f"{value:,.{digits}f}" for value in (min(values), statistics.median(values), max(values)))
        lines.append(f"  {name:<48} {middle:>12}  ({low} to {high})")
    return "\n".join(lines)


def _round(wired: Outside, number: int, sizes: Sizes) -> dict[str, float]:
    prepared = list(_batches(sizes.results, sizes.players, number))
    floor = _timed(lambda: _bare(wired, f"bare{number}", prepared))
    name = f"recorded{number}"
    alone = _timed(lambda: [_record(wired, name, rows) for rows in prepared])
    name = f"both{number}"
    taken = Taken()
    both = _timed(lambda: _take_all(wired, name, prepared, taken))
    assert taken.recorded.new == sizes.results and taken.unapplied is None, taken
    singles = [[row] for rows in _batches(sizes.single, sizes.players, number) for row in rows]
    bare_single = _timed(lambda: [_bare_single(wired, f"bare{number}", rows[0]) for rows in singles])
    name = f"single{number}"
    _take(wired, name, [Result(1, "first", b"first", 1, STARTS)], Taken())
    single = _timed(lambda: [_take(wired, name, rows, Taken()) for rows in singles])
    return {
        "floor of batches, results/s": sizes.results / floor,
        "recorded in batches, results/s": sizes.results / alone,
        "recorded and applied in batches, results/s": sizes.results / both,
        "recorded and applied / floor": floor / both,
        "floor of single results, results/s": sizes.single / bare_single,
        "single results recorded and applied, results/s": sizes.single / single,
        **_freshness(wired, f"fresh{number}", sizes),
    }


def board(name: str) -> Board:
    """Return a packed board of its own source, whose one season lies around all results."""
    season = {"id": "once", "starts_at": STARTS, "ends_at": STARTS + timedelta(days=180)}
    return Board.model_validate({"name": name, "calendar": {"seasons": [season]}})


def _batches(results: int, players: int, seed: int, size: int = BATCH) -> Iterator[list[Result]]:
    """Yield results of random players in the order of their times, as a stream has them."""
    chance = random.Random(seed)
    step = SPAN / max(results, 1)
    for first in range(0, results, size):
        yield [
            Result(
                number + 2,
                f"m{number:09d}",
                b"player_%09d" % chance.randrange(players),
                chance.randint(1, 50),
                STARTS + step * number,
            )
            for number in range(first, min(first + size, results))
        ]


def _record(wired: Outside, name: str, rows: list[Result]) -> None:
    record(wired.database, name, [board(name)], Chunk(rows), origin="bench")


def _take(wired: Outside, name: str, rows: list[Result], taken: Taken) -> None:
    take_chunk(wired, Chunk(rows), name, [board(name)], taken, origin="bench")


def _take_all(wired: Outside, name: str, prepared: list[list[Result]], taken: Taken) -> None:
    take_chunks(wired, map(Chunk, prepared), name, [board(name)], taken, "bench", lambda _: None)


def _bare(wired: Outside, name: str, prepared: list[list[Result]]) -> None:
    wired.database.run(
        f'create table {name} (source_id int, match_id text collate "C", player_id bytea, points bigint,'
        " played_at timestamptz, primary key (source_id, match_id, player_id))".encode()
    )
    for rows in prepared:
        text = f"copy {name} from stdin".encode()
        with wired.database.transaction(), wired.database.cursor() as cursor, cursor.copy(text) as copy:
            for row in rows:
                copy.write_row((1, *row[1:5]))
        for first in range(0, len(rows), _PIPELINED):
            pipe = wired.redis.pipeline(transaction=False)
            for row in rows[first : first + _PIPELINED]:
                pipe.zadd(name, {row.player_id: row.points})
            pipe.execute()


def _bare_single(wired: Outside, name: str, row: Result) -> None:
    with wired.database.transaction(), wired.database.cursor() as cursor:
        cursor.execute(f"insert into {name} values (2, %s, %s, %s, %s)".encode(), row[1:5])
    wired.redis.zadd(name, {row.player_id: row.points})


def _timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _freshness(wired: Outside, name: str, sizes: Sizes) -> dict[str, float]:
    """Write at the rate while another thread applies and this one looks; return how long results took to be seen.

    The last of each batch is looked for: the board has it when its player is there, who plays once.
    """
    size = max(1, int(sizes.rate * _EVERY))
    count = size * int(sizes.seconds / _EVERY)
    one = board(name)
    _take(wired, name, [Result(1, "first", b"first", 1, STARTS)], Taken())
    (season,) = seasons.of_board(wired.database, name, one)
    committed: dict[bytes, float] = {}
    seen: dict[bytes, float] = {}
    done = threading.Event()

    def write() -> None:
        with Database(wired.database.url) as own:
            due = time.perf_counter()
            for number, rows in enumerate(_batches(count, sizes.players, 7, size)):
                marker = b"marker_%06d" % number
                rows.append(rows[-1]._replace(match_id=f"marker{number}", player_id=marker))
                record(own, name, [one], Chunk(rows), origin="bench")
                committed[marker] = time.perf_counter()
                due += _EVERY
                time.sleep(max(0.0, due - time.perf_counter()))
        done.set()

    def apply() -> None:
        with Database(wired.database.url) as own, _client(wired) as client:
            mine = replace(wired, database=own, redis=client)
            while not done.is_set() or len(seen) < len(committed):
                if not apply_pending(mine, season, identity.holder()).players:
                    time.sleep(0.01)

    begun = time.perf_counter()
    end = begun + 10 * sizes.seconds + 60
    threads = [threading.Thread(target=work, daemon=True) for work in (write, apply)]
    for thread in threads:
        thread.start()
    with _client(wired) as client:
        while (not done.is_set() or len(seen) < len(committed)) and time.perf_counter() < end:
            waiting = [marker for marker in list(committed) if marker not in seen]
            found = client.zmscore(season.live_key, waiting) if waiting else []
            now = time.perf_counter()
            seen.update({marker: now for marker, score in zip(waiting, found, strict=True) if score is not None})
            time.sleep(0.002)
    for thread in threads:
        thread.join(60)
    took = sorted(seen[marker] - committed[marker] for marker in seen)
    return {
        "visible after the commit, p50, s": took[len(took) // 2],
        "visible after the commit, p99, s": took[min(len(took) - 1, len(took) * 99 // 100)],
        "written while watched, results/s": (count + len(committed)) / (max(committed.values()) - begun),
    }


def _client(wired: Outside) -> redis.Redis:
    return redis.Redis(connection_pool=redis.ConnectionPool(**_connection(wired.redis)))


def _connection(client: Any) -> dict[str, Any]:
    pool = client.connection_pool
    return {"connection_class": pool.connection_class, **pool.connection_kwargs}


if __name__ == "__main__":
    main()
