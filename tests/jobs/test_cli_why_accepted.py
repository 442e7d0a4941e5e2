"""finale why of players whose sealed numbers are not the ledger's, since a person accepted the difference (I4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.jobs.test_cli_correct import BOARD, TABLE
from tests.support.cli import World, finale

KEY = "leaderboard:cup:s1"


@pytest.fixture
def accepted(world: World) -> World:
    """The ledger has 10 points of a, 20 of b and 30 of c; sealed are 10, 100, and 5 of one whom no result names."""
    world.configure(f'{BOARD}ties = "shared"\nreconcile = {{ repair = 0 }}\n', cup=TABLE)
    world.played("cup", *(f"m{n},{name},{n}0,2026-01-05T10:00:00Z" for n, name in enumerate("abc", 1)))
    world.redis.zadd(KEY, {"b": 100, "guest": 5})
    world.redis.zrem(KEY, "c")
    finale("close", "cup", "s1", "--as", "ops").refused(22)
    (report,) = (world.store / "reports/cup/s1").glob("*.json")
    words = ("--accept-drift", report.name, "--because", "ticket 9", "--as", "op")
    finale("season", "release", "cup", "s1", *words).ok()
    finale("close", "cup", "s1", "--as", "ops").ok()
    return world


def _told(player: str) -> tuple[Any, str]:
    found = finale("why", "cup", "s1", player, "--json").ok().json["accepted_drift"]
    return found, finale("why", "cup", "s1", player).ok().out


@pytest.mark.parametrize(
    ("player", "points", "said"),
    [
        ("b", 20, "The ledger has 20 points, reached 2026-01-05 10:00:00 UTC; the difference was accepted by op at 20"),
        ("c", 30, "The ledger has 30 points, reached 2026-01-05 10:00:00 UTC; the difference was accepted by op at 20"),
        ("guest", None, "The ledger has no points of this player; the difference was accepted by op at 20"),
    ],
    ids=["other points", "not on the board", "not in the ledger"],
)
def test_i4_the_page_names_an_accepted_difference(accepted: World, player: str, points: int | None, said: str) -> None:
    """I4: what the ledger has, who accepted that other numbers are sealed, when and why."""
    found, page = _told(player)
    assert (found["ledger_points"], found["by"], found["because"]) == (points, "op", "ticket 9")
    assert said in page and "ticket 9" in page


def test_players_beside_an_accepted_difference_are_told_nothing_of_it(accepted: World) -> None:
    """The ledger has of a what is sealed, and of one who never played neither has anything."""
    for player in ("a", "nobody"):
        found, page = _told(player)
        assert found is None and "accepted" not in page
