"""The ways of taking a sorted set out of Redis that ``bench.archive`` compares, each run in a process of its own.

    python -m bench.contestants NAME SOCKET FOLDER DAYS

Prints JSON: rows, seconds, processor seconds of this process and of the servers, bytes of what was written to FOLDER,
and the most memory the process had, in bytes.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGE = 10_000  # of those that do not choose their own


def floor(path: Path, _folder: Path, _days: int) -> Callable[[], int]:
    """Read the bytes of every page and decode nothing; the line ends are counted to know when a page is over."""
    import numpy as np

    from bench.sorted_set import KEY, command

    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    connection.sendall(command(b"ZCARD", KEY.encode()))
    rows = int(connection.recv(64)[1:])
    buffer = bytearray(2**20)
    view = np.frombuffer(buffer, np.uint8)

    def run() -> int:
        for first in range(0, rows, PAGE):
            last = first + PAGE - 1
            connection.sendall(command(b"ZRANGE", KEY.encode(), b"%d" % first, b"%d" % last, b"REV", b"WITHSCORES"))
            missing = 4 * min(PAGE, rows - first) + 1
            while missing:
                missing -= int(np.count_nonzero(view[: connection.recv_into(buffer)] == 10))
        return rows

    return run


def redis_py(path: Path, _folder: Path, _days: int) -> Callable[[], int]:
    """redis-py with hiredis, every page decoded to tuples and dropped."""
    import redis

    from bench.sorted_set import KEY

    client = redis.Redis(unix_socket_path=str(path))
    rows = int(client.zcard(KEY))

    def run() -> int:
        return sum(
            len(client.zrange(KEY, first, first + PAGE - 1, desc=True, withscores=True))
            for first in range(0, rows, PAGE)
        )

    return run


def usual(path: Path, folder: Path, _days: int) -> Callable[[], int]:
    """The usual loop: redis-py's tuples gathered in a list, a pandas frame of it, one Parquet file."""
    import pandas as pd
    import redis

    from bench.sorted_set import KEY

    client = redis.Redis(unix_socket_path=str(path), decode_responses=True)
    total = int(client.zcard(KEY))

    def run() -> int:
        rows: list[Any] = []
        for first in range(0, total, PAGE):
            rows += client.zrange(KEY, first, first + PAGE - 1, desc=True, withscores=True)
        frame = pd.DataFrame(rows, columns=["player_id", "score"])
        frame.to_parquet(folder / "standings.parquet")
        return len(frame)

    return run


def drain(path: Path, _folder: Path, _days: int) -> Callable[[], int]:
    """Finale's drain alone, as before cleaning: WATCH, pages as columns, digest, proof; no Parquet."""
    import redis

    from archive.digest import StandingDigest
    from archive.drain import pages
    from archive.once import proof_factory
    from archive.proof import ProofConnection
    from bench.sorted_set import KEY

    client = redis.Redis(unix_socket_path=str(path))
    connect = proof_factory(client)

    def run() -> int:
        digest = StandingDigest()
        with ProofConnection(connect) as proof:
            proof.watch(KEY)
            for page in pages(proof, KEY, descending=True):
                digest.update(page.members, page.scores)
            proof.exec()
        return digest.rows

    return run


def finale(path: Path, folder: Path, days: int) -> Callable[[], int]:
    """Finale's snapshot: WATCH, drain, digest, points and times, ranks, proof, Parquet parts staged in a folder."""
    import redis

    from archive.once import proof_factory
    from archive.proof import ProofConnection
    from archive.snapshot import Source, take
    from archive.store import FolderStore
    from bench.sorted_set import BOARD, KEY, season

    client = redis.Redis(unix_socket_path=str(path))
    connect = proof_factory(client)
    store = FolderStore(folder)
    source = Source(BOARD, season(days), KEY)

    def run() -> int:
        taken = take(
            lambda _: ProofConnection(connect), source, store, attempt=lambda number: f"bench-{number}", tries=1
        )
        return taken.facts.rows

    return run


def sharded(layout: str) -> Callable[[Path, Path, int], Callable[[], int]]:
    """Finale's snapshot of a board over three nodes of a cluster, whose sockets are given with commas between."""

    def prepared(path: Path, folder: Path, days: int) -> Callable[[], int]:
        import redis

        from archive.once import proof_factory
        from archive.proof import ProofConnection
        from archive.snapshot import Source, take
        from archive.store import FolderStore
        from bench import cluster
        from bench.sorted_set import KEY, season

        connects = [proof_factory(redis.Redis(unix_socket_path=socket)) for socket in str(path).split(",")]
        store = FolderStore(folder)
        source = Source(cluster.board(layout), season(days), KEY, cluster.names(layout))

        def run() -> int:
            taken = take(
                lambda key: ProofConnection(connects[cluster.node_of(key)]),
                source,
                store,
                attempt=lambda number: f"bench-{number}",
                tries=1,
            )
            return taken.facts.rows

        return run

    return prepared


OF_A_CLUSTER = {"by player": sharded("by player"), "by score": sharded("by score")}
CONTESTANTS = {"floor": floor, "redis-py": redis_py, "usual loop": usual, "drain": drain, "Finale": finale}


def main() -> None:
    """Run one contestant."""
    name, path, folder, days = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    run = (CONTESTANTS | OF_A_CLUSTER)[name](path, folder, days)
    begun, used, served = time.perf_counter(), time.process_time(), served_seconds(path)
    rows = run()
    seconds, own = time.perf_counter() - begun, time.process_time() - used
    served = served_seconds(path) - served
    size = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
    told = {"rows": rows, "seconds": seconds, "own": own, "served": served, "bytes": size, "memory": most_memory()}
    print(json.dumps(told))


def served_seconds(path: Path) -> float:
    """Return the processor seconds that the servers have used so far, whose sockets have commas between."""
    import redis

    used = 0.0
    for one in str(path).split(","):
        with redis.Redis(unix_socket_path=one) as client:
            told = client.info("cpu")
            used += told["used_cpu_user"] + told["used_cpu_sys"]
    return used


def most_memory() -> int:
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found.group(1)) * 1024 if found else 0


if __name__ == "__main__":
    main()
