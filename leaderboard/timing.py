"""When a season goes on: the step that it takes next, from when on, and whether without a person (I7)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from leaderboard.states import State, Step, reached, step_from


@dataclass(frozen=True, slots=True)
class Timing:
    """What decides it, as stored with the season: its state, its bounds, and how it came to be. All times are UTC."""

    state: State
    starts_at: datetime
    ends_at: datetime
    closes_at: datetime
    keep_until: datetime | None
    retry_at: datetime | None
    backfill: bool
    adopted: bool

    @property
    def step(self) -> Step | None:
        """The step that comes next; None once the season has ended."""
        return step_from(self.state)

    @property
    def waits_until(self) -> datetime | None:
        """The stored instant from which that step may be taken; None for one that follows the step before at once."""
        match self.step:
            case Step.OPEN:
                return self.starts_at
            case Step.CLOSE:
                return self.ends_at
            case Step.FREEZE:
                return self.closes_at
            case Step.CLEAN:
                return self.keep_until
            case _:
                return None

    @property
    def due_since(self) -> datetime | None:
        """Since when, or from when on, that step is due; one that waits for no time of its own, since the grace."""
        return self.waits_until if self.step in (None, Step.CLEAN) else self.waits_until or self.closes_at

    @property
    def by_hand(self) -> bool:
        """Whether only a person takes that step: of a backfill before its seal, and of an adopted key."""
        if self.adopted:
            return not reached(self.state, State.DELIVERED) or (
                self.state is State.DELIVERED and self.keep_until is None
            )
        return self.backfill and not reached(self.state, State.SEALED)

    def is_due(self, now: datetime) -> bool:
        """Return whether that step may be taken at ``now`` without a person."""
        if self.step is None or self.by_hand or (self.retry_at is not None and self.retry_at > now):
            return False
        at = self.waits_until
        return at is None or at <= now
