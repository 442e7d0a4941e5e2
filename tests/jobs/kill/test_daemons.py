"""I8, I9, C56: ``finale run`` as processes: killed, stopped past its lease, told to end, several of them at once."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest

from leaderboard.states import Step
from tests.harness.endstate import EndState
from tests.harness.plan import Call, Plan
from tests.harness.run import Running
from tests.harness.season import CONFIG, Prepared, World
from tests.jobs.kill.cases import Whole, outside_transactions, sample, undisturbed
from tests.ledger.support import await_that

RUN = ("run", "--as", "scheduler")
SCHEDULED = CONFIG.replace('lease = "5m"', 'lease = "1s"\ninterval = "1s"\nstop_within = "20s"').replace(
    "starts_at = 2022-01-01T00:00:00, ends_at = 2050", "starts_at = 2049-01-01T00:00:00, ends_at = 2050"
)


@contextmanager
def _missed(season: Prepared, config: str = SCHEDULED) -> Iterator[World]:
    """Give a world in which the season ended while nothing ran."""
    with season.world(config=config) as world:
        with psycopg.connect(world.ledger_url, autocommit=True) as connection:
            connection.execute("update finale.season set backfill = false")
        yield world


@pytest.fixture(scope="module")
def whole(season: Prepared) -> Whole:
    """The season closed and cleaned by one undisturbed tick: what every run of daemons must come to."""
    return undisturbed(lambda: _missed(season), "tick")


def _state(world: World) -> str:
    with psycopg.connect(world.ledger_url, autocommit=True) as connection:
        (state,) = connection.execute("select state from finale.season where season = 's1'").fetchone() or ("",)
        return str(state)


def _cleaned(world: World) -> Callable[[], bool]:
    return lambda: _state(world) == "cleaned"


def _ended_by_sigterm(daemon: Running) -> str:
    """Tell the daemon to end, and return what it logged. It must end well."""
    os.kill(daemon.pid, signal.SIGTERM)
    outcome = daemon.finish()
    assert outcome.code == 0, outcome
    return outcome.err


def _unlike(world: World, whole: Whole) -> str:
    """Return how the end differs; ``attempts`` and the like may not."""
    return world.end_state().without_staging().differs(whole.end.without_staging())


def _first_of(whole: Whole, step: Step) -> Call:
    (call,) = sample(outside_transactions(whole.of(step)), 1, f"daemon {step}")
    return call


def test_one_daemon_runs_a_season_and_ends_when_told(whole: Whole) -> None:
    """A daemon alone comes to the end state of a tick; SIGTERM ends it with exit code 0, and every line is JSON."""
    with whole.worlds() as world, world.running(*RUN) as daemon:
        await_that(_cleaned(world))
        said = _ended_by_sigterm(daemon)
        assert not _unlike(world, whole)
    events = [json.loads(line)["event"] for line in said.splitlines()]
    assert (events[0], events[-1]) == ("run.started", "run.stopped") and "run.stopping" in events
    assert events.count("step.done") == len(Step)


def _steps(*quick: Step) -> list[Any]:
    """Return every step, all but a few of them marked as slow."""
    return [pytest.param(step, marks=() if step in quick else pytest.mark.slow) for step in Step]


@pytest.mark.parametrize("step", _steps(Step.FREEZE, Step.SEAL))
def test_i8_c56_the_holder_is_killed_in_a_step_and_the_other_goes_on(whole: Whole, step: Step) -> None:
    """I5, I8, C56: kill -9 within the step; another daemon, already running, ends the season as if nothing had been."""
    plan = Plan(_first_of(whole, step), "pause", done=False)
    with whole.worlds() as world, ExitStack() as stack:
        first = stack.enter_context(world.running(*RUN, plan=plan)).wait_until_paused()
        second = stack.enter_context(world.running(*RUN))
        os.kill(first.pid, signal.SIGKILL)
        await_that(_cleaned(world))
        assert first.finish().code == -signal.SIGKILL
        _ended_by_sigterm(second)
        assert not _unlike(world, whole)


@pytest.mark.parametrize("step", _steps(Step.SNAPSHOT, Step.REWARD))
def test_i9_stopped_past_its_lease_it_changes_nothing(whole: Whole, step: Step) -> None:
    """I1, I2, I5, I9: SIGSTOP in a step until another daemon has done it all; let go on, it changes nothing more."""
    plan = Plan(_first_of(whole, step), "pause", done=False)
    with whole.worlds() as world, ExitStack() as stack:
        first = stack.enter_context(world.running(*RUN, plan=plan)).wait_until_paused()
        os.kill(first.pid, signal.SIGSTOP)
        second = stack.enter_context(world.running(*RUN))
        await_that(_cleaned(world))
        _ended_by_sigterm(second)
        before: EndState = world.end_state().without_staging()
        assert not before.differs(whole.end.without_staging())
        os.kill(first.pid, signal.SIGCONT)
        said = _ended_by_sigterm(first.go_on())
        assert "LeaseLostError" in said
        assert not world.end_state().without_staging().differs(before)


def test_sigterm_finishes_the_step_and_gives_the_lease_back(whole: Whole) -> None:
    """The step under way is recorded, the next one is not begun, and no lease is left to be waited for."""
    plan = Plan(_first_of(whole, Step.SNAPSHOT), "pause", done=False)
    with whole.worlds() as world, world.running(*RUN, plan=plan) as daemon:
        daemon.wait_until_paused()
        os.kill(daemon.pid, signal.SIGTERM)
        assert daemon.go_on().finish().code == 0
        assert _state(world) == "snapshotted"
        assert world.end_state().ledger["blocking"] == []
        assert not whole.unlike(world, world.run("tick"))


def test_sigterm_hands_over_a_step_that_does_not_end(season: Prepared, whole: Whole) -> None:
    """I9: a step that outlasts ``stop_within`` is left: the lease is given back, the process ends, another goes on."""
    config = SCHEDULED.replace('stop_within = "20s"', 'stop_within = "1s"').replace('lease = "1s"', 'lease = "5m"')
    plan = Plan(_first_of(whole, Step.SNAPSHOT), "pause", done=False)
    with _missed(season, config) as world, world.running(*RUN, plan=plan) as daemon:
        daemon.wait_until_paused()
        os.kill(daemon.pid, signal.SIGTERM)
        outcome = daemon.finish()
        assert outcome.code == 0, outcome
        assert "run.handed_over" in outcome.err
        assert world.end_state().ledger["blocking"] == []
        assert world.run("tick").code == 0
        assert not _unlike(world, whole)
