"""I2, I5, I8: a correction killed or failing anywhere, and repeated: one correction, sealed and granted once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.plan import Deed, Plan
from tests.harness.season import Prepared, World
from tests.jobs.kill.cases import CLOSE, FAULTS, KILLS, SOME, Whole, every, run_again, sampled, undisturbed

HELD, CHANGED = 20, 23


def _close(world: World) -> None:
    closed = world.run(*CLOSE)
    assert closed.code == 0, closed


@pytest.fixture(scope="module")
def whole(season: Prepared) -> Iterator[Whole]:
    """The closed season's champion excluded by one undisturbed command."""
    with season.after(_close) as closed:
        with closed.world() as world:
            [player] = [
                bytes(row["player_id"]).decode()
                for row in world.end_state().ledger["grants"]
                if row["item"] == "title.champion"
            ]
        words = ("rewards", "correct", "cup", "s1", "--exclude", player, "--because", "cheated")
        yield undisturbed(closed.world, *words)


def test_an_undisturbed_correction_ends_where_it_should(whole: Whole) -> None:
    """What the others are compared with: one title taken, one given, everybody below moved up; nothing left staged."""
    rows = whole.end.ledger["corrections"]
    assert sorted(row["amount"] for row in rows if row["item"] == "title.champion") == [-1, 1]
    assert sum(row["amount"] for row in rows if row["item"] == "gems") == -10
    assert "seals/cup/s1/correction-0001.json" in whole.end.seals["paths"]
    assert {path.partition("/")[0] for path in whole.end.files} == {"standings", "grants", "corrections", "facts"}
    assert len(whole.end.ledger["corrected"]) == 1
    assert [(row["correction"], row["delivered"]) for row in whole.end.ledger["delivered"]] == [(0, True), (1, True)]


def test_i8_killed_anywhere_the_next_one_ends_the_same(whole: Whole) -> None:
    """I2, I5, I8: killed before or after a call, run again: brought to its end, or done anew, never twice."""
    run_again(whole, sampled(whole.calls, KILLS, 1, "correct"))
    commits = [call for call in whole.calls if call.text == "COMMIT"]
    run_again(whole, [Plan(call, "kill", done=True) for call in commits[-4:]])


@pytest.mark.slow
def test_i8_failing_anywhere_the_next_one_ends_the_same(whole: Whole) -> None:
    """I5, I8: a call fails or times out, done or not."""
    run_again(whole, sampled(whole.calls, SOME[1:], 1, "correct"))


@pytest.mark.slow
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize(("do", "done"), [*KILLS, *FAULTS])
def test_i8_every_call_of_a_correction(whole: Whole, do: Deed, done: bool) -> None:
    """I8: the same at every call, the deeds shared out as ``every`` does."""
    run_again(whole, every(whole.calls, do, done))


def test_i8_a_tick_brings_it_to_its_end(whole: Whole) -> None:
    """Committed and not repeated by anybody: the next tick puts, publishes, grants and delivers it."""
    link = next(call for call in whole.calls if call.text.startswith("link seals/"))
    with whole.worlds() as world:
        assert world.run(*whole.argv, plan=Plan(link, "kill", done=False)).code == -9
        assert world.run("tick").code == 0
        end = world.end_state()
        assert end.ledger["corrections"] == whole.end.ledger["corrections"]
        assert end.seals["paths"] == whole.end.seals["paths"]
        assert end.ledger["delivered"] == whole.end.ledger["delivered"]


def test_i9_of_two_at_once_one_wins(whole: Whole) -> None:
    """I5, I9, C56: started together, one corrects; the other is refused, or finds that nothing differs any more."""
    with whole.worlds() as world, world.running(*whole.argv) as first, world.running(*whole.argv) as second:
        codes = sorted((first.finish().code, second.finish().code))
        assert codes in ([0, 0], [0, HELD], [0, CHANGED])
        assert not world.end_state().differs(whole.end)
