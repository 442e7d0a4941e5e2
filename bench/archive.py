"""How fast a sorted set becomes an archive, and what players feel of it, against bare reading and the usual loop.

    python -m bench.archive --rows 5000000 --rounds 5
    python -m bench.archive --rows 5000000 --rounds 5 --cluster --only floor,Finale

One run, one server, one socket, the same data: ids ``p`` and nine digits, shuffled, with packed scores. Every
contestant runs in a process of its own, in turn, round after round; ratios are taken within a round. The floor reads
the bytes of every page and decodes nothing: it is what the server can send. Then a player asks for ranks, first alone,
then during each contestant's work. With ``--cluster`` the same players are also on three nodes of a cluster, in twelve
shards by player and by score, and their snapshots are compared with that one server's floor. The last two columns are
processor time a row, of all servers and of the contestant: their sum, over the cores, is the least that a row can take.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any

import redis

from bench import cluster, sorted_set
from bench.contestants import CONTESTANTS, OF_A_CLUSTER

FELT = ("usual loop", "Finale")  # what a player is asked to bear
_IDLE_SECONDS = 3.0


def main() -> None:
    """Fill a server, run the rounds, and print medians with their spread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--days", type=int, default=30, help="length of the season in which the scores were reached")
    parser.add_argument("--only", default=",".join(CONTESTANTS), help="contestants, with commas between")
    parser.add_argument("--server", type=Path, help="a redis-server or valkey-server; default: the one embedded")
    parser.add_argument("--cluster", action="store_true", help="also a board with shards on three nodes")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    names = given.only.split(",")
    with sorted_set.server(given.server) as path:
        with redis.Redis(unix_socket_path=str(path)) as client:
            about = client.info("server")
        sorted_set.fill(path, given.rows, given.days)
        with _three_nodes(given) if given.cluster else nullcontext({}) as beside:
            paths = dict.fromkeys(names, path) | beside
            rounds = [{name: _run(name, at, given.days) for name, at in paths.items()} for _ in range(given.rounds)]
        felt = {"nothing": _ranks(path, given.rows, None)}
        felt |= {name: _ranks(path, given.rows, _start(name, path, given.days)) for name in FELT if name in names}
    version = f"Valkey {about['valkey_version']}" if "valkey_version" in about else f"Redis {about['redis_version']}"
    found = {"server": version, "rows": given.rows, "days": given.days, "rounds": rounds, "ranks": felt}
    print(json.dumps(found, indent=2) if given.json else _table(found))


@contextmanager
def _three_nodes(given: argparse.Namespace) -> Iterator[dict[str, Path]]:
    """Fill a cluster; yield where each contestant of it finds its nodes."""
    with cluster.nodes(given.server) as sockets:
        cluster.fill(sockets, given.rows, given.days)
        yield dict.fromkeys(OF_A_CLUSTER, Path(",".join(map(str, sockets))))


def _start(name: str, path: Path, days: int) -> tuple[subprocess.Popen[str], Any]:
    folder = tempfile.TemporaryDirectory(prefix="finale-bench-")
    words = [sys.executable, "-m", "bench.contestants", name, str(path), folder.name, str(days)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True), folder


def _run(name: str, path: Path, days: int) -> dict[str, float]:
    """Return what the contestant ``name`` tells of one run."""
    process, folder = _start(name, path, days)
    with folder:
        said, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{name} ended with {process.returncode}")
    found: dict[str, float] = json.loads(said)
    return found


def _ranks(path: Path, rows: int, beside: tuple[subprocess.Popen[str], Any] | None) -> dict[str, float]:
    """Return how long ZREVRANK takes a player, in milliseconds, while ``beside`` runs, or for some seconds alone."""
    words = [sys.executable, "-m", "bench.player", str(path), str(rows)]
    words += [str(_IDLE_SECONDS)] if beside is None else ["while", str(beside[0].pid)]
    said = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    if beside is not None:
        beside[0].communicate()
        beside[1].cleanup()
    found: dict[str, float] = json.loads(said)
    return found


def _table(found: dict[str, Any]) -> str:
    rounds = found["rounds"]
    lines = [f"{found['server']}, {found['rows']:,} rows, {len(rounds)} rounds; median (least to most)", ""]
    titles = ("million rows/s", 22), ("of the floor", 22), ("memory, MB", 12), ("bytes a row", 12)
    titles += (("server, ns", 11), ("own, ns", 8))
    lines.append(" " * 12 + "".join(f" {title:>{width}}" for title, width in titles))
    for name in rounds[0]:
        speeds = [one[name]["rows"] / one[name]["seconds"] / 1e6 for one in rounds]
        ratios = [_ratio(one, name, "floor") for one in rounds]
        memory = max(one[name]["memory"] for one in rounds) / 2**20
        size = rounds[-1][name]["bytes"] / rounds[-1][name]["rows"]
        told = f"{size:12.2f}" if size else " " * 12
        served, own = (median(one[name][who] / one[name]["rows"] * 1e9 for one in rounds) for who in ("served", "own"))
        lines.append(
            f"{name:12} {_spread(speeds):>22} {_spread(ratios):>22} {memory:12.0f} {told} {served:11.0f} {own:8.0f}"
        )
    if {"Finale", "usual loop"} <= rounds[0].keys():
        lines += ["", f"Finale / usual loop: {_spread([_ratio(one, 'Finale', 'usual loop') for one in rounds])}"]
    lines += ["", f"{'ZREVRANK beside':18} {'p50, ms':>9} {'p99, ms':>9} {'most, ms':>9} {'asked':>9}"]
    lines += [
        f"{name:18} {felt['p50']:9.2f} {felt['p99']:9.2f} {felt['most']:9.2f} {felt['asked']:9,.0f}"
        for name, felt in found["ranks"].items()
    ]
    return "\n".join(lines)


def _ratio(one: dict[str, dict[str, float]], name: str, to: str) -> float:
    """Return how many times as fast as ``to`` the contestant ``name`` was in one round; nan without ``to``."""
    return one[to]["seconds"] / one[name]["seconds"] if to in one else float("nan")


def _spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()
