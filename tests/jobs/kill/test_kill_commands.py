"""I8 for the commands beside close: adopt, clean --again, the freeze by renaming, tick. Killed anywhere, run again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import psycopg
import pytest
import redis

from leaderboard.states import Step
from tests.harness.plan import Call, Deed, Plan
from tests.harness.season import CONFIG, Prepared, World
from tests.jobs.kill.cases import CLOSE, FAULTS, KILLS, SOME, Whole, every, run_again, sampled, undisturbed

LIVE_KEY, ADOPTED = "leaderboard:cup:s1", "lb:2019"
ADOPT = ("archive", "adopt", ADOPTED, "--board", "old", "--season", "s2019")
OLD = """
[board.old]
ledger = "none"
ties = "shared"
ahead = 1
calendar = { every = "year" }
"""
RENAMES = CONFIG.replace("[board.cup]", '[board.cup]\nfreeze = "rename"')


@pytest.fixture(scope="module")
def adopting(season: Prepared) -> Whole:
    """A sorted set that Finale never opened, adopted by one undisturbed run."""

    @contextmanager
    def worlds() -> Iterator[World]:
        with season.world(config=CONFIG + OLD) as world, redis.Redis.from_url(world.redis_url) as client:
            client.zadd(ADOPTED, {f"p{number:04d}": number // 3 for number in range(1_500)})
            yield world

    return undisturbed(worlds, *ADOPT)


@pytest.fixture(scope="module")
def again(season: Prepared) -> Whole:
    """A cleaned season whose live key a failover has brought back, cleaned again by one undisturbed run."""

    @contextmanager
    def worlds() -> Iterator[World]:
        with season.world() as world, redis.Redis.from_url(world.redis_url) as client:
            assert world.run(*CLOSE, "--until", "deliver").code == 0
            key = client.dump(LIVE_KEY)
            assert world.run(*CLOSE).code == 0
            assert not client.exists(LIVE_KEY)
            client.restore(LIVE_KEY, 0, key)  # type: ignore[arg-type]  # redis-py's own answer
            yield world

    return undisturbed(worlds, "clean", "cup", "s1", "--again")


@pytest.fixture(scope="module")
def renaming(season: Prepared) -> Whole:
    """The season of a board that is frozen by renaming, closed by one undisturbed run."""
    return undisturbed(partial(season.world, config=RENAMES), *CLOSE)


@pytest.fixture(scope="module")
def ticking(season: Prepared) -> Whole:
    """The season closed by one undisturbed tick, as a scheduler would that had run all the time."""

    @contextmanager
    def worlds() -> Iterator[World]:
        with season.world() as world, psycopg.connect(world.ledger_url, autocommit=True) as ledger:
            ledger.execute("update finale.season set backfill = false")
            yield world

    return undisturbed(worlds, "tick")


def test_the_undisturbed_runs_end_where_they_should(
    adopting: Whole, again: Whole, renaming: Whole, ticking: Whole
) -> None:
    """What the others are compared with: sealed, cleaned again, cleaned, cleaned."""
    states = {
        (row["board"], row["season"]): row["state"]
        for whole in (adopting, again, renaming, ticking)
        for row in whole.end.ledger["seasons"]
        if row["season"] in ("s1", "s2019") and (row["board"] == "old") is (whole is adopting)
    }
    assert states == {("old", "s2019"): "sealed", ("cup", "s1"): "cleaned"}
    assert len(adopting.end.keys[ADOPTED.encode()]) == 1_500
    assert not [key for whole in (again, renaming, ticking) for key in whole.end.keys if b"cup:s1" in key]


@pytest.mark.slow
def test_i8_an_adoption(adopting: Whole) -> None:
    """I2, I8: the key is never written to, and sealed once."""
    run_again(adopting, sampled(adopting.calls, SOME, 2, "adopt"))
    opening = next(call for call in adopting.calls if call.text.startswith("insert into finale.season "))
    run_again(adopting, [Plan(opening, "kill", done=True)])  # its number is used up


@pytest.mark.slow
def test_i1_i8_a_clean_of_a_key_that_is_back(again: Whole) -> None:
    """I1, I8: it goes, proved equal, and its helpers with it, however often that was begun."""
    run_again(again, sampled(again.calls, SOME, 2, "again"))


@pytest.mark.slow
@pytest.mark.parametrize("step", [Step.FREEZE, Step.CLEAN])
def test_i8_a_freeze_by_renaming(renaming: Whole, step: Step) -> None:
    """I1, I8: the rows get their private name once, and go from there."""
    run_again(renaming, sampled(of_redis(renaming, step), SOME, 2, f"rename {step}"))


def test_i8_a_tick(ticking: Whole) -> None:
    """I8: whatever a tick was doing when it was killed, the next one ends it; after a failure it would wait."""
    run_again(ticking, sampled(ticking.calls, KILLS, 1, "tick"))


def of_redis(whole: Whole, step: Step) -> list[Call]:
    return [call for call in whole.of(step) if call.kind == "redis"]


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(("do", "done"), [*KILLS, *FAULTS])
def test_i8_every_call_of_these_commands(
    adopting: Whole, again: Whole, renaming: Whole, ticking: Whole, do: Deed, done: bool
) -> None:
    """I8: the same, shared out, in an adoption, a clean again, a freeze by renaming, and what a tick adds."""
    between = [call for call in ticking.calls if call.step not in list(Step)] if do == "kill" else []
    for whole, calls in (
        (adopting, list(adopting.calls)),
        (again, list(again.calls)),
        (renaming, renaming.of(Step.FREEZE)),
        (ticking, between),
    ):
        if calls:
            run_again(whole, every(calls, do, done))
