"""Three nodes of a cluster that hold the season of ``bench.sorted_set`` in shards, by player and by score."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import redis

from bench import sorted_set
from jobs.embedded.server import wait_until
from leaderboard.board import Board
from leaderboard.keys import SLOTS, shard_keys, slot

NODES, SHARDS = 3, 12
#: Points are exponential: as many players in each band.
_CUTS = [round(-sorted_set.TYPICAL_POINTS * log(1 - band / SHARDS)) for band in range(1, SHARDS)]
LAYOUTS: dict[str, dict[str, Any]] = {
    "by player": {"by": "player", "count": SHARDS},
    "by score": {"by": "score", "cuts": _CUTS},
}
_SECONDS = 30.0
_BATCH = 1_000


def board(layout: str) -> Board:
    """Return the bench's board with these shards."""
    return Board.model_validate({**sorted_set.BOARD.definition(), "shards": LAYOUTS[layout]})


def names(layout: str) -> tuple[str, ...]:
    """Return the sorted sets of a layout, in the order of its shards."""
    return shard_keys(f"{sorted_set.KEY}:{layout.partition(' ')[2]}", SHARDS)


def node_of(key: str) -> int:
    """Return the number of the node that serves ``key``."""
    return slot(key) * NODES // SLOTS


@contextmanager
def nodes(program: Path | None) -> Iterator[list[Path]]:
    """Yield the sockets of three primaries, in the order of their slots. They end with the block."""
    with ExitStack() as stack:
        ports = [_free_port() for _ in range(NODES)]
        sockets = [
            stack.enter_context(sorted_set.server(program, "--cluster-enabled", "yes", "--port", str(port)))
            for port in ports
        ]
        clients = [stack.enter_context(redis.Redis(unix_socket_path=str(path))) for path in sockets]
        for number, client in enumerate(clients):
            mine = [one for one in range(SLOTS) if one * NODES // SLOTS == number]
            client.execute_command("CLUSTER", "ADDSLOTS", *mine)  # type: ignore[no-untyped-call]  # has no annotations
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)  # type: ignore[no-untyped-call]  # has no annotations
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", ports[0])  # type: ignore[no-untyped-call]  # has no annotations
        if not wait_until(lambda: all(map(_is_whole, clients)), _SECONDS):
            raise RuntimeError("the cluster did not form")
        yield sockets


def fill(sockets: list[Path], rows: int, days: int, seed: int = 1) -> None:
    """Put the very players of ``sorted_set.fill`` into the shards of each layout."""
    ids = np.random.default_rng(seed + 1).permutation(rows)
    values = sorted_set.scores(rows, days, seed)
    with ExitStack() as stack:
        clients = [stack.enter_context(redis.Redis(unix_socket_path=str(path))) for path in sockets]
        for layout in LAYOUTS:
            keys, shards = names(layout), board(layout).layout
            for at in range(0, rows, _BATCH):
                members = [sorted_set.member(one) for one in ids[at : at + _BATCH].tolist()]
                scores = values[at : at + _BATCH]
                found = shards.shards(members, scores)
                for shard in np.unique(found).tolist():
                    here = np.flatnonzero(found == shard).tolist()
                    clients[node_of(keys[shard])].zadd(keys[shard], {members[one]: float(scores[one]) for one in here})


def _is_whole(client: redis.Redis) -> bool:
    told: Any = client.execute_command("CLUSTER", "INFO")  # type: ignore[no-untyped-call]  # has no annotations
    text = "\n".join(f"{name}:{value}" for name, value in told.items()) if isinstance(told, dict) else told.decode()
    return "cluster_state:ok" in text and f"cluster_known_nodes:{NODES}" in text


def _free_port() -> int:
    """Return a port that nobody listens on, nor on the one 10,000 above, where the nodes talk."""
    while True:
        port = random.randrange(20_000, 50_000)
        with socket.socket() as first, socket.socket() as second, suppress(OSError):
            first.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", port + 10_000))
            return port
