"""The transition table: forward only, but for two levers."""

from itertools import pairwise

import pytest

from leaderboard.states import (
    LEAVES,
    ORDER,
    STARTS,
    TAKES_RESULTS,
    TERMINAL,
    TRANSITIONS,
    State,
    Step,
    may_follow,
    reached,
    step_from,
)

FORWARD = set(pairwise(ORDER))
REOPEN = {(state, State.OPEN) for state in (State.CLOSING, State.FROZEN, State.SNAPSHOTTED, State.RECONCILED)}
REPAIR = {(state, State.FROZEN) for state in (State.SNAPSHOTTED, State.RECONCILED)}
CANCEL = {(State.SCHEDULED, State.CANCELLED)}


def test_the_transitions_are_the_next_state_the_two_levers_and_cancelling_what_never_opened():
    table = {(before, after) for before, followers in TRANSITIONS.items() for after in followers}
    assert table == FORWARD | REOPEN | REPAIR | CANCEL
    assert set(TRANSITIONS) == set(State)


def test_may_follow_is_the_table():
    for before in State:
        for after in State:
            assert may_follow(before, after) == ((before, after) in FORWARD | REOPEN | REPAIR | CANCEL)


def test_i2_nothing_leads_back_from_a_sealed_season():
    """I2: once sealed, every state that can ever follow is a later one."""
    for state in ORDER[ORDER.index(State.SEALED) :]:
        assert all(ORDER.index(after) == ORDER.index(state) + 1 for after in TRANSITIONS[state])


@pytest.mark.parametrize("step", Step)
def test_each_step_starts_where_the_one_before_ends_and_may_leave_what_it_leaves(step):
    assert LEAVES[step] in TRANSITIONS[STARTS[step]]
    assert step_from(STARTS[step]) is step
    assert reached(LEAVES[step], STARTS[step])
    assert not reached(STARTS[step], LEAVES[step])


def test_the_steps_lead_from_scheduled_to_cleaned_in_one_chain():
    assert [STARTS[step] for step in Step] == list(ORDER[:-1])
    assert [LEAVES[step] for step in Step] == list(ORDER[1:])
    assert (ORDER[0], ORDER[-1]) == (State.SCHEDULED, State.CLEANED)


def test_a_season_ends_where_nothing_follows():
    assert {state for state in State if not TRANSITIONS[state]} == TERMINAL
    assert all(step_from(state) is None for state in TERMINAL)


def test_a_cancelled_season_reaches_nothing_else():
    for state in ORDER:
        assert not reached(State.CANCELLED, state)
        assert not reached(state, State.CANCELLED)
    assert reached(State.CANCELLED, State.CANCELLED)


def test_i6_results_count_only_before_the_freeze():
    """I6: what comes to a frozen season or later is late."""
    assert {state for state in ORDER if not reached(state, State.FROZEN)} == TAKES_RESULTS
