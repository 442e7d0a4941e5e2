"""Drift explained and kept: the report of a difference, under its hash, in the store's ``reports/``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import Any

from archive.layout import report_path
from archive.objects import ObjectExistsError, ObjectMissingError
from jobs.boards.projection import buckets_behind
from jobs.checks.reconciling import unit_of
from jobs.wiring import Outside
from leaderboard.codec import codec_for
from leaderboard.season import Season
from ledger import evidence
from ledger.pending import BUCKETS
from reconcile import report as form
from reconcile.compare import Compared
from reconcile.drift import LIVE_CLASSES, Drift, Found, Listed
from reconcile.explain import Cause, Counting, Explained, Match, explain
from reconcile.shared import Shared, shared_place, shared_time

SHOWN = 200  #: players in the JSON report, those with the most points; all are in the Parquet files
LOOKED_UP = 100_000  #: drifting players whose results are looked up
_CHUNK = 5_000
_FILE_ROWS = 500_000
_NAMED = 16  #: hexadecimal digits of the hash in a report's name


@dataclass(frozen=True, slots=True)
class Report:
    """A report as it stands in the store: its path, the hash of the difference, and its content."""

    path: str
    difference: str
    content: dict[str, Any]

    @property
    def shared(self) -> list[str]:
        """What the drifting players have in common, a sentence each."""
        return [str(one["words"]) for one in self.content["shared"]]


def write_report(outside: Outside, season: Season, found: Compared) -> Report:
    """Explain the drift that was found and put its report, Parquet first; the same difference has one report."""
    return _write(outside, season, "drift", found, found.counts.to_json())


def write_live_report(outside: Outside, season: Season, drift: Sequence[Drift], counts: Mapping[str, int]) -> Report:
    """Do the same for drift of a season that is played, with ``counts`` of the players that were looked at.

    Its name is another: no season is held for it, and nobody can accept it.
    """
    told = {**counts, **by_class(drift), "drift": len(drift), "compared": "live"}
    return _write(outside, season, "live", Listed(drift), told)


def by_class(drift: Iterable[Drift]) -> dict[str, int]:
    """Return how many players of a season that is played drift in each way."""
    kinds = Counter(one.kind for one in drift)
    return {kind: kinds[kind] for kind in LIVE_CLASSES}


def _write(outside: Outside, season: Season, kind: str, found: Found, counts: Mapping[str, Any]) -> Report:
    difference = found.difference(season.name)
    board, name = season.board.name, f"{kind}-{difference[:_NAMED]}"
    path = report_path(board, season.id, f"{name}.json")
    with suppress(ObjectMissingError):
        return Report(path, difference, json.loads(outside.store.get(path)))
    explaining = _Explaining(outside, season)
    files = []
    for number, data in enumerate(_files(explaining, found)):
        files.append(f"{name}-{number:04d}.parquet")
        _put(outside, report_path(board, season.id, files[-1]), data)
    head = form.Head(board, season.id, difference, counts, explaining.shared(), tuple(files), explaining.looked_up)
    top = [explaining.finished(one) for one in explaining.explained(found.rows(SHOWN))]
    content = form.to_json(head, top, binary=season.board.member == "binary")
    _put(outside, path, form.encoded(content))
    return Report(path, difference, content)


def _put(outside: Outside, path: str, data: bytes) -> None:
    with suppress(ObjectExistsError):
        outside.store.put_new(path, data)


def _files(explaining: _Explaining, found: Found) -> Iterator[bytes]:
    """Yield the Parquet files, every drifting player in the order of the ids."""
    rows = iter(found.every())
    explaining.look_up(found.every())
    while chunk := list(islice(rows, _FILE_ROWS)):
        yield form.parquet(form.table([explaining.known(drift) for drift in chunk]))


class _Explaining:
    """Looks up the last results of drifting players, set-wise, and what many of them share."""

    def __init__(self, outside: Outside, season: Season) -> None:
        self._outside, self._season = outside, season
        unit = unit_of(season)
        self._counting = Counting(
            season.board.aggregate, season.board.descending, None if unit is None else (unit.epoch, unit.size)
        )
        self._known: dict[bytes, Explained] = {}
        self._places: Counter[str] = Counter()
        self._time: Shared | None = None
        self._rollback: Shared | None = None
        self.looked_up = 0

    def look_up(self, drift: Iterable[Drift]) -> None:
        """Explain the first ``LOOKED_UP`` players, count the places of all, and find out what they share."""
        rows = iter(drift)
        while chunk := list(islice(rows, _CHUNK)):
            self._places.update(self._place(one) for one in chunk if one.player_id is not None)
            if self._season.board.ledger == "own" and self.looked_up < LOOKED_UP:
                for one in self.explained(chunk):
                    if one.drift.player_id is not None:
                        self._known[one.drift.player_id] = one
                self.looked_up += len(chunk)
        since = [one.since for one in self._known.values() if one.cause is Cause.NEVER_APPLIED and one.since]
        self._time = shared_time(since, self._active_since, lost_buckets=self._buckets_behind() if since else 0)
        self._rollback = self._time if self._time is not None and self._time.kind == "rollback" else None

    def explained(self, chunk: Sequence[Drift]) -> list[Explained]:
        """Return the players with their causes, looked up in one statement."""
        if self._season.board.ledger != "own":
            return [Explained(one, Cause.UNTOLD, None, "the ledger's results are not Finale's", ()) for one in chunk]
        ids = [one.player_id for one in chunk if one.player_id is not None]
        found = evidence.matches(self._outside.database, self._season, ids)
        told = []
        for one in chunk:
            matches = [Match(**row) for row in found.get(one.player_id or b"", [])]
            told.append(explain(one, matches, self._counting, whole=len(matches) < evidence.MATCHES))
        return told

    def known(self, drift: Drift) -> Explained | Drift:
        """Return the player as explained, as far as it was looked up."""
        one = self._known.get(drift.player_id or b"")
        return drift if one is None else self.finished(one)

    def finished(self, one: Explained) -> Explained:
        """Return the player, a failover named where it is what many share."""
        if self._rollback is not None and one.cause is Cause.NEVER_APPLIED and one.since is not None:
            return replace(one, cause=Cause.ROLLED_BACK)
        return one

    def shared(self) -> tuple[Shared, ...]:
        """Return what the drifting players have in common."""
        sharded = self._season.sharded
        what, everywhere = ("shards", self._season.board.shards.number) if sharded else ("buckets of players", BUCKETS)
        return tuple(one for one in (self._time, shared_place(self._places, everywhere, what)) if one is not None)

    def _buckets_behind(self) -> int:
        """Return in how many buckets of players the server has forgotten batches that it had confirmed."""
        if self._season.board.ledger != "own":
            return 0
        return len(buckets_behind(self._outside, self._season))

    def _active_since(self, since: datetime) -> int:
        return evidence.active_since(self._outside.database, self._season, since)

    def _place(self, drift: Drift) -> str:
        """Return the shard in which the player is or should be; without shards the bucket of players."""
        assert drift.player_id is not None
        if not self._season.sharded:
            return str(sha256(drift.player_id).digest()[0] % BUCKETS)
        if drift.ledger_points is None and drift.rows:
            return drift.rows[0].key
        points = drift.redis_points if drift.ledger_points is None else drift.ledger_points
        reached_at = drift.redis_reached_at if drift.ledger_reached_at is None else drift.ledger_reached_at
        codec = codec_for(self._season.board, self._season.bounds)
        # A score that somebody else wrote may say points that the codec reads and does not write.
        score = codec.encode(min(max(points or 0, codec.minimum), codec.maximum), reached_at or 0)
        return self._season.live_keys[self._season.board.layout.shard(drift.player_id, score)]
