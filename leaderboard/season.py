"""A season: its bounds, and its row in the ledger as everything else sees it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from leaderboard import keys
from leaderboard.board import Board
from leaderboard.names import check_name
from leaderboard.states import State, reached
from leaderboard.timing import Timing


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
    live_key: str  #: the name under which players' results are written; of several shards, what they are named after
    closes_at: datetime  #: the end of grace
    backfill: bool  #: first seen after its grace: only ``finale close`` closes it
    frozen_at: datetime | None
    sealed_at: datetime | None
    keep_until: datetime | None  #: when clean is due; known once sealed, and never for an adopted key unless asked for
    hold: Hold | None
    attempts: int
    last_error: str | None
    retry_at: datetime | None = None  #: when a step that failed is tried again without a person
    adopted: bool = False  #: a key that Finale never opened: it writes nothing to it, and goes on only when told to

    @property
    def id(self) -> str:
        return self.bounds.id

    @property
    def timing(self) -> Timing:
        """What decides when the season goes on."""
        return Timing(
            self.state,
            self.bounds.starts_at,
            self.bounds.ends_at,
            self.closes_at,
            self.keep_until,
            self.retry_at,
            self.backfill,
            self.adopted,
        )

    @property
    def renames(self) -> bool:
        """Whether the freeze gives what was played a private name. An adopted key keeps its own."""
        return self.board.freeze == "rename" and not self.adopted

    @property
    def sharded(self) -> bool:
        """Whether the season's rows are in several sorted sets."""
        return self.board.shards.by != "none"

    @property
    def live_keys(self) -> tuple[str, ...]:
        """The names under which players' results are written, in the order of the shards; one without shards."""
        return keys.shard_keys(self.live_key, self.board.shards.number)

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The names that are this season's alone, whatever its state; helper keys stand beside each."""
        return tuple(keys.frozen_key(key, self.id) for key in self.live_keys) if self.renames else self.live_keys

    @property
    def standing_keys(self) -> tuple[str, ...]:
        """Where the season's rows are: under the live keys, and once frozen under its own keys."""
        return self.own_keys if reached(self.state, State.FROZEN) else self.live_keys

    @property
    def late_keys(self) -> tuple[str, ...]:
        """The old names of a frozen season, under which nothing should be written any more.

        None where there are no such names: rows are still there, or the next season's come to be.
        """
        moved = self.renames and not self.board.shares_key and reached(self.state, State.FROZEN)
        return self.live_keys if moved else ()

    @property
    def own_key(self) -> str:
        """The one of :attr:`own_keys`; of a season with shards what a person is shown for all of them."""
        return self.own_keys[0] if not self.sharded else self.live_key

    @property
    def standing_key(self) -> str:
        """The one of :attr:`standing_keys`; of a season with shards what a person is shown for all of them."""
        return self.standing_keys[0] if not self.sharded else self.live_key

    @property
    def name(self) -> str:
        """``board/season``, as messages and logs name it."""
        return f"{self.board.name}/{self.id}"


def unstored(board: Board, bounds: Bounds, state: State) -> Season:
    """Return a season as the ledger would have it if it were told of it: with no number, and nothing done yet."""
    return Season(
        key=0,
        board=board,
        bounds=bounds,
        state=state,
        live_key=keys.live_key(board.key, board.name, bounds.id, bounds.starts_at, bounds.ends_at),
        closes_at=bounds.ends_at + board.grace,
        backfill=False,
        frozen_at=None,
        sealed_at=None,
        keep_until=None,
        hold=None,
        attempts=0,
        last_error=None,
    )
