"""A player who asks for ranks again and again, and notes how long each answer takes.

    python -m bench.player SOCKET ROWS SECONDS
    python -m bench.player SOCKET ROWS while PID

Prints JSON: the median, the 99th percentile and the most, in milliseconds, and how many were asked.
"""

from __future__ import annotations

import json
import random
import socket
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.sorted_set import KEY, command, member

_EVERY = 0.002  # seconds between questions


def main() -> None:
    """Ask until the time is over or the process has ended."""
    path, rows = sys.argv[1], int(sys.argv[2])
    until = _ended(int(sys.argv[4])) if sys.argv[3] == "while" else _passed(float(sys.argv[3]))
    taken = ask(path, rows, until)
    percentiles = statistics.quantiles(taken, n=100)
    print(json.dumps({"p50": percentiles[49], "p99": percentiles[98], "most": max(taken), "asked": len(taken)}))


def _ended(pid: int) -> Callable[[], bool]:
    process = Path(f"/proc/{pid}/stat")
    return lambda: not process.exists() or ") Z " in process.read_text()


def _passed(seconds: float) -> Callable[[], bool]:
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() > end


def ask(path: str, rows: int, until: Callable[[], bool]) -> list[float]:
    """Return the milliseconds of each answer."""
    chance = random.Random(1)
    taken = []
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        while not until():
            question = command(b"ZREVRANK", KEY.encode(), member(chance.randrange(rows)))
            begun = time.perf_counter()
            connection.sendall(question)
            connection.recv(64)
            taken.append((time.perf_counter() - begun) * 1e3)
            time.sleep(_EVERY)
    return taken


if __name__ == "__main__":
    main()
