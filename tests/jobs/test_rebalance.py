"""finale rebalance: bands of score cut anew while the season is played; nobody is ever missing, or twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jobs.boards import rebalancing
from jobs.boards.projection import apply_pending
from jobs.wiring import Outside
from leaderboard.errors import FinaleError
from live import apply
from live.board import LiveBoard
from tests.jobs.test_projection import CONFIG, LAYOUTS, check, expected, play, season
from tests.support.cli import World, finale


@pytest.fixture
def outside(world: World) -> Iterator[Outside]:
    """A board cut at 3 and 30, with players in all bands."""
    world.configure(CONFIG.replace("LAYOUT", LAYOUTS["by score"]))
    with world.outside() as wired:
        play(wired, 1)
        apply_pending(wired, season(wired), "one")
        yield wired


def test_everybody_moves_to_where_she_belongs(world: World, outside: Outside) -> None:
    """The answers stay the same, each player is in the band of the new cuts, and the journal keeps who decided it."""
    board = LiveBoard.of(outside.redis, season(outside))
    before = board.top(1_000)
    planned = finale("rebalance", "b", "one", "--cuts", "8,15", "--dry-run", "--json").ok().json
    assert season(outside).board.shards.cuts == (3, 30)
    assert "would move" in finale("rebalance", "b", "one", "--cuts", "8,15", "--dry-run").ok().out
    done = finale("rebalance", "b", "one", "--cuts", "8,15", "--yes", "--as", "ana", "--json").ok().json
    assert done == planned
    assert season(outside).board.shards.cuts == (8, 15)
    check(outside)
    assert [outside.redis.zcard(key) for key in season(outside).live_keys] == done["players"]
    assert LiveBoard.of(outside.redis, season(outside)).top(1_000) == before == board.top(1_000)
    assert [who for event, who, _ in world.journal("b", "one") if event == "rebalanced"] == ["ana"]
    again = finale("rebalance", "b", "one", "--cuts", "8,15", "--yes", "--as", "ana", "--json").ok().json
    assert again["moved"] == 0


def test_i9_who_knew_the_old_cuts_writes_by_the_new_ones(outside: Outside) -> None:
    """I9: an applier that read the season before the change, and claims after it, writes by the new cuts."""
    old = season(outside)
    rebalancing.rebalance(outside, old, [8, 15], who="ana")
    play(outside, 2)
    apply_pending(outside, old, "late")
    check(outside)


@pytest.mark.parametrize("at", range(1, 12, 3))
def test_i8_broken_off_the_next_tick_finishes_it(outside: Outside, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """I8: whatever was written when it broke off, everybody is seen once, with her score, and the rest is pending."""
    real, calls = apply.apply, []

    def breaks(*args: Any, **named: Any) -> Any:
        calls.append(args)
        if len(calls) == at:
            raise FinaleError("planned")
        return real(*args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(apply, "apply", breaks)
        with pytest.raises(FinaleError, match="planned"):
            rebalancing.rebalance(outside, season(outside), [8, 15], who="ana")
    board = LiveBoard.of(outside.redis, season(outside))
    wanted = expected(outside)
    assert {row.player_id: row.score for row in board.top(1_000)} == wanted
    assert all(board.score(player) == score for player, score in wanted.items())
    apply_pending(outside, season(outside), "tick")
    check(outside)


@pytest.mark.parametrize(
    ("cuts", "code", "word"),
    [
        ("8", 4, "not as many"),
        ("9,8", 4, "ascending"),
        ("a,b", 4, "whole points"),
        (f"8,{2**40}", 4, "2^53"),
    ],
)
def test_cuts_that_cannot_be(outside: Outside, cuts: str, code: int, word: str) -> None:
    """Each is refused with what is wrong, and nothing has changed."""
    finale("rebalance", "b", "one", "--cuts", cuts, "--yes", "--as", "ana").refused(code, word)
    assert season(outside).board.shards.cuts == (3, 30)


def test_after_the_freeze_the_bands_stay(world: World, outside: Outside) -> None:
    """A frozen season's keys are what is archived; boards of other kinds have nothing to cut."""
    world.sql("update finale.season set frozen_at = now()")
    finale("rebalance", "b", "one", "--cuts", "8,15", "--yes", "--as", "ana").refused(23, "frozen")
    world.sql('update finale.season set frozen_at = null, definition = definition || \'{"shards": {"by": "none"}}\'')
    finale("rebalance", "b", "one", "--cuts", "8,15", "--yes", "--as", "ana").refused(23, "not spread by score")
