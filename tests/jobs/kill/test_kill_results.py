"""I6, I8: a void and a prune killed or failing at any outside call, and run again: they end as undisturbed ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.harness.plan import Call, Deed
from tests.harness.season import Prepared, World
from tests.jobs.kill.cases import CLOSE, FAULTS, KILLS, SOME, Whole, every, run_again, sampled, undisturbed

MATCH = "m7-0"
VOID = ("results", "void", MATCH, "--board", "cup", "--because", "the server crashed")
PRUNE = ("ledger", "prune")


@pytest.fixture(scope="module")
def voiding(season: Prepared) -> Whole:
    """A match of a running season voided by one undisturbed command."""
    return undisturbed(season.world, *VOID)


@pytest.fixture(scope="module")
def pruning(season: Prepared) -> Whole:
    """The closed season's results pruned by one undisturbed command."""

    @contextmanager
    def worlds() -> Iterator[World]:
        with season.world() as world:
            closed = world.run(*CLOSE)
            assert closed.code == 0, closed
            yield world

    return undisturbed(worlds, *PRUNE)


def test_an_undisturbed_void_ends_where_it_should(season: Prepared, voiding: Whole) -> None:
    """I6: the match counts no more, the journal has it once, and Redis has every total, also those that waited."""
    end = voiding.end
    assert [row["match_id"] for row in end.ledger["voids"]] == [MATCH]
    assert [row["match_id"] for row in end.ledger["matches"] if row["voided"]] == [MATCH]
    assert len(end.ledger["told"]) == 1 and not end.ledger["pending"]
    board = {member for member, _ in end.keys[b"leaderboard:cup:s1"]}
    assert board == {bytes(row["player_id"]) for row in end.ledger["totals"]}


def test_an_undisturbed_prune_ends_where_it_should(pruning: Whole) -> None:
    """I6: no result is left in the ledger, each is in a sealed part, the totals are untouched."""
    end = pruning.end
    assert not end.ledger["matches"] and end.ledger["totals"]
    assert [row["pruned"] for row in end.ledger["seasons"] if row["season"] == "s1"] == [True]
    assert "seals/cup/s1/results.json" in end.seals["paths"]
    assert any(path.startswith("results/board=cup/season=s1/") for path in end.files)


def test_i8_a_void_killed_anywhere(voiding: Whole) -> None:
    """I6, I8: killed before or after a call, voided again: once, and the live board follows."""
    run_again(voiding, sampled(voiding.calls, KILLS, 3, "void"))


@pytest.mark.slow
def test_i8_a_void_failing_anywhere(voiding: Whole) -> None:
    """I6, I8: a call fails or times out, done or not."""
    run_again(voiding, sampled(voiding.calls, SOME[1:], 2, "void"))


def test_i8_a_void_killed_once_it_is_committed(voiding: Whole) -> None:
    """I8: the void stands and the board has not followed yet: voiding again brings it there."""
    commits = [call for call in voiding.calls if call.text == "COMMIT"]
    run_again(voiding, every(commits, "kill", True))


def test_i8_a_prune_killed_where_it_writes(pruning: Whole) -> None:
    """I6, I8: killed after seal, part, a batch of removals or the last commit: sealed once, and nothing left over."""
    run_again(pruning, sampled(_writes(pruning), KILLS[1:], 3, "prune"))


@pytest.mark.slow
def test_i8_a_prune_failing_anywhere(pruning: Whole) -> None:
    """I6, I8: a call fails or times out, done or not: a result is removed only once it is sealed."""
    run_again(pruning, sampled(pruning.calls, SOME[1:], 1, "prune"))


def _writes(whole: Whole) -> list[Call]:
    words = ("COMMIT", "with gone", "insert", "update")
    return [call for call in whole.calls if call.kind == "store" or call.text.startswith(words)]


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(("do", "done"), [*KILLS, *FAULTS])
def test_i8_every_call_of_a_void_and_a_prune(voiding: Whole, pruning: Whole, do: Deed, done: bool) -> None:
    """I6, I8: the same at every one of their calls."""
    for whole in (voiding, pruning):
        run_again(whole, every(whole.calls, do, done))
