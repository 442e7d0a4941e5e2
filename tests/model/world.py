"""What the model's world is made of, what the real steps plan in it, and what must hold from each world to the next."""

from __future__ import annotations

from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from jobs.steps import JOBS, clean, close, deliver, freeze, reconcile, reward, seal, snapshot
from jobs.steps import open as opening
from leaderboard.board import Board
from leaderboard.retention import Facts as RetentionFacts
from leaderboard.retention import decide
from leaderboard.season import Bounds, Hold, Season
from leaderboard.states import State, Step, reached

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MOST_RESULTS = 2
CORRECTED = 7  #: the content of a key that a person has put right while the season was held
STRANGER = 9  #: the content of a key, and the staging of a seal, that are not this ledger's
Sealed = tuple[int, int]  #: the fence under which it was staged, and how many results it counts


class BrokenPromiseError(Exception):
    """A promise does not hold in some reachable state."""


class Runner(NamedTuple):
    at: str = "idle"  #: the operation that comes next
    fence: int = 0
    step: Step | None = None
    saw: int | None = None  #: what it read of the live key
    snap: Sealed | None = None  #: what it read of the ledger, and is about to seal


class World(NamedTuple):
    state: State = State.SCHEDULED
    held: bool = False
    frozen: bool = False
    fence: int = 0
    alive: bool = False  #: whether the lease of that fence has not run out
    results: int = 1  #: confirmed in the ledger, and counted
    snap: Sealed | None = None
    row: Sealed | None = None  #: the seal as committed in the ledger
    grants: Sealed | None = None  #: committed: under which fence they were staged, and of how many results
    loads: int = 0
    delivered: int = 0
    key: int | None = 0  #: how many results the live key counts; None: it is gone
    beside: int = 0  #: the fence beside the live key
    bucket: int = 0  #: the fence of those who write totals
    staged: frozenset[Sealed] = frozenset()
    grants_staged: frozenset[int] = frozenset()  #: by the fence under which they were
    grants_published: bool = False
    seal: Sealed | None = None  #: in the store
    parts: int | None = None  #: published
    late: tuple[Any, ...] | None = None  #: a write that is still on its way
    reopened: bool = False
    corrected: bool = False  #: a person has put the held board right, once; no ledger tells of that
    meddled: str = ""  #: what somebody outside has done, once
    runners: tuple[Runner, Runner] = (Runner(), Runner())


@lru_cache
def _board() -> Board:
    return Board.model_validate({"name": "cup", "calendar": {"every": "day"}, "ties": "shared"})


@lru_cache
def season(state: State, held: bool, frozen: bool) -> Season:
    """Return the model's season as Finale's code sees it: over, its grace and its retention too."""
    return Season(
        key=1,
        board=_board(),
        bounds=Bounds(NOW - 3 * timedelta(days=1), NOW - 2 * timedelta(days=1), "s1"),
        state=state,
        live_key="key",
        closes_at=NOW - timedelta(days=1),
        backfill=False,
        frozen_at=NOW if frozen else None,
        sealed_at=NOW if reached(state, State.SEALED) else None,
        keep_until=NOW if reached(state, State.SEALED) else None,
        hold=Hold("", "", "", NOW) if held else None,
        attempts=0,
        last_error=None,
    )


def _facts(kind: Any, **known: Any) -> Any:
    """Return a step's facts; what the model does not know of keeps its default, or is None."""
    named = {field.name: field for field in fields(kind)}
    needed = {name: None for name, field in named.items() if field.default is MISSING and name not in known}
    return kind(**known, **needed)


def verdict(world: World, step: Step) -> Any:
    """Return what the real step plans from the facts of this world."""
    return _planned(
        step, world.state, world.held, world.frozen, world.results, world.key is not None,
        world.snap is not None, world.row is not None, world.grants is not None,
    )  # fmt: skip  # a row a line


@lru_cache(maxsize=10_000)
def _planned(
    step: Step, state: State, held: bool, frozen: bool, results: int, key: bool, snap: bool, row: bool, grants: bool
) -> Any:
    past = NOW - timedelta(days=1)
    something: Any = object()
    facts = {
        Step.OPEN: lambda: _facts(opening.Facts, now=NOW, starts_at=past),
        Step.CLOSE: lambda: _facts(close.Facts, now=NOW, ends_at=past, closes_at=past, forced=False),
        Step.FREEZE: lambda: _facts(freeze.Facts, now=NOW, closes_at=past, forced=False),
        Step.SNAPSHOT: lambda: _facts(snapshot.Facts, name="cup s1", live_key="key", players=results, exists=key),
        Step.RECONCILE: lambda: _facts(reconcile.Facts, snapshot=something if snap else None, ledger="own"),
        Step.SEAL: lambda: _facts(
            seal.Facts, snapshot=something if snap else None, verdict={}, committed=something if row else None
        ),
        Step.REWARD: lambda: _facts(
            reward.Facts, name="cup s1", rewards="t", paying=something, committed=something if grants else None
        ),
        Step.DELIVER: lambda: _facts(deliver.Facts, grants=1),
        Step.CLEAN: lambda: _facts(
            clean.Facts,
            retention=decide(RetentionFacts(season(state, held, frozen), NOW)),
            cleanup="unlink",
        ),
    }
    return JOBS[step].plan(facts[step]())


def check(before: World, after: World) -> None:
    """Raise BrokenPromiseError if a promise does not hold after this transition."""
    sealed = reached(after.state, State.SEALED)
    if before.seal is not None and after.seal != before.seal:
        raise BrokenPromiseError(f"I2: the seal {before.seal} became {after.seal}")
    if before.row is not None and after.row not in (before.row, after.seal):
        raise BrokenPromiseError(f"I2: the committed seal {before.row} became {after.row}")
    if sealed and after.seal != after.row:
        raise BrokenPromiseError(f"I2: the store has the seal {after.seal}, the ledger {after.row}")
    if after.parts is not None and (after.seal is None or after.parts != after.seal[1]):
        raise BrokenPromiseError(f"I2: readers see parts of {after.parts} results under the seal {after.seal}")
    if after.loads > 1 or (after.grants is not None and after.row is not None and after.grants[1] != after.row[1]):
        raise BrokenPromiseError(f"I5: grants {after.grants}, loaded {after.loads} times, of the seal {after.row}")
    if after.row is not None and after.corrected and after.row[1] != after.results:
        raise BrokenPromiseError(f"I4: a seal of {after.row[1]} is committed, which a person had thrown away")
    if after.row is not None and (after.row[1] != after.results or after.state is State.OPEN):
        raise BrokenPromiseError(f"I2: a seal of {after.row[1]} results is committed, and {after.results} count")
    if sealed and not after.meddled and after.key is not None and after.key != after.results:
        raise BrokenPromiseError("I1: the key of a sealed season is not what was sealed")
