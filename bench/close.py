"""How long a season takes from its results to its grants, against bare COPY of the rows and a bare read of the key.

    python -m bench.close --players 200000 --rounds 3

One run, one pair of embedded servers, the same data. The floors do none of Finale's work: they say what PostgreSQL
needs to store the rows and what Redis needs to send the key.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import redis

from config.settings import Settings
from jobs import output
from jobs.demo import season as made_up
from jobs.results.taking import Taken, take_chunk
from jobs.seasons import closing
from jobs.wiring import Outside, outside
from leaderboard.board import Board
from leaderboard.states import Step
from ledger.result_files import Chunk
from rewards.table import parse_table

TABLE = """
version = 1
ties = "share"
match = "first"
[[rule]]
name = "top hundred"
rank = "1-100"
grant = { gems = 100 }
[[rule]]
name = "took part"
all = true
grant = { gems = 10 }
"""


def main() -> None:
    """Run the rounds and print medians with their spread."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--players", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="finale-bench-") as folder:
        Path(folder).chmod(0o755)
        home = Path(folder) / "home"
        settings = _settings(home, given.rounds)
        with outside(settings, {**os.environ, "FINALE_HOME": str(home)}) as wired:
            rounds = [_round(wired, number, given.players) for number in range(given.rounds)]
    _report(rounds, given.players, given.json)


def _settings(home: Path, rounds: int) -> Settings:
    start = made_up.week_before(datetime.now(UTC)) - timedelta(days=10)
    names = [f"round{number}" for number in range(rounds)]
    boards = {
        name: Board.model_validate(
            {
                "name": name,
                "calendar": {"seasons": [{"id": "once", "starts_at": start, "ends_at": start + made_up.LENGTH}]},
                "grace": "0s",
                "rewards": "built in",
            }
        )
        for name in names
    }
    table = parse_table(TABLE, "the bench's reward table")
    return Settings(boards=boards, tables=dict.fromkeys(names, table), home=home)


def _round(wired: Outside, number: int, players: int) -> dict[str, float]:
    board = wired.boards[f"round{number}"]
    start = board.calendar.seasons[0].starts_at
    chunks = list(made_up.bursts(players, number, start))
    found = {"bare COPY": _bare_copy(wired, chunks)}
    begun = time.perf_counter()
    taken = Taken()
    for chunk in chunks:
        take_chunk(wired, chunk, board.name, [board], taken, origin="bench")
    found["results taken"] = time.perf_counter() - begun
    season = closing.find(wired, board.name, "once")
    closing.close(wired, season, who="bench", observer=output.Watching(quiet=True, logs=False), until=Step.FREEZE)
    found["bare read of the key"] = _bare_read(wired.redis, season.live_key)
    run = closing.close(wired, season, who="bench", observer=output.Watching(quiet=True, logs=False))
    found |= {str(step.step): step.seconds for step in run.steps}
    return found


def _bare_copy(wired: Outside, chunks: list[Chunk]) -> float:
    begun = time.perf_counter()
    with wired.database.transaction(), wired.database.cursor() as cursor:
        cursor.execute(
            "create temp table bare (match_id text, player_id bytea, points bigint, played_at timestamptz)"
            " on commit drop"
        )
        with cursor.copy("copy bare from stdin") as copy:
            for row in _rows(chunks):
                copy.write_row(row)
    return time.perf_counter() - begun


def _rows(chunks: list[Chunk]) -> Iterator[tuple[object, ...]]:
    for chunk in chunks:
        for result in chunk.results:
            yield result[1:5]


def _bare_read(client: redis.Redis, key: str, page: int = 10_000) -> float:
    """Return the seconds that the server takes to send every page, when nothing is decoded."""
    total = client.zcard(key)
    connection = client.connection_pool.get_connection()
    try:
        begun = time.perf_counter()
        for first in range(0, total, page):
            connection.send_command("ZRANGE", key, first, first + page - 1, "REV", "WITHSCORES")
            _read_reply(connection, min(page, total - first))
        return time.perf_counter() - begun
    finally:
        connection.disconnect()


def _read_reply(connection: redis.Connection, rows: int) -> None:
    """Read one reply off the socket: its lines are counted, four a row after the header."""
    sock = connection._sock
    lines, header = rows * 4 + 1, None
    while lines > 0:
        data = sock.recv(1 << 20)
        if header is None:
            header = data[:1]
            if int(data[1 : data.index(b"\r")]) == rows:  # RESP3 nests the pairs: a header each, scores in one line
                lines = rows * 4 + 1
        lines -= data.count(b"\n")


def _report(rounds: list[dict[str, float]], players: int, as_json: bool) -> None:
    names = list(rounds[0])
    medians = {name: statistics.median(one[name] for one in rounds) for name in names}
    spread = {name: (min(one[name] for one in rounds), max(one[name] for one in rounds)) for name in names}
    ratios = {
        "results taken / bare COPY": medians["results taken"] / medians["bare COPY"],
        "snapshot / bare read of the key": medians["snapshot"] / medians["bare read of the key"],
    }
    if as_json:
        print(json.dumps({"players": players, "seconds": medians, "spread": spread, "ratios": ratios}, indent=2))
        return
    print(f"{players:,} players, {players * 3:,} results, {len(rounds)} rounds; seconds, median (least to most)")
    for name in names:
        low, high = spread[name]
        print(f"  {name:<24} {medians[name]:8.3f}  ({low:.3f} to {high:.3f})")
    for name, ratio in ratios.items():
        print(f"  {name:<40} {ratio:6.2f}")


if __name__ == "__main__":
    main()
