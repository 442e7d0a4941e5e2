"""What keys there are: of which types, with how many players, and which look like a board's. Reads, changes nothing.

A registry decides what is a season's; SCAN only ever reports. It is asked of primaries alone, each over one connection,
since a cursor means nothing to another server, and what it repeats is counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from redis import Redis

from leaderboard.errors import UnavailableError
from live.scripts import send
from live.translate import address, translated

_COUNT = 1_000  # keys that the server looks at in one call
_PIPELINED = 500


def kinds(client: Redis, keys: Iterable[str]) -> dict[str, str]:
    """Return the type of each key, ``none`` where it does not exist. Asks with one command a key, many at a time."""
    return {key: told.decode() if isinstance(told, bytes) else str(told) for key, told in _each(client, "TYPE", keys)}


def sizes(client: Redis, keys: Iterable[str]) -> dict[str, int]:
    """Return how many members each sorted set has, 0 for one that has gone."""
    return {key: int(count) for key, count in _each(client, "ZCARD", keys)}


def lifetimes(client: Redis, keys: Iterable[str]) -> dict[str, int]:
    """Return the seconds that each key has left: -1 for one that stays, -2 for one that has gone."""
    return {key: int(seconds) for key, seconds in _each(client, "TTL", keys)}


def _each(client: Redis, command: str, keys: Iterable[str]) -> Iterator[tuple[str, Any]]:
    rest = iter(keys)
    while chunk := list(islice(rest, _PIPELINED)):
        types = dict.fromkeys(chunk, "zset") if command == "ZCARD" else {}
        with translated(client, types), client.pipeline(transaction=False) as pipeline:
            for key in chunk:
                pipeline.execute_command(command, key)  # type: ignore[no-untyped-call]  # has no annotations
            replies = pipeline.execute()
        yield from zip(chunk, replies, strict=True)


def sorted_sets(primaries: Sequence[Redis]) -> set[str]:
    """Return every key that holds a sorted set; names that are not UTF-8 are left out, no board has such.

    Raises UnavailableError for a server that is no primary.
    """
    return _scanned(primaries, "TYPE", "zset")


def called(primaries: Sequence[Redis], pattern: str) -> set[str]:
    """Return every key of any type whose name fits the glob ``pattern``, otherwise as ``sorted_sets``."""
    return _scanned(primaries, "MATCH", pattern)


def _scanned(primaries: Sequence[Redis], *options: str) -> set[str]:
    return {name for client in primaries for name in _on(client, options)}


def _on(client: Redis, options: Sequence[str]) -> Iterator[str]:
    # It takes its connection when it is made, which a server that hangs lets time out.
    with translated(client, {}), Redis(connection_pool=client.connection_pool, single_connection_client=True) as pinned:
        role = send(pinned, "ROLE")[0].decode()
        if role != "master":
            raise UnavailableError(
                f"{address(client)} is no primary, its role is {role}",
                hint="name the primary in [servers] redis: a replica may lack keys, or have old ones",
            )
        cursor = 0
        while True:
            following, names = send(pinned, "SCAN", cursor, *options, "COUNT", _COUNT)
            yield from filter(None, map(_text, names))
            cursor = int(following)
            if cursor == 0:
                return


def _text(name: bytes) -> str | None:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return None
