"""I1, I2, I4, I5, I9 in every reachable state of the model, and a planted bug found for each of them."""

from __future__ import annotations

from collections import deque

import pytest

from leaderboard.states import LEAVES, STARTS, State
from tests.model.season_model import BUGS, Model
from tests.model.world import BrokenPromiseError, World, check


def search(model: Model) -> dict[World, list[World]]:
    """Return every reachable world with those that may follow. Raises BrokenPromiseError with the way to it."""
    start = World()
    came_from: dict[World, tuple[World, str] | None] = {start: None}
    graph: dict[World, list[World]] = {}
    waiting = deque([start])
    while waiting:
        world = waiting.popleft()
        graph[world] = []
        told = ""
        try:
            for told, after in model.successors(world):
                check(world, after)
                graph[world].append(after)
                if after not in came_from:
                    came_from[after] = (world, told)
                    waiting.append(after)
        except BrokenPromiseError as error:
            raise BrokenPromiseError(f"{error}\n{_way(came_from, world)}\nthen {told}") from None
    return graph


def _way(came_from: dict[World, tuple[World, str] | None], world: World) -> str:
    steps = []
    while (before := came_from[world]) is not None:
        world, told = before
        steps.append(told)
    return "\n".join(reversed(steps))


def stuck(graph: dict[World, list[World]], most_fences: int) -> set[World]:
    """Return the worlds from which the season cannot be cleaned any more, though another runner might still come."""
    before: dict[World, list[World]] = {}
    for world, following in graph.items():
        for after in following:
            before.setdefault(after, []).append(world)
    reached = {world for world in graph if world.state is State.CLEANED}
    waiting = deque(reached)
    while waiting:
        for world in before.get(waiting.popleft(), ()):
            if world not in reached:
                reached.add(world)
                waiting.append(world)
    left = {world for world in graph if world not in reached and not world.meddled}
    return {world for world in left if world.fence + needed(world) <= most_fences}


def needed(world: World) -> int:
    """Return how many leases it takes at most to end the season: a runner's, and before it that of a release."""
    return 1 + (world.held and world.state is State.FROZEN)


@pytest.mark.parametrize("most_fences", [2, pytest.param(3, marks=[pytest.mark.slow, pytest.mark.timeout(1_800)])])
def test_i1_i2_i4_i5_i9_hold_in_every_reachable_state(most_fences: int) -> None:
    """I1, I2, I4, I5, I8, I9: no interleaving of two runners breaks one; from everywhere the season can be ended."""
    graph = search(Model(most_fences=most_fences))
    assert len(graph) > 5_000
    assert {world.state for world in graph} == set(State) - {State.CANCELLED}
    if most_fences > 2:  # a runner, the lever, and a runner again
        assert any(world.state is State.CLEANED and world.reopened for world in graph)
        assert any(world.state is State.CLEANED and world.corrected for world in graph)
    assert not stuck(graph, most_fences)


#: One of each promise is found in the fast run, by the first fault against it.
_FIRST = {promise: bug for bug, promise in reversed(BUGS.items())}.values()


@pytest.mark.parametrize("bug", [bug if bug in _FIRST else pytest.param(bug, marks=pytest.mark.slow) for bug in BUGS])
def test_a_planted_bug_is_found(bug: str) -> None:
    """The search is no ornament: with each of these faults it finds the promise that breaks."""
    with pytest.raises(BrokenPromiseError, match=BUGS[bug]):
        search(Model(bug, most_fences=2))


def test_a_bug_in_the_transition_table_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model runs on the real table: with the seal skipped in it, the promise of the seal breaks."""
    from leaderboard import states
    from leaderboard.states import Step

    monkeypatch.setitem(LEAVES, Step.RECONCILE, State.SEALED)
    monkeypatch.setitem(STARTS, Step.SEAL, State.RECONCILED)
    monkeypatch.setitem(states.TRANSITIONS, State.SNAPSHOTTED, frozenset({State.SEALED}))
    with pytest.raises((BrokenPromiseError, AssertionError)):
        search(Model(most_fences=2))
