"""A season: its bounds, and its row in the ledger as everything else sees it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from leaderboard import keys
from leaderboard.board import Board
from leaderboard.names import check_name
from leaderboard.states import State, reached


@dataclass(frozen=True, slots=True, order=True)
class Bounds:
    """A season's id and its half-open UTC bounds ``[starts_at, ends_at)``."""

    starts_at: datetime
    ends_at: datetime
    id: str

    def __post_init__(self) -> None:
        check_name(self.id, "season")
        if self.starts_at.utcoffset() is None or self.ends_at.utcoffset() is None:
            raise ValueError(f"season {self.id}: bounds must be aware")
        if self.starts_at >= self.ends_at:
            raise ValueError(f"season {self.id} ends at {self.ends_at.isoformat()}, not after its start")

    def __contains__(self, instant: datetime) -> bool:
        return self.starts_at <= instant < self.ends_at


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a season waits for a person, since when, and what releases it."""

    reason: str
    detail: str
    hint: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Season:
    """A season as the ledger has it. All times are aware UTC."""

    key: int  #: the ledger's number of the season
    board: Board  #: as fixed when the season opened, the rest as configured when it closes
    bounds: Bounds
    state: State
    live_key: str  #: the name under which players' results are written
    closes_at: datetime  #: the end of grace
    backfill: bool  #: first seen after its grace: only ``finale close`` closes it
    frozen_at: datetime | None
    sealed_at: datetime | None
    keep_until: datetime | None  #: when clean is due; known once sealed, and never for an adopted key unless asked for
    hold: Hold | None
    attempts: int
    last_error: str | None
    adopted: bool = False  #: a key that Finale never opened: it writes nothing to it, and goes on only when told to

    @property
    def id(self) -> str:
        return self.bounds.id

    @property
    def renames(self) -> bool:
        """Whether the freeze gives what was played a private name. An adopted key keeps its own."""
        return self.board.freeze == "rename" and not self.adopted

    @property
    def own_key(self) -> str:
        """The one name that is this season's alone, whatever its state; its helper keys stand beside that."""
        return keys.frozen_key(self.live_key, self.id) if self.renames else self.live_key

    @property
    def standing_key(self) -> str:
        """Where the season's rows are: under the live key, and once frozen under its own key."""
        return self.own_key if reached(self.state, State.FROZEN) else self.live_key

    @property
    def late_key(self) -> str | None:
        """The old name of a frozen season, under which nothing should be written any more.

        None where there is no such name: rows are still there, or the next season's come to be.
        """
        moved = self.renames and not self.board.shares_key and reached(self.state, State.FROZEN)
        return self.live_key if moved else None

    @property
    def name(self) -> str:
        """``board/season``, as messages and logs name it."""
        return f"{self.board.name}/{self.id}"
