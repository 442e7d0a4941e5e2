"""The marks of players who move between the shards of a board, by which readers tell the newer of two rows."""

from __future__ import annotations

from collections.abc import Sequence

from redis import Redis

from leaderboard.keys import helper_key
from live.scripts import run

_AT_ONCE = 4_000


def settle(client: Redis, live_key: str, mark: str, members: Sequence[bytes]) -> None:
    """Forget that ``members`` were added to the shard under ``mark``, unless they were marked again. Repeatable."""
    for at in range(0, len(members), _AT_ONCE):
        run(client, "settle", {helper_key(live_key, "moving"): "hash"}, mark, *members[at : at + _AT_ONCE])
