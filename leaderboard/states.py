"""The states of a season, the steps between them, and the only transitions there are."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    SCHEDULED = "scheduled"
    OPEN = "open"
    CLOSING = "closing"
    FROZEN = "frozen"
    SNAPSHOTTED = "snapshotted"
    RECONCILED = "reconciled"
    SEALED = "sealed"
    REWARDED = "rewarded"
    DELIVERED = "delivered"
    CLEANED = "cleaned"
    CANCELLED = "cancelled"


class Step(StrEnum):
    OPEN = "open"
    CLOSE = "close"
    FREEZE = "freeze"
    SNAPSHOT = "snapshot"
    RECONCILE = "reconcile"
    SEAL = "seal"
    REWARD = "reward"
    DELIVER = "deliver"
    CLEAN = "clean"


ORDER: tuple[State, ...] = tuple(state for state in State if state is not State.CANCELLED)

#: The state that each step leaves behind; it starts from the one before.
LEAVES: dict[Step, State] = dict(zip(Step, ORDER[1:], strict=True))
STARTS: dict[Step, State] = dict(zip(Step, ORDER[:-1], strict=True))

#: What may follow each state. Forward only, but for the two levers before the seal: repair (back to frozen) and
#: reopen (back to open). Holds, attempts and the last error are columns of the season, not states.
TRANSITIONS: dict[State, frozenset[State]] = {
    State.SCHEDULED: frozenset({State.OPEN, State.CANCELLED}),
    State.OPEN: frozenset({State.CLOSING}),
    State.CLOSING: frozenset({State.FROZEN, State.OPEN}),
    State.FROZEN: frozenset({State.SNAPSHOTTED, State.OPEN}),
    State.SNAPSHOTTED: frozenset({State.RECONCILED, State.FROZEN, State.OPEN}),
    State.RECONCILED: frozenset({State.SEALED, State.FROZEN, State.OPEN}),
    State.SEALED: frozenset({State.REWARDED}),
    State.REWARDED: frozenset({State.DELIVERED}),
    State.DELIVERED: frozenset({State.CLEANED}),
    State.CLEANED: frozenset(),
    State.CANCELLED: frozenset(),
}

TERMINAL = frozenset({State.CLEANED, State.CANCELLED})

#: States in which a result played within the bounds still counts, unless the freeze has been marked.
TAKES_RESULTS = frozenset({State.SCHEDULED, State.OPEN, State.CLOSING})


def may_follow(before: State, after: State) -> bool:
    """Return whether a season may go from ``before`` to ``after`` in one transition."""
    return after in TRANSITIONS[before]


def step_from(state: State) -> Step | None:
    """Return the step that a season in ``state`` takes next; None when it has ended."""
    return next((step for step, start in STARTS.items() if start is state), None)


def reached(state: State, goal: State) -> bool:
    """Return whether ``state`` is ``goal`` or later on the way from scheduled to cleaned."""
    if state is State.CANCELLED or goal is State.CANCELLED:
        return state is goal
    return ORDER.index(state) >= ORDER.index(goal)
