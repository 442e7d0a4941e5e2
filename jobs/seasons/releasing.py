"""Ending a season's hold: it goes on where it stood, from a new snapshot, or with a difference that is accepted."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from archive.layout import report_path
from archive.objects import ObjectMissingError
from jobs.seasons.leasing import leased
from jobs.seasons.levers import expected
from jobs.wiring import Outside
from leaderboard import levers
from leaderboard.errors import InputError, UnknownNameError, WrongStateError
from leaderboard.season import Season
from leaderboard.states import State, Step, reached, step_from
from ledger import acceptance, journal, seals, seasons
from live.keyspace import sizes

_NAME = re.compile(r"(?:.*/)?(drift-[0-9a-f]{16})\.json|([0-9a-f]{16})[0-9a-f]{0,48}")


@dataclass(frozen=True, slots=True)
class Accepted:
    """The difference that a person accepts: its hash, the report's path, and how many players drift."""

    difference: str
    report: str
    players: int


def release(
    outside: Outside,
    season: Season,
    *,
    who: str,
    because: str,
    again: bool = False,
    accept: str | None = None,
    empty: bool = False,
) -> None:
    """End the hold of a season.

    Held at its comparison with the ledger it takes its snapshot again, since whatever was wrong was mended in Redis or
    in the ledger; unless the difference of the report ``accept`` (its name, path or hash) is accepted as it is, which
    covers that very difference and no other. ``again`` takes the snapshot again at any time before a seal is committed.
    ``empty`` says that nobody played in a season whose key does not exist and whose board has no ledger to tell.

    Raises WrongStateError for a release that cannot do what it says, LeaseHeldError where a snapshot is to be taken and
    a step is under way, InputError without a reason for an acceptance or for a report of another difference than the
    season is held for, UnknownNameError for one that does not exist.
    """
    check_releasable(season, again=again, accept=accept)
    if season.hold is None:
        raise seasons.not_held(season)
    if empty:
        _check_empty(outside, season)
        if not because.strip():
            raise InputError("that nobody played needs a reason", hint='add --because "…"; it stands in the journal')
    if accept is None:
        if anew := _anew(outside, season, again):
            _check_again(outside, season)
        if anew or season.state is State.FROZEN:
            _from_new_snapshot(outside, season, who=who, because=because, again=again, empty=empty)
        else:
            seasons.release(outside.database, season, who=who, because=because, empty=empty)
        return
    if not because.strip():
        raise InputError("accepting a difference needs a reason", hint='add --because "…"; it stands in the seal')
    found = _report(outside, season, accept)
    with outside.database.transaction():
        acceptance.accept(
            outside.database,
            season.key,
            difference=found.difference,
            report=found.report,
            players=found.players,
            who=who,
            because=because,
        )
        seasons.release(outside.database, season, who=who, because=because, accepted=found.difference)


def _from_new_snapshot(outside: Outside, season: Season, *, who: str, because: str, again: bool, empty: bool) -> None:
    """Release a season so that its snapshot is one that begins after this, under a lease that no other runner has.

    Without it a step that is under way, or was when its runner's lease ran out, would record what it read before the
    board was put right, and that would be sealed. Under it nobody else commits a seal either.
    """
    with leased(outside, season, who) as (lease, _):
        fresh = seasons.find(outside.database, season.board.name, season.id, outside.boards.get(season.board.name))
        back = again or fresh.state is not State.FROZEN
        if back:
            _check_again(outside, fresh)
        seasons.release(
            outside.database, fresh, who=who, because=because, lease=lease, snapshot_again=back, empty=empty
        )


def _anew(outside: Outside, season: Season, again: bool) -> bool:
    """Return whether a release goes back to the snapshot: asked to, if there may be one, or held by what came of it."""
    return (again and reached(season.state, State.FROZEN)) or _held_by_comparison(outside, season)


def _check_again(outside: Outside, season: Season) -> None:
    levers.check_again(season, sealing=seals.find(outside.database, season.key, "standings") is not None)


def plan(
    outside: Outside, season: Season, *, again: bool = False, accept: str | None = None, empty: bool = False
) -> dict[str, Any]:
    """Return what a release would come to, and raise what it would refuse, without changing anything."""
    check_releasable(season, again=again, accept=accept)
    if season.hold is None:
        raise seasons.not_held(season)
    if empty:
        _check_empty(outside, season)
    if accept is not None:
        _report(outside, season, accept)
    anew = accept is None and _anew(outside, season, again)
    if anew:
        _check_again(outside, season)
    step = Step.SNAPSHOT if anew else step_from(season.state)
    return {"season": season.name, "held": season.hold.reason, "step": str(step), **expected(outside, season, step)}


def check_releasable(season: Season, *, again: bool, accept: str | None = None) -> None:
    """Raise WrongStateError for a release that cannot do what it says."""
    if again and accept is not None:
        raise WrongStateError(
            "a snapshot that is taken again has no difference yet that could be accepted",
            hint="give either --again or --accept-drift",
        )
    if again:
        levers.check_again(season, sealing=False)
    if accept is not None and (season.hold is None or season.state is not State.SNAPSHOTTED):
        raise WrongStateError(
            f"{season.name} is {season.state}{', on hold' if season.hold else ''}: no difference holds it",
            hint=f"see: finale season show {season.board.name} {season.id}",
        )


def _check_empty(outside: Outside, season: Season) -> None:
    """Raise WrongStateError unless the season waits for its snapshot without a ledger, and its keys do not exist.

    The snapshot proves that again, under WATCH: a key that has come back by then is archived as it is.
    """
    if season.hold is None or season.state is not State.FROZEN or season.board.ledger != "none":
        raise WrongStateError(
            f"{season.name} is not held for a live key that does not exist and that no ledger tells of",
            detail=season.hold.reason if season.hold else f"it is {season.state}, and not on hold",
            hint="release it without --empty",
        )
    if there := [key for key, rows in sizes(outside.redis, season.standing_keys).items() if rows]:
        raise WrongStateError(
            f"{season.name} is not empty: {there[0]} exists",
            hint=f"without --empty it is archived as it is: finale season release {season.board.name} {season.id}",
        )


def _held_by_comparison(outside: Outside, season: Season) -> bool:
    """Return whether it is the comparison with the ledger that holds the season, and not a person."""
    if season.state is not State.SNAPSHOTTED:
        return False
    held = [entry for entry in journal.entries(outside.database, season.key) if entry.event == "held"]
    return bool(held) and held[-1].step == Step.RECONCILE


def _report(outside: Outside, season: Season, named: str) -> Accepted:
    """Return the difference of the report that ``named`` names, if it is what the season is held for."""
    match = _NAME.fullmatch(named.strip())
    if not match:
        raise InputError(
            f"{named!r} names no report of drift",
            hint="give its file name, such as drift-0123456789abcdef.json, or the hash of the difference",
        )
    path = report_path(season.board.name, season.id, f"{match[1] or f'drift-{match[2]}'}.json")
    try:
        content = json.loads(outside.store.get(path))
    except ObjectMissingError:
        raise UnknownNameError(
            f"{season.name} has no report {path}",
            detail=f"in {outside.store.url}",
            hint=f"finale season show {season.board.name} {season.id} names the report that holds it",
        ) from None
    found = Accepted(str(content["difference"]), path, int(content["drift"]))
    assert season.hold is not None
    given_hash = re.sub(r".*/|drift-|\.json", "", named.strip())
    if path not in season.hold.detail or not found.difference.startswith(given_hash):
        raise InputError(
            f"{season.name} is held for another difference than that of {path}",
            detail=season.hold.detail,
            hint="accept the report that the hold names, or mend what it shows and release the season without",
        )
    return found
