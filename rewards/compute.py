"""Grants computed from standings: pure, streaming, the same whatever the size of the batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rewards.table import RewardTable, Rule

_SLICE = 65_536  # rows taken at a time, so that memory stays flat however large the batches are
_HEX = np.array([list(b"%02x" % byte) for byte in range(256)], dtype=np.uint8)
_HYPHENS = (8, 13, 18, 23)
_TEXT = np.array([at for at in range(36) if at not in _HYPHENS])


def grants_schema(binary: bool) -> pa.Schema:
    """Return the columns of grants, none of them null; ``player_id`` is binary on boards with ``member = "binary"``."""
    columns = (
        ("grant_id", pa.string()),
        ("player_id", pa.binary() if binary else pa.string()),
        ("rule", pa.string()),
        ("item", pa.string()),
        ("amount", pa.int64()),
        ("position", pa.int64()),
        ("rank", pa.int64()),
    )
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns])


GRANTS_SCHEMA = grants_schema(binary=False)


def grants(batches: Iterator[pa.RecordBatch], table: RewardTable, board: str, season: str) -> Iterator[pa.RecordBatch]:
    """Yield the grants of standings that come in board order, in columns ``grants_schema``.

    ``batches`` have the columns ``position int64``, ``rank int64`` and ``player_id`` (string or binary), and any
    others. The grants are ordered by position, then by rule, then by item, both as the table has them. No batch is
    empty; a player's grants are never split over two.

    C78: ``grant_id`` names the grant, not the run that computed it, so the same grant always has the same id. It is the
    text form of the UUID made of the first 16 bytes of SHA-256 over five fields, in this order: board, season, player,
    rule name, item. Each field is its bytes (text as UTF-8) after their number, as 4 bytes, most significant first::

        fields = [board.encode(), season.encode(), player_bytes, rule.encode(), item.encode()]
        digest = sha256(b"".join(len(field).to_bytes(4, "big") + field for field in fields)).digest()
        grant_id = str(uuid.UUID(bytes=digest[:16]))
    """
    lines = _Lines.of(table)
    prefix = _prefixed(board.encode()) + _prefixed(season.encode())
    for batch in batches:
        for start in range(0, batch.num_rows, _SLICE):
            granted = _granted(batch.slice(start, _SLICE), table, lines, prefix)
            if granted.num_rows:
                yield granted


@dataclass(frozen=True, slots=True)
class _Lines:
    """The table flattened, one line an item of a rule. ``of_rule`` is where each rule's lines begin, and the end."""

    rules: pa.Array
    items: pa.Array
    amounts: NDArray[np.int64]
    tails: tuple[bytes, ...]  #: what each line adds to the bytes hashed for a grant id
    of_rule: tuple[int, ...]

    @classmethod
    def of(cls, table: RewardTable) -> _Lines:
        flat = [(rule.name, item, amount) for rule in table.rule for item, amount in rule.grant.items()]
        sizes = [len(rule.grant) for rule in table.rule]
        return cls(
            rules=pa.array([rule for rule, _, _ in flat], pa.string()),
            items=pa.array([item for _, item, _ in flat], pa.string()),
            amounts=np.array([amount for _, _, amount in flat], dtype=np.int64),
            tails=tuple(_prefixed(rule.encode()) + _prefixed(item.encode()) for rule, item, _ in flat),
            of_rule=(0, *np.cumsum(sizes).tolist()),
        )


def _granted(batch: pa.RecordBatch, table: RewardTable, lines: _Lines, prefix: bytes) -> pa.RecordBatch:
    positions, ranks = (batch.column(name).to_numpy() for name in ("position", "rank"))
    rows, chosen = _match(ranks if table.ties == "share" else positions, table, lines)
    players = batch.column("player_id").take(pa.array(rows))
    binary = pa.types.is_binary(players.type) or pa.types.is_large_binary(players.type)
    schema = grants_schema(binary)
    picked = pa.array(chosen)
    columns = [
        _grant_ids(players, chosen, lines.tails, prefix),
        players.cast(schema.field("player_id").type),
        lines.rules.take(picked),
        lines.items.take(picked),
        pa.array(lines.amounts[chosen]),
        pa.array(positions[rows]),
        pa.array(ranks[rows]),
    ]
    return pa.record_batch(columns, schema=schema)


def _match(places: NDArray[np.int64], table: RewardTable, lines: _Lines) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return, for each grant in order, the row of ``places`` that gets it and the line of the table that gives it."""
    free = np.ones(places.size, dtype=bool)
    rows: list[NDArray[np.intp]] = []
    chosen: list[NDArray[np.intp]] = []
    for rule, begin, end in zip(table.rule, lines.of_rule, lines.of_rule[1:], strict=False):
        taken = free & _takes(rule, places)
        if table.match == "first":
            free &= ~taken
        hit = np.flatnonzero(taken)
        rows.append(np.repeat(hit, end - begin))
        chosen.append(np.tile(np.arange(begin, end), hit.size))
    row, line = np.concatenate(rows), np.concatenate(chosen)
    order = np.argsort(row, kind="stable")  # the lines stand in the table's order already
    return row[order], line[order]


def _takes(rule: Rule, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    taken = places >= rule.first
    return taken if rule.last is None else taken & (places <= rule.last)


def _prefixed(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value


def _grant_ids(players: pa.Array, chosen: NDArray[np.intp], tails: tuple[bytes, ...], prefix: bytes) -> pa.Array:
    digests = b"".join(
        sha256(prefix + _prefixed(player) + tails[line]).digest()[:16]
        for player, line in zip(players.cast(pa.binary()).to_pylist(), chosen.tolist(), strict=True)
    )
    text = np.full((chosen.size, 36), ord("-"), dtype=np.uint8)
    text[:, _TEXT] = _HEX[np.frombuffer(digests, dtype=np.uint8)].reshape(-1, 32)
    offsets = np.arange(0, 36 * chosen.size + 1, 36, dtype=np.int32)
    return pa.StringArray.from_buffers(chosen.size, pa.py_buffer(offsets), pa.py_buffer(text))


@dataclass(slots=True)
class Totals:
    """What batches of grants in position order add up to; computed and written ones must be equal.

    Sums are exact, past 64 bits too.
    """

    rows: int = 0
    players: int = 0
    items: dict[str, int] = field(default_factory=dict)  #: item -> sum of its amounts
    tiers: dict[tuple[str, str], int] = field(default_factory=dict)  #: (rule, item) -> grants, one a player
    _last: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Fold the next ``batch`` in; raise ValueError out of position order, by which players are counted."""
        if not batch.num_rows:
            return
        positions = batch.column("position").to_numpy()
        steps = np.diff(positions, prepend=self._last)
        if steps.min() < 0:
            raise ValueError(f"grants are not in position order: {positions[int(steps.argmin())]} comes too late")
        self.rows += batch.num_rows
        self.players += int(np.count_nonzero(steps))
        self._last = int(positions[-1])
        for group in _groups(batch):
            item, tier = group["item"], (group["rule"], group["item"])
            self.items[item] = self.items.get(item, 0) + group["amount"] * group["amount_count"]
            self.tiers[tier] = self.tiers.get(tier, 0) + group["amount_count"]

    def definition(self) -> dict[str, Any]:
        """Return the totals as plain JSON values, for a seal, a journal or a report."""
        tiers = [{"rule": rule, "item": item, "grants": count} for (rule, item), count in self.tiers.items()]
        return {"rows": self.rows, "players": self.players, "items": self.items, "tiers": tiers}


def _groups(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    columns = pa.Table.from_batches([batch.select(["rule", "item", "amount"])])
    groups = columns.group_by(["rule", "item", "amount"], use_threads=False).aggregate([("amount", "count")])
    rows: list[dict[str, Any]] = groups.to_pylist()
    return rows
