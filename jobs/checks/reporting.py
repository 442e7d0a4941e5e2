"""Drift explained and kept: the report of a difference, under its hash, in the store's ``reports/``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

import pyarrow as pa

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
from reconcile.drift import LIVE_CLASSES, Drift, Found, rows_of
from reconcile.explain import Cause, Counting, Explained, Match, explain
from reconcile.shared import Shared, shared_place, shared_time

SHOWN = 200  #: players in the JSON report, those with the most points; all are in the Parquet files
LOOKED_UP = 100_000  #: drifting players whose results are looked up
_CHUNK = 1_000  #: of these, how many at once: up to fifty results each become objects
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


def write_live_report(outside: Outside, season: Season, found: Found, counts: Mapping[str, int]) -> Report:
    """Do the same for drift of a season that is played, with ``counts`` of the players that were looked at.

    Its name is another: no season is held for it, and nobody can accept it.
    """
    told = by_class(found)
    return _write(outside, season, "live", found, {**counts, **told, "drift": sum(told.values()), "compared": "live"})


def by_class(found: Found) -> dict[str, int]:
    """Return how many players of a season that is played drift in each way."""
    kinds = found.kinds()
    return {kind: kinds[kind] for kind in LIVE_CLASSES}


def _write(outside: Outside, season: Season, kind: str, found: Found, counts: Mapping[str, Any]) -> Report:
    difference = found.difference(season.name)
    board, name = season.board.name, f"{kind}-{difference[:_NAMED]}"
    path = report_path(board, season.id, f"{name}.json")
    with suppress(ObjectMissingError):
        return Report(path, difference, json.loads(outside.store.get(path)))
    explaining = _Explaining(outside, season)
    files = []
    for number, data in enumerate(form.files(found.batches(), explaining.look_up(found), _FILE_ROWS)):
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


class _Explaining:
    """Looks up the last results of drifting players, set-wise, and what many of them share."""

    def __init__(self, outside: Outside, season: Season) -> None:
        self._outside, self._season = outside, season
        unit = unit_of(season)
        self._counting = Counting(
            season.board.aggregate, season.board.descending, None if unit is None else (unit.epoch, unit.size)
        )
        self._places: Counter[str] = Counter()
        self._time: Shared | None = None
        self._rollback: Shared | None = None
        self.looked_up = 0

    def look_up(self, found: Found) -> pa.Table:
        """Explain the first ``LOOKED_UP`` players, count the places of all, and find out what they share.

        Returns what is told of the first ones, in the order of the batches.
        """
        told, since = [form.told([])], list[datetime]()
        for batch in found.batches():
            self._places.update(self._places_of(batch))
            start = 0
            while self._own and start < batch.num_rows and self.looked_up < LOOKED_UP:
                some = batch.slice(start, min(_CHUNK, LOOKED_UP - self.looked_up))
                explained = self.explained(list(rows_of([some])))
                known = [one if one.drift.player_id is not None else None for one in explained]
                told.append(form.told(known))
                since += [one.since for one in known if one and one.since and one.cause is Cause.NEVER_APPLIED]
                self.looked_up, start = self.looked_up + some.num_rows, start + some.num_rows
        self._time = shared_time(since, self._active_since, lost_buckets=self._buckets_behind() if since else 0)
        self._rollback = self._time if self._time is not None and self._time.kind == "rollback" else None
        whole = pa.concat_tables(told)
        return whole if self._rollback is None else form.rolled_back(whole)

    def explained(self, chunk: Sequence[Drift]) -> list[Explained]:
        """Return the players with their causes, looked up in one statement."""
        if not self._own:
            return [Explained(one, Cause.UNTOLD, None, "the ledger's results are not Finale's", ()) for one in chunk]
        ids = [one.player_id for one in chunk if one.player_id is not None]
        found = evidence.matches(self._outside.database, self._season, ids)
        told = []
        for one in chunk:
            matches = [Match(**row) for row in found.get(one.player_id or b"", [])]
            told.append(explain(one, matches, self._counting, whole=len(matches) < evidence.MATCHES))
        return told

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

    @property
    def _own(self) -> bool:
        return self._season.board.ledger == "own"

    def _buckets_behind(self) -> int:
        """Return in how many buckets of players the server has forgotten batches that it had confirmed."""
        return len(buckets_behind(self._outside, self._season))

    def _active_since(self, since: datetime) -> int:
        return evidence.active_since(self._outside.database, self._season, since)

    def _places_of(self, batch: pa.RecordBatch) -> Iterator[str]:
        """Yield the shard in which each player is or should be; without shards the bucket of players."""
        if not self._season.sharded:
            for player in batch.column("player_id").drop_null().to_pylist():
                yield str(sha256(player).digest()[0] % BUCKETS)
            return
        for one in rows_of([batch]):
            if one.player_id is not None:
                yield self._shard(one, one.player_id)

    def _shard(self, drift: Drift, player: bytes) -> str:
        if drift.ledger_points is None and drift.rows:
            return drift.rows[0].key
        points = drift.redis_points if drift.ledger_points is None else drift.ledger_points
        reached_at = drift.redis_reached_at if drift.ledger_reached_at is None else drift.ledger_reached_at
        codec = codec_for(self._season.board, self._season.bounds)
        # A score that somebody else wrote may say points that the codec reads and does not write.
        score = codec.encode(min(max(points or 0, codec.minimum), codec.maximum), reached_at or 0)
        return self._season.live_keys[self._season.board.layout.shard(player, score)]
