"""I8: a rebuild killed or failing at any outside call: players see a whole board, and the next one ends the same."""

from __future__ import annotations

import pytest
import redis

from tests.harness.calls import BETWEEN
from tests.harness.plan import Deed, Plan
from tests.harness.season import Prepared
from tests.jobs.kill.cases import FAULTS, KILLS, Whole, every, run_again, sample, sampled, undisturbed

REBUILD = ("rebuild", "cup", "s1", "--yes")
LIVE_KEY = b"leaderboard:cup:s1"


@pytest.fixture(scope="module")
def whole(season: Prepared) -> Whole:
    """The season's board rebuilt by one undisturbed run, from one that lacks players."""
    return undisturbed(season.world, *REBUILD)


def test_an_undisturbed_rebuild_leaves_the_ledger_and_nothing_else(whole: Whole) -> None:
    """What the other runs are compared with: every player of the ledger, nothing pending, no half-built key."""
    assert len(whole.end.keys[LIVE_KEY]) == len(whole.end.ledger["totals"]) == 2_600
    assert not whole.end.ledger["pending"]
    assert {key.rpartition(b":")[2] for key in whole.end.keys} == {b"s1", b"fence", b"applied"}
    said = [call.text for call in whole.calls if call.kind == "redis"]
    assert sum(text.startswith("ZADD {leaderboard:cup:s1}:finale:building:") for text in said) >= 1


def test_i8_killed_anywhere_the_next_rebuild_ends_the_same(whole: Whole) -> None:
    """I8: killed before or after a call, run again: the same board, no key left behind."""
    run_again(whole, sampled(whole.calls, KILLS, 3, "rebuild"))


@pytest.mark.slow
def test_i8_failing_anywhere_the_next_rebuild_ends_the_same(whole: Whole) -> None:
    """I8: a call fails or times out, done or not: told in an operator's words, and the next run ends the same."""
    run_again(whole, sampled(whole.calls, FAULTS, 1, "rebuild"))


def test_i8_killed_anywhere_players_see_a_whole_board(season: Prepared, whole: Whole) -> None:
    """I3, I8: after a kill the live key is the old board or the new one, row for row, never a part."""
    with season.world() as world, redis.Redis.from_url(world.redis_url) as client:
        old = client.zrange(LIVE_KEY, 0, -1, withscores=True)
    in_redis = [call for call in whole.of(BETWEEN) if call.kind == "redis"]
    for call in sample(in_redis, 4, "partial"):
        with season.world() as world, redis.Redis.from_url(world.redis_url) as client:
            assert world.run(*REBUILD, plan=Plan(call, "kill", done=True)).hit
            assert client.zrange(LIVE_KEY, 0, -1, withscores=True) in (old, whole.end.keys[LIVE_KEY]), call


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(("do", "done"), [*KILLS, *FAULTS])
def test_i8_every_call_of_a_rebuild(whole: Whole, do: Deed, done: bool) -> None:
    """I8: the same at every outside call, the deeds shared out as ``every`` does."""
    run_again(whole, every(whole.calls, do, done))
