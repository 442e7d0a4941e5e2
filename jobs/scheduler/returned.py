"""Cleaned seasons whose live key is there again: found by every tick, cheaply, and cleaned again on a person's word."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from archive import returned
from archive.fetch import read_parts_checked
from archive.returned import Likeness
from archive.seal import StandingFacts
from jobs.payout.sealed import committed
from jobs.seasons.leasing import leased, raise_own_fence, withdraw_own_fence
from jobs.steps.clean import Forgotten, forget
from jobs.wiring import Outside
from leaderboard import strays
from leaderboard.errors import FinaleError, KeyReturnedError, WrongStateError
from leaderboard.season import Season
from leaderboard.states import State, Step
from ledger import journal, seasons
from ledger.leases import Lease
from live.keyspace import kinds

#: How long, and for how many seasons, a tick looks whether a failover has brought a cleaned key back.
LOOKED_AFTER = timedelta(days=30)
LOOKED_AT = 1_000


def returned_keys(outside: Outside, now: datetime) -> list[tuple[Season, KeyReturnedError]]:
    """Return the seasons cleaned lately whose live key exists again, each with what a person is told.

    Adopted keys are left out: whoever wrote them before may use the name again.
    """
    cleaned = seasons.lately_cleaned(outside.database, now - LOOKED_AFTER, LOOKED_AT)
    found = kinds(outside.redis, [key for season, _ in cleaned for key in season.own_keys])
    back = [(season, at, [key for key in season.own_keys if found[key] != "none"]) for season, at in cleaned]
    return [(season, _told(season, at, names)) for season, at, names in back if names]


def _told(season: Season, cleaned_at: datetime, names: Sequence[str]) -> KeyReturnedError:
    name = f"{season.board.name} {season.id}"
    told = f"its live key {names[0]} is" if len(names) == 1 else f"{len(names)} of its live keys are"
    return KeyReturnedError(
        f"{season.name} was cleaned at {cleaned_at:%Y-%m-%d %H:%M:%S} UTC, but {told} back",
        detail="a failover may have brought it back, or something still writes to it; it was not touched",
        hint=f"finale season strays tells whether it is what was sealed; finale clean {name} --again removes it if so",
    )


def resemblance(outside: Outside, season: Season) -> Likeness:
    """Return how a cleaned season's live keys compare with its sealed archive, which the store must still have.

    Of a season over several keys only those that are there are compared, each with what was sealed of it.
    """
    seal = committed(outside, season, "standings")
    assert isinstance(seal.facts, StandingFacts)
    there = kinds(outside.redis, season.own_keys)
    found = [
        returned.likeness(
            outside.connector(key.key),
            key,
            descending=season.board.descending,
            archived=None if season.sharded else partial(read_parts_checked, outside.store, seal),
            page_rows=outside.runner.page_rows,
            page_budget=outside.runner.page_budget,
        )
        for key in seal.facts.keys
        if not season.sharded or there[key.key] != "none"
    ]
    told = "; ".join(like.told for like in found if like.told)
    return Likeness(sum(like.rows for like in found), all(like.equal for like in found), told)


def plan_again(outside: Outside, season: Season) -> dict[str, Any]:
    """Return what ``clean_again`` would come to, and raise what it would refuse at once, without changing anything."""
    check_cleaned(outside, season)
    if set(kinds(outside.redis, season.own_keys).values()) == {"none"}:
        return _planned("act", "the live key is gone; remove what is left beside it")
    like = resemblance(outside, season)
    if like.equal:
        return _planned("act", f"read every sealed part again, prove {like.rows:,} rows equal, and remove them")
    return _planned("hold", f"the live key is not what was sealed: {like.told}")


def _planned(verdict: str, why: str) -> dict[str, Any]:
    return {"step": str(Step.CLEAN), "verdict": verdict, "why": why}


def clean_again(outside: Outside, season: Season, *, who: str, because: str = "") -> Forgotten:
    """Forget the live key of a season that was cleaned before, as the first time: proved equal, under a new fence (I1).

    Its helper keys go too, also where the live key is gone. Raises WrongStateError for a season not yet cleaned, or a
    key that is another season's by now, KeyChangedError, naming the players, if the key is not what was sealed, and
    what ``forget`` raises; the key is then as it was. The journal keeps both.
    """
    check_cleaned(outside, season)
    with leased(outside, season, who) as (lease, _):
        try:
            raise_own_fence(outside, season, lease)
            done = forget(outside, season, lease)
        except FinaleError as error:
            with suppress(FinaleError):
                withdraw_own_fence(outside, season, lease)
                _note(
                    outside,
                    lease,
                    "not cleaned again",
                    who,
                    {"because": because, "message": error.message, "detail": error.detail},
                )
            raise
        _note(outside, lease, "cleaned again", who, {"because": because, "figures": done.figures, **done.to_json()})
    return done


def _note(outside: Outside, lease: Lease, event: str, who: str, detail: dict[str, object]) -> None:
    journal.write(outside.database, lease.key, event, who=who, fence=lease.fence, detail=detail)


def check_cleaned(outside: Outside, season: Season) -> None:
    """Raise WrongStateError unless the season was cleaned and its live key is no other season's since."""
    name = f"{season.board.name} {season.id}"
    if season.state is not State.CLEANED:
        raise WrongStateError(
            f"{season.name} is {season.state}; --again is for a season that was cleaned before",
            hint=f"see: finale clean {name} --dry-run",
        )
    last = strays.cleaned_keys(seasons.every(outside.database, outside.boards))
    if any(key not in last or last[key].key != season.key for key in season.own_keys):
        raise WrongStateError(
            f"the key {season.own_key} is no longer that of {season.name}: another season has it now",
            hint="see: finale season list",
        )
