"""Scores of many players at once, and who is on a board, a slice at a time: what a check of a live board reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from redis import Redis

from leaderboard.errors import UnavailableError
from live.nodes import serving
from live.scripts import send
from live.translate import translated


def scores_of(client: Redis, keys: Sequence[str], members: Sequence[bytes]) -> list[dict[str, float]]:
    """Return the scores of each member by key of a board's sorted sets: none, one, or two while a player moves.

    One command a key. Raises UnavailableError, AccessError, or WrongTypeError for a key that is no sorted set.
    """
    found: list[dict[str, float]] = [{} for _ in members]
    for key in keys if members else ():
        with translated(client, {key: "zset"}):
            replies = send(client, "ZMSCORE", key, *members)
        for at, score in enumerate(replies):
            if score is not None:
                found[at][key] = float(score) + 0.0
    return found


def scan(client: Redis, key: str, cursor: str, count: int) -> tuple[str, list[bytes]]:
    """Return where to go on, and about ``count`` members of a sorted set; the cursor is ``0`` at both ends.

    Whoever is there from the first call to the last is among them, perhaps twice. A cursor means something only to the
    server that gave it, see :func:`server_of`.
    """
    following, pairs = _scanned(client, key, cursor, count)
    return following, [member for member, _ in pairs]


def every(client: Redis, key: str, count: int) -> Iterator[list[tuple[bytes, float]]]:
    """Yield members and scores of a whole sorted set, about ``count`` at a time, in no order.

    Whoever is there from the beginning to the end is among them, perhaps twice, with a score that she had meanwhile;
    who is read by position may be passed over when she moves. Raises UnavailableError too if another server has taken
    over.
    """
    server, cursor, begun = server_of(client, key), "0", False
    while cursor != "0" or not begun:
        cursor, pairs = _scanned(client, key, cursor, count)
        begun = True
        yield pairs
    if server_of(client, key) != server:
        raise UnavailableError(f"another server took {key} over while it was read", hint="run the command again")


def _scanned(client: Redis, key: str, cursor: str, count: int) -> tuple[str, list[tuple[bytes, float]]]:
    with translated(client, {key: "zset"}):
        # The client makes pairs of member and score of the reply.
        following, pairs = send(serving(client, key), "ZSCAN", key, cursor, "COUNT", count)
    return following.decode() if isinstance(following, bytes) else str(following), pairs


def server_of(client: Redis, key: str) -> str:
    """Return what names the server that serves ``key`` since it was started."""
    node = serving(client, key)
    with translated(node, {}):
        return str(node.info("server")["run_id"])
