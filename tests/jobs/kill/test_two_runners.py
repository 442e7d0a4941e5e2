"""I9: one runner acts on a season at a time, and one that was taken over changes nothing more."""

from __future__ import annotations

import re
from contextlib import ExitStack

import psycopg
import pytest

from leaderboard.states import Step
from tests.harness.plan import Call, Plan
from tests.harness.season import Prepared, World
from tests.jobs.kill.cases import (
    CLOSE,
    HELD,
    LOST,
    Whole,
    expire,
    outside_transactions,
    sample,
    taken_over_at,
    undisturbed,
)


@pytest.fixture(scope="module")
def whole(season: Prepared) -> Whole:
    """The season closed and cleaned by one undisturbed run."""
    return undisturbed(season.world, *CLOSE)


def _only(whole: Whole, step: Step, text: str) -> Call:
    """Return the first call of the step whose text begins so."""
    return next(call for call in whole.of(step) if call.text.startswith(text))


def test_i9_c56_the_second_of_two_closes_is_told_who_works(whole: Whole) -> None:
    """I9, C56: one works; the other says who holds the lease and since when, with an exit code of its own."""
    plan = Plan(_only(whole, Step.SNAPSHOT, "ZRANGE"), "pause", done=True)
    with whole.worlds() as world, world.running(*CLOSE, plan=plan) as first:
        first.wait_until_paused()
        second = world.run(*CLOSE)
        assert second.code == HELD, second
        said = " ".join(second.err.split())
        assert re.search(
            rf"cup/s1 is being worked on by \S+, process {first.pid} on \S+ since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC",
            said,
        )
        assert "hint:" in said
        assert not whole.unlike(world, first.go_on().finish())


def test_i9_c56_two_closes_at_once_are_one(whole: Whole) -> None:
    """I5, I9, C56: started together, one does it; the other is refused, or finds that nothing is left to do."""
    for _ in range(3):
        with whole.worlds() as world, world.running(*CLOSE) as first, world.running(*CLOSE) as second:
            codes = sorted((first.finish().code, second.finish().code))
            assert codes in ([0, 0], [0, HELD])
            assert not world.end_state().differs(whole.end)


@pytest.mark.parametrize("step", list(Step))
def test_i9_taken_over_in_any_step(whole: Whole, step: Step) -> None:
    """I1, I2, I5, I9: a runner hangs in a step past its lease; another does it all; the first then changes nothing."""
    calls = sample(outside_transactions(whole.of(step)), 1, f"take-over {step}")
    taken_over_at(whole, calls)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("step", list(Step))
def test_i9_taken_over_at_any_call(whole: Whole, step: Step) -> None:
    """I9: the same at every single call that is not within a transaction."""
    taken_over_at(whole, outside_transactions(whole.of(step)))


def test_i9_taken_over_before_its_fence_is_raised(whole: Whole) -> None:
    """I9: a runner that hangs between the lease and the fence leaves no fence behind in Redis."""
    calls = [call for call in whole.calls if call.text.startswith(("EVALSHA fence", "CLIENT SETNAME"))][:2]
    taken_over_at(whole, calls)


def test_i9_a_late_sweep_leaves_what_the_other_has_staged(whole: Whole) -> None:
    """I9: who wakes up before its sweep removes nothing of the grants that the other runner has just staged."""
    sweeping = Call("seal", "store", "list staging/cup/s1", 1)
    sealing = Call("reward", "store", "link seals/cup/s1/grants.json", 1)
    _woken_in_the_middle(whole, sweeping, sealing)


def test_i9_a_late_sweep_does_not_stop_the_other_from_publishing(whole: Whole) -> None:
    """I9: who wakes up publishes the sealed parts and sweeps them; the other, about to read them, finds them there."""
    publishing = Call("seal", "store", "link standings/board=cup/season=s1/part-00000.parquet", 1)
    reading = Call("seal", "store", "read staging/cup/s1/*/part-00000.parquet", 1)
    _woken_in_the_middle(whole, publishing, reading)


def _woken_in_the_middle(whole: Whole, sleeps: Call, meanwhile: Call) -> None:
    """Let one runner sleep, another take over and stop in the middle, the first wake up, and the other go on."""
    with whole.worlds() as world, world.running(*CLOSE, plan=Plan(sleeps, "pause", done=False)) as first:
        first.wait_until_paused()
        expire(world)
        with world.running(*CLOSE, plan=Plan(meanwhile, "pause", done=False)) as second:
            second.wait_until_paused()
            assert first.go_on().finish().code == LOST
            assert not whole.unlike(world, second.go_on().finish())


def test_i9_within_a_transaction_the_take_over_waits(whole: Whole) -> None:
    """I9: who checked its lease in a transaction still commits; who takes over waits that long, and goes on then."""
    record = [call for call in whole.of(Step.SEAL) if call.text == "COMMIT"][-1]
    with whole.worlds() as world, ExitStack() as stack:
        first = stack.enter_context(world.running(*CLOSE, plan=Plan(record, "pause", done=False)))
        first.wait_until_paused()
        expire(world)
        second = stack.enter_context(world.running(*CLOSE))
        _wait_for_a_lock(world)
        assert first.go_on().finish().code == LOST
        outcome = second.finish()
        assert outcome.code == 0, outcome
        # The first may have staged grants before the other had its lease.
        assert not world.end_state().without_staging().differs(whole.end)


def _wait_for_a_lock(world: World) -> None:
    """Return once some session waits for another's lock."""
    with psycopg.connect(world.ledger_url, autocommit=True) as connection:
        while not connection.execute(
            "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        ).fetchone():
            pass
