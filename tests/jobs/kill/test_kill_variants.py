"""I8 where a season ends in another way: in a bucket, with an expiring key, or kept and cleaned later by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from leaderboard.states import Step
from tests.harness.plan import Deed
from tests.harness.season import CONFIG, Prepared, Store, World
from tests.jobs.kill.cases import CLOSE, FAULTS, KILLS, SOME, Whole, every, run_again, sampled, undisturbed
from tests.support.s3 import S3Server, s3_server

CLEAN_NOW = ("clean", "cup", "s1", "--now")
LIVE_KEY = b"leaderboard:cup:s1"
EXPIRING = b"{leaderboard:cup:s1}:finale:expiring"
STORING = (Step.SNAPSHOT, Step.SEAL, Step.REWARD)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    """A server that speaks S3."""
    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def in_a_bucket(season: Prepared, s3: S3Server) -> Whole:
    """The season closed into a bucket of its own."""

    @contextmanager
    def worlds() -> Iterator[World]:
        with season.world(store=Store(f"s3://{s3.bucket()}/archive", s3.environ)) as world:
            yield world

    return undisturbed(worlds, *CLOSE)


@pytest.fixture(scope="module")
def expiring(season: Prepared) -> Whole:
    """The season closed; its live key expires under a private name."""
    config = CONFIG.replace("[board.cup]", '[board.cup]\ncleanup = "expire"')
    return undisturbed(partial(season.world, config=config), *CLOSE)


@pytest.fixture(scope="module")
def kept(season: Prepared) -> Whole:
    """The season was closed and its key is kept for a week; an operator cleans it at once."""

    @contextmanager
    def worlds() -> Iterator[World]:
        with season.world(config=CONFIG.replace('keep_live = "0s"', 'keep_live = "7d"')) as world:
            closed = world.run(*CLOSE)
            assert closed.code == 0, closed
            assert len(world.end_state().keys[LIVE_KEY]) == 2_600
            yield world

    return undisturbed(worlds, *CLEAN_NOW)


@pytest.mark.parametrize(
    "step", [step if step is Step.SEAL else pytest.param(step, marks=pytest.mark.slow) for step in STORING]
)
def test_i2_i8_in_a_bucket(in_a_bucket: Whole, step: Step) -> None:
    """I2, I8, C42: a request to the store that is killed or fails, done or not: the next run ends the same."""
    requests = [call for call in in_a_bucket.of(step) if call.kind == "store"]
    run_again(in_a_bucket, sampled(requests, SOME, 1, step))


def test_a_bucket_holds_what_a_folder_does(season: Prepared, in_a_bucket: Whole) -> None:
    """The same files to the byte, the same seals but for their times, nothing staged."""
    folder = undisturbed(season.world, *CLOSE)
    assert not in_a_bucket.end.differs(folder.end)


@pytest.mark.slow
def test_i1_i8_with_a_key_that_expires(expiring: Whole) -> None:
    """I1, I8, C13: the live key is moved to its private name once, whole, whatever happens to the step."""
    assert LIVE_KEY not in expiring.end.keys
    assert len(expiring.end.keys[EXPIRING]) == 2_600
    run_again(expiring, sampled(expiring.of(Step.CLEAN), SOME, 1, "expiring"))


@pytest.mark.slow
def test_i1_i8_cleaned_later_by_hand(kept: Whole) -> None:
    """I1, I8: the same when an operator cuts the retention short."""
    assert LIVE_KEY not in kept.end.keys
    run_again(kept, sampled(kept.calls, SOME, 1, "kept"))


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(("do", "done"), [*KILLS, *FAULTS])
def test_i8_every_call_of_the_variants(in_a_bucket: Whole, expiring: Whole, kept: Whole, do: Deed, done: bool) -> None:
    """I8: the same, shared out, at every request to a bucket, call while a key expires, and call of a clean by hand."""
    requests = [call for call in in_a_bucket.calls if call.kind == "store"]
    for whole, calls in ((in_a_bucket, requests), (expiring, expiring.of(Step.CLEAN)), (kept, list(kept.calls))):
        run_again(whole, every(calls, do, done))
