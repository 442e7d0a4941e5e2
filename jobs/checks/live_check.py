"""Checks of a season that is being played: the ledger against the scores in Redis, lag told apart from drift.

A check looks at the players active since the last one, and at one slice of a slow round over the whole board, from the
ledger's side and from Redis's. It is cheap, may be missed or doubled, and is called by every tick.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np

from jobs.checks import repairing, reporting
from jobs.seasons.leasing import leased
from jobs.wiring import Outside
from leaderboard.codec import codec_for, to_microseconds
from leaderboard.errors import InputError, LeaseHeldError, UnavailableError
from leaderboard.season import Season
from leaderboard.states import State
from leaderboard.wording import listed
from ledger import journal, live_checks, totals
from ledger.live_checks import Held, Progress
from live import scores
from reconcile.drift import Drift, Listed, Row

BATCH = 5_000
ACTIVE = 100_000  #: players active since the watermark that one check looks at; the next one goes on
PAGE = 50_000  #: of these, how many are asked for at once
_TOLD = 20  #: drifting players that the journal names
EVENT = "drift"


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found: how many players it looked at, how many lag (committed, not in Redis yet), and who drifts."""

    players: int
    lagging: int
    drift: tuple[Drift, ...] = ()
    tolerated: int = 0  #: players whose points differ by no more than the board's tolerance, which is no drift
    repaired: bool = False
    report: str = ""  #: where every drifting player stands; nothing where the store did not take it

    @property
    def words(self) -> str:
        """What drifts, in a line; nothing if nobody does."""
        if not self.drift:
            return ""
        done = f"{'put right, ' if self.repaired else ''}see {self.report or 'finale reconcile'}"
        named = listed(self.drift, 3, between="; ")
        return f"{len(self.drift):,} of {self.players:,} players drift ({done}): {named}"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "players": self.players,
            "lagging": self.lagging,
            "tolerated": self.tolerated,
            "drift": len(self.drift),
            "repaired": self.repaired,
            "examples": [str(one) for one in self.drift[:_TOLD]],
            "report": self.report or None,
        }


def _summed(found: Iterable[Checked]) -> Checked:
    """Return all in one; who was met by several of them drifts once, as seen last."""
    players = lagging = tolerated = 0
    drift: dict[bytes | None, Drift] = {}
    for one in found:
        players, lagging, tolerated = players + one.players, lagging + one.lagging, tolerated + one.tolerated
        drift |= {each.player_id: each for each in one.drift}
    return Checked(players, lagging, tuple(drift.values()), tolerated)


def is_due(season: Season, checked_at: datetime | None, now: datetime) -> bool:
    """Return whether the season is being played on Finale's ledger and its last check was long enough ago."""
    played = season.state in (State.OPEN, State.CLOSING) and season.frozen_at is None and not season.adopted
    if not played or season.board.ledger != "own" or season.board.reconcile.live == "off":
        return False
    return checked_at is None or checked_at + season.board.reconcile.every <= now


def check_due(outside: Outside, season: Season, now: datetime, *, who: str) -> Checked | None:
    """Check the season if a check of it is due, and return what was found; None if it was not.

    Each distinct difference has a report in the store and stands in the journal once; it is put right where the board
    says ``live = "repair"`` and it is within the bound.
    """
    progress = live_checks.find(outside.database, season)
    if not is_due(season, progress.checked_at, now):
        return None
    at, horizon = live_checks.clock(outside.database)
    following, found = _active_round(outside, season, progress, horizon)
    following, slow = _slow_round(outside, season, following)
    found = _reported(outside, season, _summed([found, slow]))
    found = _acted(outside, season, found, who)
    told = found.to_json()
    recorded = live_checks.record(outside.database, season, progress, replace(following, checked_at=at, found=told))
    if recorded and found.drift and (found.repaired or not _told(outside, season, told)):
        journal.write(outside.database, season.key, EVENT, who=who, detail=told)
    return found


def _told(outside: Outside, season: Season, told: dict[str, Any]) -> bool:
    """Return whether the journal has this very difference already."""
    entries = [entry.detail for entry in journal.entries(outside.database, season.key) if entry.event == EVENT]
    return any(entry.get("report") == told["report"] and entry["examples"] == told["examples"] for entry in entries)


def _reported(outside: Outside, season: Season, found: Checked) -> Checked:
    """Put the report of what drifts before anything is done about it; a store that is away does not stop the check."""
    if not found.drift:
        return found
    counts = {"players_compared": found.players, "lagging": found.lagging, "tolerated": found.tolerated}
    with suppress(UnavailableError):
        report = reporting.write_live_report(outside, season, Listed(found.drift), counts)
        return replace(found, report=f"{outside.store.url}/{report.path}")
    return found


def compare(outside: Outside, season: Season, players: Iterable[bytes]) -> Checked:
    """Compare the ledger's totals of these players with their scores in Redis, and return who lags and who drifts.

    Redis is read after the ledger. Who then differs is looked at again: a total that is still to be written, or has
    changed meanwhile, lags; the rest drifts.
    """
    return _summed(_compared(outside, season, players))


def _compared(outside: Outside, season: Season, players: Iterable[bytes]) -> Iterator[Checked]:
    """Yield the same, ``BATCH`` players at a time."""
    rest = iter(players)
    while chunk := list(islice(rest, BATCH)):
        before = live_checks.held(outside.database, season, chunk)
        differing = [held for held in before if not held.pending]
        differing = [held for held, _ in _differing(outside, season, differing)]
        after = live_checks.held(outside.database, season, [held.player_id for held in differing])
        still = [now for now, then in zip(after, differing, strict=True) if now == then]
        differ = [_drift(season, held, there) for held, there in _differing(outside, season, still)]
        drift = tuple(one for one in differ if not _tolerated(season, one))
        lagging = sum(held.pending for held in before) + len(differing) - len(still)
        yield Checked(len(chunk), lagging, drift, len(differ) - len(drift))


def whole(outside: Outside, season: Season) -> Iterator[Checked]:
    """Compare every player of the ledger, and every member in Redis; yield what was found, ``BATCH`` players at a time.

    A member that only Redis has may be met again.
    """

    def everyone() -> Iterator[bytes]:
        cursor: bytes | None = None
        while players := live_checks.players_after(outside.database, season, cursor, BATCH):
            yield from players
            cursor = players[-1]
        for key in season.standing_keys:
            following, begun = "0", False
            while following != "0" or not begun:
                following, members = scores.scan(outside.redis, key, following, BATCH)
                begun = True
                yield from _strangers(outside, season, members)

    return _compared(outside, season, everyone())


def _strangers(outside: Outside, season: Season, members: Sequence[bytes]) -> list[bytes]:
    """Return the members of whom the ledger has no total."""
    held = live_checks.held(outside.database, season, members) if members else []
    return [one.player_id for one in held if one.points is None]


def _active_round(outside: Outside, season: Season, progress: Progress, horizon: datetime) -> tuple[Progress, Checked]:
    """Look at the next part of the players active since the watermark, which moves on once all of them were looked at.

    After an import these are everybody: no tick may be held up by that, nor take it all into memory.
    """
    found, left, cursor = list[Checked](), ACTIVE, progress.active_cursor
    begun = progress.active_horizon or horizon
    while left:
        wanted = min(left, PAGE)
        players = live_checks.active(outside.database, season, progress.watermark, cursor, wanted)
        found.append(compare(outside, season, players))
        if len(players) < wanted:
            return replace(progress, watermark=begun, active_cursor=None, active_horizon=None), _summed(found)
        cursor, left = players[-1], left - wanted
    return replace(progress, active_cursor=cursor, active_horizon=begun), _summed(found)


def _slow_round(outside: Outside, season: Season, progress: Progress) -> tuple[Progress, Checked]:
    """Look at the next slice from both sides; return where the next one begins."""
    size = season.board.reconcile.slice
    players = live_checks.players_after(outside.database, season, progress.ledger_cursor, size)
    cursor = players[-1] if len(players) == size else None
    key_at = progress.redis_key % len(season.standing_keys)
    key = season.standing_keys[key_at]
    server = scores.server_of(outside.redis, key)
    from_cursor = progress.redis_cursor if server == progress.server else "0"
    following, members = scores.scan(outside.redis, key, from_cursor, size)
    found = compare(outside, season, [*players, *_strangers(outside, season, members)])
    ended = following == "0"
    key_at = (key_at + ended) % len(season.standing_keys)
    rounds = progress.rounds + (cursor is None)
    return (
        replace(
            progress,
            ledger_cursor=cursor,
            redis_cursor=following,
            redis_key=key_at,
            server=server,
            rounds=rounds,
        ),
        found,
    )


def _acted(outside: Outside, season: Season, found: Checked, who: str) -> Checked:
    """Put the drift right if the board wants that and it is within the bound; leave it where somebody else works."""
    players = [one.player_id for one in found.drift if one.player_id is not None]
    if not players or season.board.reconcile.live != "repair":
        return found
    if len(players) > season.board.reconcile.repairs(totals.summed(outside.database, season.key).players):
        return found
    try:
        with leased(outside, season, who) as (lease, _):
            repairing.repair(outside, season, lease, players)
    except LeaseHeldError:
        return found
    return replace(found, repaired=True)


def _differing(outside: Outside, season: Season, held: Sequence[Held]) -> list[tuple[Held, dict[str, float]]]:
    """Return those whose score in Redis is not the one that the ledger's total makes, with what Redis has."""
    if not held:
        return []
    there = scores.scores_of(outside.redis, season.standing_keys, [one.player_id for one in held])
    wanted: list[tuple[float, ...]] = [()] * len(held)
    totals_at = [at for at, one in enumerate(held) if one.points is not None]
    points = np.array([held[at].points for at in totals_at], dtype=np.int64)
    reached_at = np.array([to_microseconds(held[at].reached_at) for at in totals_at], dtype=np.int64)  # type: ignore[arg-type]  # those that are compared have a time
    encoded = codec_for(season.board, season.bounds).encode_array(points, reached_at).tolist()
    for at, score in zip(totals_at, encoded, strict=True):
        wanted[at] = (score,)
    return [(one, now) for one, now, due in zip(held, there, wanted, strict=True) if tuple(now.values()) != due]


def _drift(season: Season, held: Held, there: Mapping[str, float]) -> Drift:
    """Return what differs; the points of a player in several shards are those of the row in her own, if there is one.

    A score that the board's codec does not read, as a snapshot would, is told as it is and makes no points.
    """
    ledger_at = None if held.reached_at is None else to_microseconds(held.reached_at)
    if not there:
        return Drift("only_ledger", held.player_id, None, held.points, None, ledger_at)
    rows = tuple(Row(key, repr(score)) for key, score in there.items())
    read = {key: found for key, score in there.items() if (found := _decoded(season, score))}
    if len(read) < len(there):
        return Drift("no_score", held.player_id, None, held.points, None, ledger_at, rows)
    shard, keys = season.board.layout.shard, season.standing_keys
    own = [key for key, score in there.items() if key == keys[shard(held.player_id, score)]]
    points, reached_at = read[own[0] if own else next(reversed(read))]
    if held.points is None:
        kind = "only_redis"
    elif len(rows) > 1:
        kind = "several_shards"
    else:
        kind = "reached_at_differs" if points == held.points else "points_differ"
    told = rows if len(rows) > 1 else ()
    return Drift(kind, held.player_id, points, held.points, reached_at, ledger_at, told)


def _tolerated(season: Season, drift: Drift) -> bool:
    """Return whether the board lets the player have the points that Redis has, as the comparison at the close does."""
    return drift.kind == "points_differ" and abs(drift.difference or 0) <= season.board.reconcile.tolerance


def _decoded(season: Season, score: float) -> tuple[int, int | None] | None:
    """Return points and time of a score; None for one that is none of this board's."""
    try:
        points, reached_at = codec_for(season.board, season.bounds).decode(score)
    except InputError:
        return None
    return int(points), reached_at
