"""Grants and corrections computed from sealed files alone: for corrections, and for audits that compare (I10)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from archive.adjusted import adjusted
from archive.facts import read_facts
from archive.fetch import read_parts_checked
from archive.objects import Store
from archive.seal import Seal
from archive.sealed_corrections import CHANGED, CorrectionFacts
from archive.sealed_grants import FactFile, GrantFacts
from leaderboard.board import Board
from rewards.compute import grants
from rewards.corrections import difference
from rewards.facts import Facts
from rewards.plan import COLUMNS, plan
from rewards.table import RewardTable


@dataclass(frozen=True, slots=True)
class Basis:
    """All that grants follow from beside the sealed standings: the table, outside facts, and changed points, if any.

    ``files`` are the same facts and changes as seals name them.
    """

    table: RewardTable
    facts: Facts
    changed: pa.Table | None
    files: tuple[FactFile, ...]


def basis_of(store: Store, seal: Seal) -> Basis:
    """Return what the grants of a seal, or all grants together from a correction on, follow from.

    Raises ArchiveMismatchError for facts that are not as sealed.
    """
    assert isinstance(seal.facts, GrantFacts | CorrectionFacts)
    tables = {file.kind: read_facts(store, seal.board_name, seal.bounds.id, file) for file in seal.facts.facts}
    changed = tables.pop(CHANGED, None)
    return Basis(RewardTable.from_definition(dict(seal.facts.reward_table)), Facts(tables), changed, seal.facts.facts)


def standings_of(store: Store, seal: Seal, changed: pa.Table | None) -> Iterator[pa.RecordBatch]:
    """Yield what grants need of the sealed standings in board order, with changed points where there are any."""
    if changed is None:
        return read_parts_checked(store, seal, COLUMNS)
    rows = read_parts_checked(store, seal)
    return adjusted(rows, changed, Board.model_validate(dict(seal.board)), seal.bounds)


def grants_of(store: Store, standings: Seal, basis: Basis) -> Iterator[pa.RecordBatch]:
    """Yield the grants that follow from sealed standings and ``basis``; the standings are read twice."""
    planned = plan(standings_of(store, standings, basis.changed), basis.table, basis.facts)
    rows = standings_of(store, standings, basis.changed)
    return grants(rows, planned, standings.board_name, standings.bounds.id)


def correction_of(
    store: Store, standings: Seal, granted: Seal, earlier: Sequence[Seal], basis: Basis, number: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that correction ``number`` must have so that, with it, everything is as ``basis`` says."""
    return difference(
        read_parts_checked(store, granted),
        _all(read_parts_checked(store, seal) for seal in earlier),
        grants_of(store, standings, basis),
        number,
        binary=standings.board.get("member") == "binary",
    )


def _all(parts: Iterable[Iterable[Any]]) -> Iterator[Any]:
    for batches in parts:
        yield from batches
