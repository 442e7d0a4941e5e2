"""A made-up season: results in bursts, with repeats, ties and latecomers, the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np

from ledger.result_files import Chunk, Result

BURST = 40_000
LENGTH = timedelta(days=7)


def bursts(players: int, seed: int, starts_at: datetime) -> Iterator[Chunk]:
    """Yield about three results a player in bursts, one in fifty of them sent twice; many totals tie to the minute."""
    random = np.random.default_rng(seed)
    count = players * 3
    # Every player has played once; the rest goes to the keen ones.
    who = np.concatenate([random.permutation(players), (players * random.power(0.4, count - players)).astype(np.int64)])
    points = random.integers(1, 40, count) * 5
    second = np.sort(random.integers(0, int(LENGTH.total_seconds()), count))
    line = 0
    size = min(BURST, count // 6)
    last: list[Result] = []
    for start in range(0, count, size):
        burst = []
        for at in range(start, min(start + size, count)):
            line += 1
            burst.append(
                _result(line, at, int(who[at]), int(points[at]), starts_at + timedelta(seconds=int(second[at])))
            )
        yield Chunk([*burst, *(result._replace(line=line + number) for number, result in enumerate(last, 1))])
        line += len(last)
        last = [burst[at] for at in random.choice(len(burst), max(len(burst) // 50, 1), replace=False)]


def latecomers(players: int, seed: int, ends_at: datetime) -> Chunk:
    """Return results of the last minute of the season that were sent after its freeze."""
    random = np.random.default_rng(seed + 1)
    who = random.integers(0, players, 20)
    played_at = ends_at - timedelta(minutes=1)
    return Chunk([_result(number, -number, int(player), 500, played_at) for number, player in enumerate(who, 1)])


def player_name(number: int) -> bytes:
    """Return the id of a player: ``player_`` and nine digits."""
    return b"player_%09d" % number


def _result(line: int, match: int, player: int, points: int, played_at: datetime) -> Result:
    return Result(line, f"match-{match}", player_name(player), points, played_at)


def week_before(now: datetime) -> datetime:
    """Return the start of a season of LENGTH that has just ended, to the second."""
    return (now - LENGTH).astimezone(UTC).replace(microsecond=0)
