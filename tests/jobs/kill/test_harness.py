"""The harness itself: what it counts, and that killed, failing and paused calls have their effect, or have it not."""

from __future__ import annotations

import signal

import pytest
import redis

from leaderboard.keys import helper_key
from tests.harness.plan import Call, Deed, Plan
from tests.harness.run import HungError
from tests.harness.season import Prepared, World
from tests.jobs.kill.cases import CLOSE, FAULTS, KILLS, every

OPEN = (*CLOSE, "--until", "open")
SEAL = (*CLOSE, "--until", "seal")
COMMIT = Call("open", "postgres", "COMMIT", 2)
RAISE_FENCE = Call("between", "redis", "EVAL a script", 1)
LINK = Call("seal", "store", "link seals/cup/s1/standings.json", 1)
DEEDS: list[tuple[Deed, bool, int]] = [
    ("kill", False, -signal.SIGKILL),
    ("kill", True, -signal.SIGKILL),
    ("fail", False, 12),
    ("fail", True, 12),
    ("timeout", False, 12),
    ("timeout", True, 12),
]


def _state(world: World) -> str:
    with world.outside() as found:
        row = found.database.run(b"select state from finale.season where season = 's1'")[0]
        return str(row["state"])


def test_every_kind_of_call_is_counted_with_its_step(season: Prepared) -> None:
    """Redis, PostgreSQL, ADBC and the store, each in the step that made it; no call is there twice."""
    with season.world() as world:
        calls = world.run(*CLOSE).calls
    assert len(set(calls)) == len(calls)
    for known in (
        COMMIT,
        RAISE_FENCE,
        LINK,
        Call("between", "postgres", "connect", 1),
        Call("snapshot", "redis", "ZRANGE leaderboard:cup:s1", 6),
        Call("snapshot", "store", "sync .incoming/*", 3),
        Call("snapshot", "store", "link staging/cup/s1/*/part-00002.parquet", 1),
        Call("reconcile", "adbc", "connect", 1),
        Call("reward", "postgres", "end of copy", 1),
        Call("clean", "redis", "UNLINK leaderboard:cup:s1", 1),
        Call("clean", "redis", "EXEC", 1),
    ):
        assert known in calls


@pytest.mark.parametrize(("do", "done", "code"), DEEDS)
def test_a_statement_is_done_or_not(season: Prepared, do: Deed, done: bool, code: int) -> None:
    """A commit that is not done leaves the season where it was; one that is done has moved it on, told or not."""
    with season.world() as world:
        outcome = world.run(*OPEN, plan=Plan(COMMIT, do, done))
        assert outcome.hit and outcome.code == code, outcome
        assert _state(world) == ("open" if done else "scheduled")


@pytest.mark.parametrize(("do", "done", "code"), DEEDS)
def test_a_command_is_done_or_not(season: Prepared, do: Deed, done: bool, code: int) -> None:
    """A fence that is not raised is not there; one that is raised is, told or not."""
    with season.world() as world, redis.Redis.from_url(world.redis_url) as client:
        outcome = world.run(*OPEN, plan=Plan(RAISE_FENCE, do, done))
        assert outcome.hit and outcome.code == (code if do == "kill" else 10), outcome
        assert client.exists(helper_key("leaderboard:cup:s1", "fence")) == done


@pytest.mark.parametrize(("do", "done", "code"), DEEDS)
def test_a_system_call_of_the_folder_is_done_or_not(season: Prepared, do: Deed, done: bool, code: int) -> None:
    """A seal that is not linked is not there; one that is, is, told or not."""
    with season.world() as world:
        outcome = world.run(*SEAL, plan=Plan(LINK, do, done))
        assert outcome.hit
        assert (outcome.code == code) == (do == "kill"), outcome
        assert (world.folder / "store/seals/cup/s1/standings.json").exists() == done


def test_a_paused_command_goes_on_when_told(season: Prepared) -> None:
    """It stands at its call, which others see undone, and then ends as if nothing had been."""
    with season.world() as world, world.running(*OPEN, plan=Plan(COMMIT, "pause", done=False)) as command:
        command.wait_until_paused()
        assert _state(world) == "scheduled"
        assert command.go_on().finish().code == 0
        assert _state(world) == "open"


def test_a_pause_that_never_comes_is_told(season: Prepared) -> None:
    """A plan for a call that is not made fails the test instead of hanging it."""
    nowhere = Plan(Call("open", "redis", "FLUSHALL", 1), "pause", done=False)
    with (
        season.world() as world,
        world.running(*OPEN, plan=nowhere) as command,
        pytest.raises(HungError, match="did not come to its pause"),
    ):
        command.wait_until_paused()


def test_the_sweeps_together_kill_and_fail_every_call() -> None:
    """Shared out over the deeds: each call is killed after, and fails in exactly one way; every deed has its calls."""
    calls = [Call("freeze", "redis", "PING", nth) for nth in range(1, 20)]
    plans = {deed: [plan.call for plan in every(calls, *deed)] for deed in (*KILLS, *FAULTS)}
    assert plans["kill", True] == calls
    assert sorted(call.nth for deed in FAULTS for call in plans[deed]) == list(range(1, 20))
    assert min(map(len, plans.values())) == 4
