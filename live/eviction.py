"""Whether the server may drop a board by itself: its eviction policy, and a time to live on the key."""

from __future__ import annotations

from dataclasses import dataclass

from redis import Redis

from leaderboard.errors import AccessError
from live.keyspace import lifetimes
from live.nodes import serving
from live.translate import translated


@dataclass(frozen=True, slots=True)
class Eviction:
    """What a server says of itself; None where it does not say. ``evicted``: keys dropped since it started."""

    policy: str | None
    evicted: int | None = None

    @property
    def may_drop(self) -> bool:
        """Whether keys, or those with a time to live, may be dropped when memory is short; unknown is no yes."""
        return self.policy is not None and self.policy != "noeviction"

    @property
    def any_key(self) -> bool:
        """Whether even a key without a time to live may be dropped."""
        return self.policy is not None and self.policy.startswith("allkeys-")

    def fate(self) -> str:
        """Return what may have become of a key that is missing, as a person is told."""
        if self.policy is None:
            return "it was deleted, evicted (the server does not tell its maxmemory-policy), or lost in a failover"
        if not self.may_drop:
            return "it was deleted, or lost in a failover; maxmemory-policy is noeviction, so it was not evicted"
        dropped = f", and the server has evicted {self.evicted:,} keys since it started" if self.evicted else ""
        had = "" if self.any_key else " if it had a time to live"
        return (
            f"it may have been evicted{had}: maxmemory-policy is {self.policy}{dropped}; "
            "else it was deleted, or lost in a failover"
        )


def eviction(client: Redis) -> Eviction:
    """Return the server's policy; unknown where this user may not ask. INFO tells it where CONFIG is forbidden."""
    try:
        with translated(client, {}):
            memory, stats = client.info("memory"), client.info("stats")
    except AccessError:
        return Eviction(None)
    evicted = stats.get("evicted_keys")
    return Eviction(memory.get("maxmemory_policy"), None if evicted is None else int(evicted))


def dangers(client: Redis, live_key: str) -> list[str]:
    """Return how the server may drop the live key by itself, a line a danger; nothing if nobody can tell."""
    found = []
    told = eviction(serving(client, live_key))
    if told.any_key:
        found.append(f"maxmemory-policy is {told.policy}: when memory is short, Redis drops boards; set noeviction")
    elif told.may_drop:
        found.append(f"maxmemory-policy is {told.policy}: when memory is short, Redis drops keys with a time to live")
    if (left := _time_to_live(client, live_key)) is not None:
        found.append(f"the live key {live_key} expires in {left:,} seconds; take that off with PERSIST")
    return found


def blocks_when_it_expires(client: Redis, key: str) -> bool:
    """Return whether the server of ``key`` frees an expired key at one go, serving nobody else meanwhile (C23).

    So does Redis before 8 by default. No where the user may not ask.
    """
    server = serving(client, key)
    try:
        with translated(server, {}):
            found = server.config_get("lazyfree-lazy-expire")
    except AccessError:
        return False
    return bool(found.get("lazyfree-lazy-expire") == "no")


def _time_to_live(client: Redis, key: str) -> int | None:
    try:
        left = lifetimes(client, [key])[key]
    except AccessError:
        return None
    return left if left >= 0 else None
