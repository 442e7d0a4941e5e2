"""I8: a season, from scheduled to cleaned, killed or failing at any outside call, ends the same after another run."""

from __future__ import annotations

import pytest

from leaderboard.states import Step
from tests.harness.calls import BETWEEN
from tests.harness.plan import Deed
from tests.harness.season import Prepared
from tests.jobs.kill.cases import CLOSE, FAULTS, KILLS, Whole, every, run_again, sampled, undisturbed

STEPS = [*map(str, Step), BETWEEN]


@pytest.fixture(scope="module")
def whole(season: Prepared) -> Whole:
    """The season closed and cleaned by one undisturbed run."""
    return undisturbed(season.world, *CLOSE)


def test_an_undisturbed_run_ends_where_it_should(whole: Whole) -> None:
    """What the other runs are compared with: every step once, all archived and granted, nothing left anywhere."""
    assert [row["step"] for row in whole.end.ledger["steps"]] == list(Step)
    assert [row["state"] for row in whole.end.ledger["seasons"]] == ["cleaned", "scheduled"]
    assert whole.end.keys == {b"cup:current": b"leaderboard:cup:s2"}
    assert {path.partition("/")[0] for path in whole.end.files} == {"standings", "grants"}
    assert len(whole.end.files) == 6
    assert whole.end.seals["paths"] == ["seals/cup/s1/grants.json", "seals/cup/s1/standings.json"]
    assert len(whole.end.ledger["grants"]) == len(whole.end.ledger["payable"]) > 2_600
    assert not whole.end.ledger["pending"]
    assert not whole.end.ledger["blocking"]


@pytest.mark.parametrize("step", STEPS)
def test_i8_killed_in_any_step_it_ends_the_same(whole: Whole, step: str) -> None:
    """I1, I2, I5, I8, C78: killed before or after a call, run again: same archive, each grant once, nothing left."""
    run_again(whole, sampled(whole.of(step), [KILLS[STEPS.index(step) % len(KILLS)]], 1, step))


@pytest.mark.parametrize("step", STEPS)
def test_i8_failing_in_any_step_it_ends_the_same(whole: Whole, step: str) -> None:
    """I5, I8, C21: a call fails or times out, done or not: told in an operator's words, and the next run goes on."""
    run_again(whole, sampled(whole.of(step), [FAULTS[STEPS.index(step) % len(FAULTS)]], 1, step))


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(("do", "done"), [*KILLS, *FAULTS])
@pytest.mark.parametrize("step", STEPS)
def test_i8_every_call_of_every_step(whole: Whole, step: str, do: Deed, done: bool) -> None:
    """I8: the same at every outside call of a season, the deeds shared out as ``every`` does."""
    run_again(whole, every(whole.of(step), do, done))
