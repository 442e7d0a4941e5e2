"""``freeze = "rename"`` as a step does it, and what is written under the old name of a season that is frozen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from archive import removal
from archive.renaming import Move, Renaming, rename_all
from jobs.seasons.verdicts import Held
from jobs.wiring import Outside
from leaderboard import keys
from leaderboard.calendar import seasons_from
from leaderboard.season import Bounds, Season
from leaderboard.states import State, reached
from ledger import journal, seasons
from ledger.leases import Lease
from live.keyspace import kinds, sizes

#: How late the rename of a key that all seasons share may come without a warning: a scheduler's minute, and some.
ON_TIME = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Renamed:
    """What became of the live key at the freeze, in words for a person."""

    done: Renaming
    figures: str
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        told = {"outcome": self.done.outcome, "rows": self.done.rows, "later": self.done.later}
        return {**told, "replicas": self.done.replicas, "acknowledged": self.done.acknowledged}


def give_private_name(outside: Outside, season: Season, lease: Lease, frozen_at: datetime) -> Renamed:
    """Rename the season's live keys to its own under the lease's fence; raises what ``archive.renaming`` raises."""
    moves = [
        Move(live_key, own_key, removal.Fence(keys.helper_key(own_key, "fence"), lease.fence))
        for live_key, own_key in zip(season.live_keys, season.own_keys, strict=True)
    ]
    done = rename_all(outside.connector(season.live_keys[0]), moves)
    if done.outcome == "missing":
        return Renamed(done, f"there is no key {season.live_key}", ())
    warnings = []
    renamed_at = outside.database.now() if done.outcome == "renamed" else frozen_at
    if season.board.shares_key and renamed_at - season.bounds.ends_at > ON_TIME:
        late = timedelta(seconds=round((renamed_at - season.bounds.ends_at).total_seconds()))
        warnings.append(
            f"{season.live_key} was frozen {late} after the cutoff; what was written to it in between counts in "
            f"{season.name}"
        )
    if done.later and (not season.board.shares_key or _between(outside, season)):
        warnings.append(_told(season, season.live_key, done.later))
    if told := removal.behind(done.replicas, done.acknowledged):
        warnings.append(told)
    return Renamed(done, f"{done.rows:,} rows now under {_own_name(season)}", tuple(warnings))


def _own_name(season: Season) -> str:
    return season.own_keys[0] if not season.sharded else f"{len(season.own_keys)} names such as {season.own_keys[0]}"


def late_writes(outside: Outside, season: Season) -> tuple[str, ...]:
    """Return what a person is told of keys that have come to be under a frozen season's old names; none is touched."""
    return tuple(late_keys(outside, season).values())


def late_keys(outside: Outside, season: Season) -> dict[str, str]:
    """Return each such key, and what a person is told of it."""
    if season.renames and season.board.shares_key:
        return _late_in_shared(outside, season)
    types = kinds(outside.redis, season.late_keys)
    rows = sizes(outside.redis, [key for key, kind in types.items() if kind == "zset"])
    return {key: _told(season, key, rows.get(key)) for key, kind in types.items() if kind != "none"}


def _late_in_shared(outside: Outside, season: Season) -> dict[str, str]:
    """Return what is under the name that all seasons share while it is none's, or is no sorted set, which is never one.

    Told of the last frozen season only: of those before it, the same key is not news.
    """
    if not reached(season.state, State.FROZEN) or any(
        reached(one.state, State.FROZEN) for one in _after(outside, season)
    ):
        return {}
    types = {key: kind for key, kind in kinds(outside.redis, season.live_keys).items() if kind != "none"}
    late = _between(outside, season)
    rows = sizes(outside.redis, [key for key, kind in types.items() if kind == "zset"])
    return {key: _told(season, key, rows.get(key)) for key, kind in types.items() if late or kind != "zset"}


def _after(outside: Outside, season: Season) -> list[Season]:
    """Return the later seasons that are played under the same name."""
    return [
        one
        for one in seasons.of_board(outside.database, season.board.name)
        if one.live_key == season.live_key and one.bounds > season.bounds and one.state is not State.CANCELLED
    ]


def _between(outside: Outside, season: Season) -> bool:
    """Return whether no season has begun since this one under the name that they share: its rows are nobody's yet."""
    now = outside.database.now()
    if any(one.bounds.starts_at <= now for one in _after(outside, season)):
        return False
    later = seasons_from(season.board.calendar, season.bounds.ends_at)
    following = next((one for one in later if one.starts_at >= season.bounds.ends_at), None)
    return following is None or now < following.starts_at


def _told(season: Season, key: str, rows: int | None) -> str:
    what = f"a {'key of another type' if rows is None else f'sorted set of {rows:,} rows'}"
    before = ""
    if season.board.shares_key:
        before = " before the next season begins, in which they would count"
    return (
        f"{what} has come to be under {key} since {season.name} was frozen: late writes, which count in no "
        f"season; look at them, and remove the key by hand{before}"
    )


def mixed(outside: Outside, season: Season, now: datetime) -> Held | None:
    """Return why a key that all seasons share is not frozen: it holds the rows of two of them, which nobody can part.

    A person who releases a season held for its successor's rows has accepted them; an earlier season goes first.
    """
    if not season.board.shares_key:
        return None
    if (other := _unfrozen_before(outside, season)) is not None:
        return Held(
            f"{other.name}, which is played under the same key, is not frozen yet",
            f"{season.live_key} holds the rows of both",
            f"first: finale close {other.board.name} {other.id}",
        )
    if (following := _ended_since(season, now)) is None:
        return None
    reason = f"{season.board.name}/{following.id} has ended before {season.name} was frozen"
    if journal.accepted(outside.database, season.key, reason):
        return None
    return Held(
        reason,
        f"{season.live_key} holds the rows of both, and of any season since",
        "if all of them shall count in this one",
    )


def _unfrozen_before(outside: Outside, season: Season) -> Season | None:
    for other in seasons.of_board(outside.database, season.board.name):
        frozen = reached(other.state, State.FROZEN) or other.state is State.CANCELLED
        if other.live_key == season.live_key and other.bounds < season.bounds and not frozen:
            return other
    return None


def _ended_since(season: Season, now: datetime) -> Bounds | None:
    """Return the next season of the calendar if that has ended as well."""
    later = seasons_from(season.board.calendar, season.bounds.ends_at)
    following = next((one for one in later if one.starts_at >= season.bounds.ends_at), None)
    return following if following is not None and following.ends_at <= now else None


def undone(outside: Outside, season: Season) -> str:
    """Return what a person is told where a frozen season's rows may be under the old name again; else nothing."""
    if not season.renames:
        return ""
    there = kinds(outside.redis, season.live_keys)
    moves = [
        (live_key, own_key)
        for live_key, own_key in zip(season.live_keys, season.own_keys, strict=True)
        if there[live_key] == "zset"
    ]
    if not moves:
        return ""
    by_hand = "; ".join(f"RENAMENX {live_key} {own_key}" for live_key, own_key in moves)
    names = ", ".join(live_key for live_key, _ in moves)
    what = f"there is a key {names}" if len(moves) == 1 else f"there are keys {names}"
    return f"{what}: a failover may have undone the rename; if no other season's rows are there, {by_hand}"
