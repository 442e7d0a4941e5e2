"""A drift report: every drifting player in Parquet, the whole in JSON, and a table for a person."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconcile.drift import IN_WORDS, Drift
from reconcile.drift import SCHEMA as FOUND
from reconcile.explain import Cause, Explained
from reconcile.shared import Shared

FORMAT = "1"
_TIME = pa.timestamp("us", tz="UTC")
_MATCH = pa.struct([("match_id", pa.string()), ("points", pa.int64()), ("played_at", _TIME), ("recorded_at", _TIME)])
_TOLD = pa.schema([("cause", pa.string()), ("since", _TIME), ("last_matches", pa.list_(_MATCH))])
#: The rows of the Parquet files: null where a player is missing, and in what was not looked up.
SCHEMA = pa.schema(
    [
        ("player_id", pa.binary()),
        ("class", pa.string()),
        ("redis_points", pa.int64()),
        ("ledger_points", pa.int64()),
        FOUND.field("redis_rows"),
        ("difference", pa.int64()),
        ("redis_reached_at", _TIME),
        ("ledger_reached_at", _TIME),
        *_TOLD,
    ]
)


@dataclass(frozen=True, slots=True)
class Head:
    """What a report is of: the season, its difference's hash, the counts as JSON, and what the players share."""

    board: str
    season: str
    difference: str
    counts: Mapping[str, Any]
    shared: tuple[Shared, ...]
    files: tuple[str, ...]  #: names of the Parquet files beside it
    looked_up: int  #: drifting players whose results were looked up; of the others there are the numbers alone


def to_json(head: Head, players: Sequence[Explained], *, binary: bool) -> dict[str, Any]:
    """Return the report as plain JSON values: the counts, what is shared, and ``players``, those with the most points.

    It follows from the difference and the results alone: made again, it is the same.
    """
    return {
        "format": FORMAT,
        "board": head.board,
        "season": head.season,
        "difference": head.difference,
        **head.counts,
        "shared": [one.to_json() for one in head.shared],
        "looked_up": head.looked_up,
        "files": list(head.files),
        "players": [player(one, binary) for one in players],
    }


def encoded(report: dict[str, Any]) -> bytes:
    """Return the exact bytes of the JSON report."""
    return f"{json.dumps(report, indent=2, sort_keys=True, ensure_ascii=False)}\n".encode()


def player(one: Explained, binary: bool) -> dict[str, Any]:
    """Return one drifting player as plain JSON values."""
    drift = one.drift
    return {
        "player_id": name(drift, binary),
        "class": drift.kind,
        "redis_points": drift.redis_points,
        "ledger_points": drift.ledger_points,
        "redis_rows": _rows(drift),
        "difference": drift.difference,
        "redis_reached_at": _instant(drift.redis_reached_at),
        "ledger_reached_at": _instant(drift.ledger_reached_at),
        "cause": str(one.cause),
        "since": None if one.since is None else _iso(one.since),
        "why": one.words,
        "last_matches": [
            {
                "match_id": match.match_id,
                "points": match.points,
                "played_at": _iso(match.played_at),
                "recorded_at": _iso(match.recorded_at),
            }
            for match in one.matches
        ],
    }


def name(drift: Drift, binary: bool) -> str | None:
    """Return the id as a person is shown it: text, or hex on binary boards; None for a row without one."""
    if drift.player_id is None:
        return None
    return drift.player_id.hex() if binary else drift.name


def told(found: Sequence[Explained | None]) -> pa.Table:
    """Return what is known of players as rows of ``_TOLD``; of None nothing is."""
    rows = [
        {}
        if one is None
        else {
            "cause": str(one.cause),
            "since": one.since,
            "last_matches": [
                {
                    "match_id": match.match_id,
                    "points": match.points,
                    "played_at": match.played_at,
                    "recorded_at": match.recorded_at,
                }
                for match in one.matches
            ],
        }
        for one in found
    ]
    return pa.Table.from_pylist(rows, _TOLD)


def rolled_back(told: pa.Table) -> pa.Table:
    """Return the same where a failover is what players share who lack results since a time."""
    behind = pc.and_(pc.equal(told["cause"], Cause.NEVER_APPLIED.value), pc.is_valid(told["since"]))
    return told.set_column(0, "cause", pc.if_else(behind, Cause.ROLLED_BACK.value, told["cause"]))


def files(batches: Iterable[pa.RecordBatch], told: pa.Table, rows: int) -> Iterator[bytes]:
    """Yield Parquet files of up to ``rows`` drifting players each, column by column; ``told`` is of the first ones."""
    sink, writer, room, at = pa.BufferOutputStream(), None, rows, 0
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            if writer is None:
                sink, room = pa.BufferOutputStream(), rows
                writer = pq.ParquetWriter(sink, SCHEMA.with_metadata({"finale.drift": FORMAT}), compression="zstd")
            part = batch.slice(start, room)
            writer.write_table(_table(part, told.slice(at, part.num_rows)))
            start, at, room = start + part.num_rows, at + part.num_rows, room - part.num_rows
            if not room:
                writer.close()
                yield sink.getvalue().to_pybytes()
                writer = None
    if writer is not None:
        writer.close()
        yield sink.getvalue().to_pybytes()


def _table(batch: pa.RecordBatch, told: pa.Table) -> pa.Table:
    """Return drifting players as rows of ``SCHEMA``; those of whom nothing is told have no cause."""
    said: dict[str, Any] = {name: batch.column(name) for name in batch.schema.names}
    difference = _difference(pc.fill_null(said["redis_points"], 0), pc.fill_null(said["ledger_points"], 0))
    said["difference"] = pc.if_else(pc.equal(said["class"], "no_score"), None, difference)
    for name in ("redis_reached_at", "ledger_reached_at"):
        said[name] = said[name].cast(_TIME)
    for name, kind in zip(_TOLD.names, _TOLD.types, strict=True):
        untold = pa.nulls(batch.num_rows - told.num_rows, kind)
        said[name] = pa.chunked_array([*told[name].chunks, untold], kind)
    return pa.table([said[name] for name in SCHEMA.names], schema=SCHEMA)


def _difference(redis: pa.Array, ledger: pa.Array) -> pa.Array:
    """Return Redis's points less the ledger's; null where that takes more than 64 bits."""
    wrapped = pc.subtract(redis, ledger)
    signs = pc.bit_wise_and(pc.bit_wise_xor(redis, ledger), pc.bit_wise_xor(redis, wrapped))
    return pc.if_else(pc.less(signs, 0), None, wrapped)


def lines(report: dict[str, Any], limit: int) -> list[tuple[Any, ...]]:
    """Return rows of a table for a person: player, class, Redis, ledger, difference, most likely cause."""
    return [
        (
            one["player_id"],
            IN_WORDS[one["class"]],
            _in_redis(one),
            _number(one["ledger_points"]),
            "" if one["difference"] is None else f"{one['difference']:+,}",
            f"{one['cause']}{', since ' + one['since'] if one['since'] else ''}: {one['why']}",
        )
        for one in report["players"][:limit]
    ]


def _rows(drift: Drift) -> list[dict[str, str]] | None:
    return [{"key": row.key, "score": row.score} for row in drift.rows] or None


def _in_redis(one: dict[str, Any]) -> str:
    rows = one.get("redis_rows") if one["class"] == "no_score" else None
    return ", ".join(row["score"] for row in rows) if rows else _number(one["redis_points"])


def _number(value: int | None) -> str:
    return "missing" if value is None else f"{value:,}"


def _instant(microseconds: int | None) -> str | None:
    return None if microseconds is None else _iso(pa.scalar(microseconds, _TIME).as_py())


def _iso(instant: Any) -> str:
    return str(instant.isoformat()).replace("+00:00", "Z")
