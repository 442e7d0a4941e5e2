"""How many players each score band has, as it is kept beside the live key, counted anew, and put right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from redis import Redis

from leaderboard.bands import Scale
from leaderboard.keys import helper_key
from live.fanout import each
from live.scripts import run
from live.single import asked


@dataclass(frozen=True, slots=True)
class Recount:
    """The players of each band as counted from the board, and as kept beside it, at one instant."""

    counted: Mapping[int, int]
    kept: Mapping[int, int]

    @property
    def wrong(self) -> int:
        """How many bands were kept wrong."""
        return sum(self.counted.get(band) != self.kept.get(band) for band in self.counted.keys() | self.kept.keys())


def counted(client: Redis, beside: Sequence[str]) -> Counter[int]:
    """Return how many players each band has, over all shards; the hashes stand ``beside`` those names."""
    hashes = [helper_key(key, "bands") for key in beside]
    total: Counter[int] = Counter()
    for reply in asked(lambda: each(client, dict.fromkeys(hashes, "hash"), [("HGETALL", key) for key in hashes])):
        total.update(_counts(reply))
    return total


def between(client: Redis, keys: Sequence[str], bands: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Return how many players of each key have a raw score in each band, from its least to below its end."""
    commands = [
        ("ZCOUNT", key, repr(least), f"({end!r}" if end < inf else "+inf") for key in keys for least, end in bands
    ]
    replies = asked(lambda: each(client, dict.fromkeys(keys, "zset"), commands))
    return [[int(reply) for reply in replies[at : at + len(bands)]] for at in range(0, len(replies), len(bands))]


def recount(client: Redis, live_key: str, scale: Scale, *, beside: str | None = None, repair: bool = False) -> Recount:
    """Count the players of every band of one live key anew, and tell what was kept; ``repair`` it in the same instant.

    The server takes as many steps as there are bands with players, so choose bands by the thousand at most.
    """
    keys = {live_key: "zset", helper_key(beside or live_key, "bands"): "hash"}
    found, kept = run(client, "recount", keys, scale.text, "repair" if repair else "check")
    return Recount(_counts(found), _counts(kept))


def _counts(reply: Any) -> dict[int, int]:
    """Return the reply of HGETALL, in any protocol, as counts by band."""
    flat = [word for pair in reply.items() for word in pair] if isinstance(reply, dict) else reply
    return {int(band): int(count) for band, count in zip(flat[0::2], flat[1::2], strict=True)}
