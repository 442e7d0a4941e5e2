"""What a step decides from its facts: act, wait, hold, or find that it is done already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leaderboard.board import Board
    from leaderboard.states import State

#: Under which name the result of a repair is kept, which later steps read, and the event by which the journal has it.
REPAIR, REPAIRED = "repair", "repaired"
#: Where a comparison that holds the season leaves what it counted, for whoever watches.
DRIFT = "drift"


@dataclass(frozen=True, slots=True)
class Act:
    """Do the step's one effect; ``why`` says what it will do, the same in a dry run."""

    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Not before ``until``; None: not before a person says so. ``why`` tells either."""

    until: datetime | None
    why: str


@dataclass(frozen=True, slots=True)
class Held:
    """A person must decide: why, what was found, and what releases it."""

    reason: str
    detail: str
    hint: str


Verdict = Act | Wait | Held


@dataclass(frozen=True, slots=True)
class Done:
    """What a step leaves behind: its result for later steps, and the columns of the season that it sets."""

    result: Mapping[str, Any]
    figures: str  #: one line for a person
    warnings: tuple[str, ...] = ()  #: what a person should look after, though the step went well
    definition: Board | None = None
    live_key: str | None = None
    sealed_at: datetime | None = None
    keep_until: datetime | None = None
    back_to: State | None = None  #: instead of the step's own: what was found was repaired, and is looked at again
