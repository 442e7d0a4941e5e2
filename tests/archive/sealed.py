"""Sealed and published seasons for tests, made from plain rows with the archive's own writers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from archive.digest import StandingDigest
from archive.layout import staging_dir
from archive.parts import Part, PartWriter, standings_schema
from archive.publish import publish
from archive.seal import Chain, KeyFacts, Seal, StandingFacts, build
from archive.sealed_grants import FactFile, GrantFacts
from archive.store import Store
from leaderboard.board import Board
from leaderboard.codec import codec_for
from leaderboard.ranking import Ranker
from leaderboard.season import Bounds
from leaderboard.sums import exact_sum

SEALED_AT = datetime(2026, 12, 5, 0, 20, tzinfo=UTC)


def board(name: str = "daily", **fields: Any) -> Board:
    return Board.model_validate({"name": name, "calendar": {"every": "day"}, **fields})


def bounds(season: str = "s20261204") -> Bounds:
    return Bounds(datetime(2026, 12, 4, tzinfo=UTC), datetime(2026, 12, 5, tzinfo=UTC), season)


@dataclass
class Draft:
    """A season before it is sealed: change its table or facts to make something wrong on purpose."""

    board: Board
    bounds: Bounds
    table: Any
    facts: StandingFacts
    files: list[tuple[Part, bytes]]

    def seal(self, **fields: Any) -> Seal:
        values: dict[str, Any] = {
            "board": self.board.definition(),
            "bounds": self.bounds,
            "facts": self.facts,
            "chain": Chain(1, None),
            "software": "0.1.0",
            "sealed_at": SEALED_AT,
            "reconcile": {"verdict": "agree"},
        }
        return Seal(**(values | fields))

    def stage(self, store: Store) -> None:
        folder = staging_dir(self.board.name, self.bounds.id, self.facts.attempt)
        for part, data in self.files:
            store.put_new(f"{folder}/{part.name}", data)

    def publish(self, store: Store, **fields: Any) -> Seal:
        """Stage, seal, publish."""
        self.stage(store)
        seal = self.seal(**fields)
        store.put_new(seal.path, build(seal))
        publish(store, seal)
        return seal


def standings(of: Board, season: Bounds, members: list[bytes], scores: list[float]) -> Any:
    """Return the standings of members and scores given in any order, as the schema has them."""
    order = sorted(range(len(members)), key=lambda at: (scores[at], members[at]), reverse=of.descending)
    raw = np.array([scores[at] for at in order], dtype=np.float64)
    points, reached_at = codec_for(of, season).decode_array(raw)
    positions, ranks = Ranker(shared=of.ties.by != "member").add(raw)
    schema = standings_schema(of.member == "binary", of.points == "fraction")
    players = pa.array([members[at] for at in order], pa.binary()).cast(schema.field("player_id").type)
    time = pa.nulls(raw.size, pa.timestamp("us", tz="UTC"))
    if reached_at is not None:
        time = pa.array(reached_at).cast(time.type)
    return pa.table(
        [pa.array(positions), pa.array(ranks), players, pa.array(points), time, pa.array(raw)], schema=schema
    )


def draft(of: Board, season: Bounds, table: Any, part_rows: int = 4, attempt: str = "f1-1") -> Draft:
    """Return the season whose standings are ``table``, whatever is in it."""
    writer = PartWriter(table.schema, part_rows)
    files = [made for batch in table.to_batches() for made in writer.add(batch)] + writer.finish()
    digest = StandingDigest()
    for batch in table.to_batches():
        digest.update(batch.column("player_id"), batch.column("score").to_numpy())
    scores = table["score"].to_pylist()
    facts = StandingFacts(
        attempt=attempt,
        rows=table.num_rows,
        digest=digest.hexdigest(),
        keys=(KeyFacts(f"leaderboard:{of.name}:{season.id}", table.num_rows, digest.hexdigest()),),
        points_sum=None if of.points == "fraction" else exact_sum(table["points"].to_numpy()),
        first_score=scores[0] if scores else None,
        last_score=scores[-1] if scores else None,
        parts=tuple(part for part, _ in files),
    )
    return Draft(of, season, table, facts, files)


def packed_draft(season: str = "s20261204", rows: int = 10, name: str = "daily", **fields: Any) -> Draft:
    """Return a season of ``rows`` players ``p0``… on a high first_to_reach board, points falling, the last two tied."""
    of, when = board(name), bounds(season)
    codec = codec_for(of, when)
    start = int(when.starts_at.timestamp()) * 10**6
    members = [f"p{at}".encode() for at in range(rows)]
    scores = [codec.encode(max(rows - at, 2), start + 10**6 * min(at, rows - 2)) for at in range(rows)]
    return draft(of, when, standings(of, when, members, scores), **fields)


def with_grants(
    store: Store, season: Draft, standings_seal: str, outside: tuple[FactFile, ...] = (), **fields: Any
) -> Seal:
    """Publish grants of 10 gems to every player of ``season``; return their seal."""
    table = season.table
    rows = table.num_rows
    grants = pa.table(
        {
            "grant_id": [f"g{at}" for at in range(rows)],
            "player_id": table["player_id"],
            "rule": ["took part"] * rows,
            "item": ["gems"] * rows,
            "amount": [10] * rows,
            "position": table["position"],
            "rank": table["rank"],
        }
    )
    writer = PartWriter(grants.schema, 3)
    files = [made for batch in grants.to_batches() for made in writer.add(batch)] + writer.finish()
    parts = tuple(part for part, _ in files)
    facts = GrantFacts("f2-1", rows, parts, standings_seal, {"version": 1}, {"gems": 10 * rows}, facts=outside)
    made = replace(season, files=files, facts=facts)  # type: ignore[arg-type]  # the same steps, of grants
    return made.publish(store, **fields)
