"""Every kind of board, however spread, against a brute force that keeps all matches and sorts them.

A run plays one season of one board: batches of results with repeats, matches that are voided, results that come late
or out of order, appliers in between. Then every question is asked. The slow test makes thousands of such runs.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.boards.projection import apply_pending
from jobs.wiring import Outside
from leaderboard.board import Board
from leaderboard.errors import UnknownNameError
from leaderboard.season import Season
from ledger import seasons
from ledger.results import record
from ledger.voids import void
from live.board import LiveBoard
from tests.ledger.support import by_hand, chunk, result
from tests.live.test_board import told
from tests.support.cli import World

FIRST = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=900)
TIES = {"reach": '{ by = "first_to_reach", unit = "minute" }', "shared": '"shared"', "member": '"member"'}
SHARDS = {"one": '"none"', "player": '{ by = "player", count = 3 }', "score": '{ by = "score", cuts = [4, 9] }'}
KINDS = list(itertools.product(("sum", "best", "last"), ("high", "low"), TIES, SHARDS))
PLAYERS = [b"ann", b"bob", b"p1", b"p10", b"p9", "é".encode(), b"Z"]
SEEDS = 40


def name(kind: tuple[str, ...]) -> str:
    return "-".join(kind)


@pytest.fixture
def outside(world: World) -> Iterator[Outside]:
    """A board of days of every kind, each with a source of its own."""
    boards = [
        f'[board.{name(kind)}]\naggregate = "{kind[0]}"\norder = "{kind[1]}"\nties = {TIES[kind[2]]}\n'
        f'shards = {SHARDS[kind[3]]}\nbands = {{ width = 3 }}\ncalendar = {{ every = "day" }}\nahead = 0\n'
        for kind in KINDS
    ]
    world.configure("\n".join(boards))
    with world.outside() as wired:
        yield wired


def play(outside: Outside, board: Board, day: datetime, chance: random.Random) -> list[Any]:
    """Play a season and return the results that count in the end."""
    least = 0 if board.packed else -6
    counted: dict[tuple[str, bytes], Any] = {}
    gone: set[tuple[str, bytes]] = set()
    for batch in range(3):
        fresh = [
            result(
                f"{day:%m%d}-{batch}-{at % 4}", chance.choice(PLAYERS), chance.randint(least, 7), _instant(day, chance)
            )
            for at in range(chance.randint(0, 9))
        ]
        fresh = list({(one.match_id, one.player_id): one for one in fresh}.values())
        repeats = chance.sample(sorted(counted.values()), len(counted) // 3)
        record(outside.database, board.source, [board], chunk([*fresh, *repeats]), origin="test")
        counted |= {(one.match_id, one.player_id): one for one in fresh}
        if counted and chance.random() < 0.6:
            match, player = chance.choice(sorted(counted))
            whole = chance.random() < 0.5
            with suppress(UnknownNameError):  # voided before
                void(outside.database, board.source, match, who="t", because="t", player=None if whole else player)
            gone |= {key for key in counted if key[0] == match and (whole or key[1] == player)}
        if chance.random() < 0.5 and (season := find(outside, board, day)):
            apply_pending(outside, season, "early")
    return [one for key, one in counted.items() if key not in gone]


def _instant(day: datetime, chance: random.Random) -> datetime:
    return day + timedelta(minutes=chance.randint(0, 5), seconds=chance.randint(0, 59))


def find(outside: Outside, board: Board, day: datetime) -> Season | None:
    found = [one for one in seasons.of_board(outside.database, board.name, board) if one.bounds.starts_at == day]
    return found[0] if found else None


def sorted_out(board: Board, counted: list[Any]) -> list[tuple[int, int, bytes, int, datetime | None]]:
    """Return position, rank, id, points and reached_at of each player, by counting matches and sorting."""

    def standing(total: tuple[int, datetime]) -> tuple[Any, ...]:
        points = -total[0] if board.descending else total[0]
        return (points, total[1].replace(second=0)) if board.packed else (points,)

    totals = {
        player: (points, at)
        for player, (points, at, _) in by_hand(counted, board.aggregate, descending=board.descending).items()
    }
    players = sorted(sorted(totals, reverse=board.descending), key=lambda player: standing(totals[player]))
    rows = []
    for position, player in enumerate(players, 1):
        points, at = totals[player]
        better = sum(standing(other) < standing(totals[player]) for other in totals.values())
        rank = position if board.ties.by == "member" else better + 1
        rows.append((position, rank, player, points, at.replace(second=0) if board.packed else None))
    return rows


def run(outside: Outside, kind: tuple[str, ...], seed: int) -> None:
    """Play the season of day ``seed`` and compare every answer."""
    board = outside.boards[name(kind)]
    day = FIRST + timedelta(days=seed)
    chance = random.Random(f"{name(kind)} {seed}")
    counted = play(outside, board, day, chance)
    season = find(outside, board, day)
    if season is None:
        assert counted == []
        return
    apply_pending(outside, season, "last")
    compare(outside, season, sorted_out(board, counted))
    key = {"key": season.key}
    outside.database.run(b"update finale.season set frozen_at = now() where season_id = %(key)s", key)
    late = record(
        outside.database, board.source, [board], chunk([result(f"late {seed}", b"ann", 7, day)]), origin="test"
    )
    assert late.late == 1
    apply_pending(outside, season, "after")
    compare(outside, season, sorted_out(board, counted))


def compare(outside: Outside, season: Season, expected: list[Any]) -> None:
    live = LiveBoard.of(outside.redis, season)
    assert told(live.top(99)) == expected
    assert live.count() == len(expected)
    assert told(live.page(1, 3)) == expected[1:4]
    for at, (position, rank, player, *_) in enumerate(expected):
        found, about = live.rank(player), live.rank(player, exact=False)
        assert found is not None and about is not None
        assert (found.rank, found.players) == (rank, len(expected))
        assert abs(about.rank - rank) <= about.error < len(expected)
        assert told(live.around(player, 2)) == expected[max(0, at - 2) : at + 3]
        assert position == at + 1
    assert live.rank(b"nobody") is None


def test_every_other_kind_of_board_equals_a_brute_force(outside: Outside) -> None:
    """I6, C08, C74, C75: one run of every other of the 54 kinds of order, aggregate, ties and layout."""
    for kind in KINDS[::2]:
        run(outside, kind, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_thousands_of_seasons_equal_a_brute_force(outside: Outside) -> None:
    """I6: the same in 2,160 runs."""
    for seed in range(1, 1 + SEEDS):
        for kind in KINDS:
            run(outside, kind, seed)
