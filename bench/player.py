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
    if sys.argv[3] == "while":
        process = Path(f"/proc/{sys.argv[4]}/stat")
        goes_on = lambda: process.exists() and ") Z " not in process.read_text()  # noqa: E731  # one of two conditions
    else:
        end = time.perf_counter() + float(sys.argv[3])
        goes_on = lambda: time.perf_counter() < end  # noqa: E731
    taken = ask(path, rows, goes_on)
    percentiles = statistics.quantiles(taken, n=100)
    print(json.dumps({"p50": percentiles[49], "p99": percentiles[98], "most": max(taken), "asked": len(taken)}))


def ask(path: str, rows: int, goes_on: Callable[[], bool]) -> list[float]:
    """Return the milliseconds of each answer."""
    chance = random.Random(1)
    taken = []
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        while goes_on():
            question = command(b"ZREVRANK", KEY.encode(), member(chance.randrange(rows)))
            begun = time.perf_counter()
            connection.sendall(question)
            connection.recv(64)
            taken.append((time.perf_counter() - begun) * 1e3)
            time.sleep(_EVERY)
    return taken


if __name__ == "__main__":
    main()
