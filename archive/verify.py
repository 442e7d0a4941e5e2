"""Verification: every part read again, every row against the rules, everything against the seal."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archive.digest import StandingDigest
from archive.facts import read_facts
from archive.faults import Fault, NotAsSealedError, told
from archive.fetch import load_seal, parts_faults
from archive.layout import Kind
from archive.objects import Store
from archive.parts import FORMAT, standings_schema
from archive.seal import Seal, StandingFacts
from archive.sealed_corrections import CorrectionFacts
from archive.sealed_grants import GrantFacts
from archive.spread import Spread
from leaderboard.board import Board
from leaderboard.codec import Codec, codec_for
from leaderboard.errors import ArchiveMismatchError, ConfigError, InputError
from leaderboard.ranking import Ranker
from leaderboard.season import Bounds
from leaderboard.sums import exact_sum


@dataclass(frozen=True, slots=True)
class Verified:
    """What was read and found right: rows, parts, bytes, the digest (None for grants), and how long it took.

    ``keys``: of how many live keys the digest was computed again. None for grants; 0 where other people's writers had
    spread the players over the shards in a way of their own, so that no row tells which key it was in.
    """

    rows: int
    parts: int
    size: int
    digest: str | None
    keys: int | None
    seconds: float


def verify(store: Store, board: str, season: str, kind: Kind = "standings") -> Verified:
    """Read every part of a sealed season again and return what was verified.

    Each part must be present, with the sealed bytes and rows and the fixed schema; the rows must have positions 1..N,
    ranks by the board's rule, and stand in board order; digest, sums and first and last score must be the seal's.
    Raises ArchiveMismatchError that names every part at fault and what differs, and UnknownNameError if the season is
    not sealed.
    """
    started = time.monotonic()
    seal = load_seal(store, board, season, kind)
    content = _Standing(seal, seal.facts) if isinstance(seal.facts, StandingFacts) else _Grants(seal.facts)
    read: list[str] = []

    def look(path: str, file: Any) -> list[Fault]:
        found = _form_faults(file, content.schema)
        # The first faults tell enough; what follows them may only follow from them.
        if not found and path == f"{seal.place}/{seal.facts.parts[len(read)].name}":
            found = next((faulty for batch in file.iter_batches() if (faulty := content.add(batch))), [])
            if not found:
                read.append(path)
        return [Fault(path, fault) for fault in found]

    faults = parts_faults(store, seal.place, seal.facts.parts, look)
    if len(read) == len(seal.facts.parts):
        faults += content.end(seal.path)
    if not isinstance(seal.facts, StandingFacts):
        faults += _facts_faults(store, seal, seal.facts)
    if faults:
        raise NotAsSealedError(
            f"{store.url}: the {seal.name} are not what was sealed",
            faults=faults,
            detail=told(faults),
            hint="restore these files from a backup; nothing that still exists elsewhere may be removed before",
        )
    size = sum(part.size for part in seal.facts.parts)
    digest = seal.facts.digest if isinstance(seal.facts, StandingFacts) else None
    keys = content.keys if isinstance(content, _Standing) else None
    return Verified(seal.facts.rows, len(seal.facts.parts), size, digest, keys, time.monotonic() - started)


def _facts_faults(store: Store, seal: Seal, facts: GrantFacts | CorrectionFacts) -> list[Fault]:
    """Return which files of facts are missing or other than sealed."""
    faults: list[Fault] = []
    for file in facts.facts:
        try:
            read_facts(store, seal.board_name, seal.bounds.id, file)
        except NotAsSealedError as error:
            faults += error.faults
    return faults


def _form_faults(file: Any, schema: Any) -> list[str]:
    faults = []
    if (file.metadata.metadata or {}).get(b"finale.format") != FORMAT.encode():
        faults.append(f"not marked as format {FORMAT}")
    found = file.schema_arrow.remove_metadata()
    if schema is not None and not found.equals(schema):
        faults.append(f"columns {_columns(found)} instead of {_columns(schema)}")
    return faults


def _columns(schema: Any) -> str:
    return ", ".join(f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in schema)


class _Standing:
    """Checks the rows of standings, batch after batch, carrying the border between them."""

    def __init__(self, seal: Seal, facts: StandingFacts) -> None:
        self._facts = facts
        self._board = _board(seal)
        self._codec = _codec(self._board, seal.bounds)
        self._ranker = Ranker(shared=self._board.ties.by != "member")
        self._digest = StandingDigest()
        ours = self._board.ledger_kind == "own"
        self._spread = Spread(self._board.layout, facts.keys, ours=ours) if len(facts.keys) > 1 else None
        self._points = 0
        self._scores: list[float] = []
        self._last: Any = None
        self.schema = standings_schema(self._board.member == "binary", self._board.points == "fraction")

    def add(self, batch: Any) -> list[str]:
        """Take the next rows; return what is wrong with them."""
        if not batch.num_rows:
            return []
        scores = batch.column("score").to_numpy()
        positions, ranks = self._ranker.add(scores)
        faults = [
            *_column_fault(batch, "position", positions),
            *_column_fault(batch, "rank", ranks),
            *self._order_fault(batch),
            *self._decoding_faults(batch, scores),
        ]
        self._digest.update(batch.column("player_id"), scores)
        if self._spread:
            self._spread.add(batch.column("player_id"), scores)
        self._scores = [*self._scores[:1], *(float(scores[at]) for at in (0, -1))]
        if self._facts.points_sum is not None:
            self._points += exact_sum(batch.column("points").to_numpy())
        self._last = batch.slice(batch.num_rows - 1)
        return faults

    def end(self, path: str) -> list[Fault]:
        """Return what is wrong with the standing as a whole, whose seal lies at ``path``."""
        first, last = (self._scores[0], self._scores[-1]) if self._scores else (None, None)
        found = {
            "digest": (self._digest.hexdigest(), self._facts.digest),
            "first score": (first, self._facts.first_score),
            "last score": (last, self._facts.last_score),
        }
        if self._facts.points_sum is not None:
            found["sum of points"] = (self._points, self._facts.points_sum)
        if len(self._facts.keys) == 1:
            found["digest of the live key"] = (self._digest.hexdigest(), self._facts.keys[0].digest)
        spread = self._spread.faults() if self._spread else []
        wrong = [
            Fault(path, f"{name} {here}, the seal says {sealed}", expected=sealed, found=here)
            for name, (here, sealed) in found.items()
            if here != sealed
        ]
        return wrong + [Fault(path, fault) for fault in spread]

    @property
    def keys(self) -> int:
        """Of how many live keys :meth:`end` compared the digest."""
        return len(self._facts.keys) if self._spread is None or self._spread.as_laid_out else 0

    def _order_fault(self, batch: Any) -> list[str]:
        rows = pa.Table.from_batches([batch] if self._last is None else [self._last, batch]).combine_chunks()
        scores, members = rows["score"].to_numpy(), rows["player_id"].combine_chunks()
        upper, lower = (scores[:-1], scores[1:]) if self._board.descending else (scores[1:], scores[:-1])
        compare = pc.greater if self._board.descending else pc.less
        byte_order = compare(members.slice(0, len(members) - 1), members.slice(1)).to_numpy(zero_copy_only=False)
        wrong = ~((upper > lower) | ((upper == lower) & byte_order.astype(bool)))
        if not wrong.any():
            return []
        position = rows["position"][int(np.flatnonzero(wrong)[0]) + 1].as_py()
        return [f"position {position} is out of board order"]

    def _decoding_faults(self, batch: Any, scores: Any) -> list[str]:
        try:
            points, reached_at = self._codec.decode_array(scores)
        except InputError as error:
            return [str(error)]
        faults = _column_fault(batch, "points", points)
        if reached_at is not None:
            faults += _column_fault(batch, "reached_at", reached_at.view("datetime64[us]"))
        elif batch.column("reached_at").null_count != batch.num_rows:
            faults.append("reached_at where the scores know no time")
        return faults


class _Grants:
    """Checks the rows of grants or a correction: one schema in all parts, and the sums of each item."""

    def __init__(self, facts: GrantFacts | CorrectionFacts) -> None:
        self._facts = facts
        self._sums: Counter[str] = Counter()
        self.schema: Any = None

    def add(self, batch: Any) -> list[str]:
        """Take the next rows; return what is wrong with them."""
        columns = {"item", "amount"} - set(batch.schema.names)
        if columns:
            return [f"no column {', '.join(sorted(columns))}"]
        self.schema = batch.schema.remove_metadata()
        amounts = batch.column("amount").cast(pa.int64()).to_numpy()
        items = batch.column("item").dictionary_encode()
        which = items.indices.to_numpy()
        for number, item in enumerate(items.dictionary.to_pylist()):
            self._sums[item] += exact_sum(amounts[which == number])
        return []

    def end(self, path: str) -> list[Fault]:
        """Return the items whose sums are not the seal's, which lies at ``path``."""
        return [
            Fault(path, f"sum of {item} {here}, the seal says {sealed}", expected=sealed, found=here)
            for item in sorted(self._sums.keys() | self._facts.sums.keys())
            if (here := self._sums[item]) != (sealed := self._facts.sums.get(item, 0))
        ]


def _board(seal: Seal) -> Board:
    try:
        return Board.model_validate(dict(seal.board))
    except ValueError as error:
        raise ArchiveMismatchError(f"the seal of the {seal.name} defines no board", detail=str(error)) from None


def _codec(board: Board, bounds: Bounds) -> Codec:
    try:
        return codec_for(board, bounds)
    except ConfigError as error:
        raise ArchiveMismatchError(f"the seal of {board.name}/{bounds.id}", detail=str(error)) from None


def _column_fault(batch: Any, name: str, expected: Any) -> list[str]:
    column = batch.column(name)
    if column.null_count:
        return [f"{name} is empty in {column.null_count:,} rows"]
    if name == "reached_at":
        column = column.cast(pa.int64())
        expected = expected.astype(np.int64)
    differs = column.to_numpy() != expected
    if not differs.any():
        return []
    at = int(np.flatnonzero(differs)[0])
    position = batch.column("position")[at].as_py()
    return [f"{name} {column[at].as_py()} at position {position} must be {expected[at]}"]
