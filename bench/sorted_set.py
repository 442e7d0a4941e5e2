"""A server of its own and a season's sorted set in it: ids ``p`` and nine digits, shuffled, with packed scores."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jobs.embedded.account import server_account
from jobs.embedded.binaries import Programs
from jobs.embedded.redis_server import RedisServer
from jobs.embedded.server import make_private
from leaderboard.board import Board
from leaderboard.codec import codec_for, to_microseconds
from leaderboard.season import Bounds

KEY = "leaderboard:bench:s2026q1"
BOARD = Board.model_validate({"name": "bench", "calendar": {"every": "quarter"}})
_START = datetime(2026, 1, 1, tzinfo=UTC)
TYPICAL_POINTS = 1_000
_BATCH = 1_000


def season(days: int) -> Bounds:
    """Return the bounds of a season of ``days`` days."""
    return Bounds(_START, _START + timedelta(days=days), "s2026q1")


@contextmanager
def server(program: Path | None, *options: str) -> Iterator[Path]:
    """Yield the socket of an empty server: ``program``, or the one that Finale would embed. It ends with the block."""
    with tempfile.TemporaryDirectory(prefix="finale-bench-") as name:
        root = Path(name)
        root.chmod(0o755)
        account = server_account()
        folder = root / "redis"
        make_private(folder, account)
        started = RedisServer(
            programs=Programs(account, root / "bin", None if program is None else str(program.parent)),
            directory=folder,
            socket_directory=folder,
            account=account,
            options=("--appendonly", "no", *options),
        )
        try:
            started.start()
            yield started.socket
        finally:
            started.stop()


def scores(rows: int, days: int, seed: int = 1) -> NDArray[np.float64]:
    """Return the scores of ``rows`` players: points of an exponential distribution, reached at any second."""
    random = np.random.default_rng(seed)
    points = random.exponential(TYPICAL_POINTS, rows).astype(np.int64)
    start = to_microseconds(_START)
    reached_at = start + random.integers(0, days * 86_400, rows) * 1_000_000
    return codec_for(BOARD, season(days)).encode_array(points, reached_at)


def fill(path: Path, rows: int, days: int, seed: int = 1) -> None:
    """Put ``rows`` players into the key, in no order."""
    ids = np.random.default_rng(seed + 1).permutation(rows)
    values = scores(rows, days, seed).astype(np.int64)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        for at in range(0, rows, _BATCH):
            batch = zip(ids[at : at + _BATCH].tolist(), values[at : at + _BATCH].tolist(), strict=True)
            words = [b"ZADD", KEY.encode(), *(word for one, score in batch for word in (b"%d" % score, member(one)))]
            connection.sendall(command(*words))
            if not connection.recv(64).startswith(b":"):
                raise RuntimeError("the server did not take the players")


def member(number: int) -> bytes:
    """Return the id of the player ``number``."""
    return b"p%09d" % number


def command(*words: bytes) -> bytes:
    """Return a command as it goes over the wire."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
