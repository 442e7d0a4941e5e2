"""Boards, clients and a brute force for the tests of the live board."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from leaderboard.board import Board
from leaderboard.codec import codec_for, to_microseconds
from leaderboard.season import Bounds
from live.apply import apply, claim
from live.board import LiveBoard

START = datetime(2026, 1, 1, tzinfo=UTC)
BOUNDS = Bounds(START, datetime(2026, 4, 1, tzinfo=UTC), "s2026q1")
KEY = "leaderboard:goals:s2026q1"


def connected(url: str, **settings: Any) -> Redis:
    """Return a client that gives up at once."""
    return Redis.from_url(url, **{"socket_timeout": 10, "retry": Retry(NoBackoff(), 0), **settings})


def board(**fields: Any) -> Board:
    """Return a board of quarters, ``goals``, with these fields."""
    return Board.model_validate({"name": "goals", "calendar": {"every": "quarter"}, **fields})


def live(client: Redis, **fields: Any) -> LiveBoard:
    """Return the reader of such a board."""
    return LiveBoard(client, board(**fields), BOUNDS, KEY)


def write(
    client: Redis, scores: Mapping[bytes, float], removed: Iterable[bytes] = (), *, fence: int = 1, bucket: int = 0
) -> None:
    """Claim the bucket and apply one batch as the next."""
    number = claim(client, KEY, bucket, fence)[0].number + 1
    apply(
        client,
        KEY,
        bucket=bucket,
        fence=fence,
        number=number,
        members=list(scores),
        scores=list(scores.values()),
        removed=list(removed),
    )


def content(client: Redis) -> list[tuple[bytes, float]]:
    """Return the whole set in ascending order, by another way than the code under test; needs a client of bytes."""
    return [(member, score) for member, score in client.zrange(KEY, 0, -1, withscores=True)]


@dataclass(frozen=True)
class Total:
    """A player's points, and the seconds into the season at which they were reached."""

    points: int
    second: int

    def score(self, of: Board) -> float:
        return codec_for(of, BOUNDS).encode(self.points, to_microseconds(START + timedelta(seconds=self.second)))


def brute_force(of: Board, totals: Mapping[bytes, Total]) -> list[tuple[int, int, bytes, int, datetime | None]]:
    """Return position, rank, id, points and reached_at of each player, from points and times alone, by sorting."""

    def standing(total: Total) -> tuple[int, ...]:
        points = -total.points if of.order == "high" else total.points
        return (points, total.second) if of.packed else (points,)

    by_member = sorted(totals, reverse=of.order == "high")
    players = sorted(by_member, key=lambda player: standing(totals[player]))
    rows = []
    for position, player in enumerate(players, 1):
        total = totals[player]
        better = sum(standing(other) < standing(total) for other in totals.values())
        rank = position if of.ties.by == "member" else better + 1
        reached = START + timedelta(seconds=total.second) if of.packed else None
        rows.append((position, rank, player, total.points, reached))
    return rows
