"""What a correction follows from: what is sealed of a season so far, and the table and facts that are right."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from archive.facts import encode_facts
from archive.layout import correction_kind
from archive.seal import Seal
from archive.sealed_corrections import CHANGED
from archive.sealed_grants import FactFile
from jobs.payout import recomputing
from jobs.payout.facts import collect
from jobs.payout.recomputing import Basis
from jobs.payout.sealed import committed
from jobs.payout.voided import Voided, late_voids, merged
from jobs.wiring import Outside
from leaderboard.errors import WrongStateError
from leaderboard.season import Season
from leaderboard.states import State, reached
from ledger import seals
from rewards.facts import Facts, needed
from rewards.table import RewardTable

_BY = "correction"  # how the source of an exclusion by a correction begins


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be put right, why, and in whose name. ``voided`` is what is right of players after voided matches.

    ``folder`` is where files that ``table`` names are looked up.
    """

    because: str
    who: str
    exclude: tuple[bytes, ...] = ()
    table: RewardTable | None = None
    folder: Path = Path()
    voided: Voided | None = None


@dataclass(frozen=True, slots=True)
class Sealed:
    """What stands sealed of a season: standings, grants, and corrections in order."""

    standings: Seal
    grants: Seal
    grants_hash: str
    corrections: tuple[Seal, ...]

    @property
    def number(self) -> int:
        """The number of the next correction."""
        return len(self.corrections) + 1


def sealed(outside: Outside, season: Season) -> Sealed:
    """Return what is sealed of a season. Raises WrongStateError if nothing was granted."""
    row = seals.find(outside.database, season.key, "grants")
    if row is None or not reached(season.state, State.REWARDED):
        raise WrongStateError(
            f"{season.name} is {season.state}, and no grants of it are sealed: there is nothing to correct",
            hint=f"see: finale season show {season.board.name} {season.id}",
        )
    found = []
    for number in count(1):
        kind = correction_kind(number)
        if seals.find(outside.database, season.key, kind) is None:
            break
        found.append(committed(outside, season, kind))
    return Sealed(
        committed(outside, season, "standings"), committed(outside, season, "grants"), row.sha256, tuple(found)
    )


def basis_for(outside: Outside, season: Season, so_far: Sealed, request: Request) -> tuple[Basis, list[bytes]]:
    """Return what everything follows from once ``request`` is granted, and the bytes of the files of facts it adds."""
    before = recomputing.basis_of(outside.store, so_far.corrections[-1] if so_far.corrections else so_far.grants)
    binary = season.board.member == "binary"
    added: dict[str, tuple[FactFile, bytes]] = {}
    changed, told = before.changed, f"{_BY} {so_far.number}"
    table = request.table or before.table
    facts = before.facts
    if request.table is not None:
        facts, added = _collected(outside, season, before, request)
    if request.exclude:
        facts = facts.excluding(request.exclude, request.because, told, binary=binary)
        excluded = facts.get("excluded")
        assert excluded is not None
        added["excluded"] = encode_facts("excluded", excluded, told)
    if request.voided is not None and request.voided.changed.num_rows:
        changed = merged(changed, request.voided.changed)
        added[CHANGED] = encode_facts(CHANGED, changed, f"{told}: voided matches")
    if (right := _matches_left(outside, season, before, request, "matches" in added)) is not None:
        facts = Facts({**facts.tables, "matches": merged(facts.get("matches"), right)})
        added["matches"] = encode_facts("matches", facts.tables["matches"], "the ledger, without voided matches")
    facts.check(table)
    kept = (*facts.tables, CHANGED)
    files = (
        *(file for file in before.files if file.kind in kept and file.kind not in added),
        *(file for file, _ in added.values()),
    )
    return Basis(table, facts, changed, files), [data for _, data in added.values()]


def _matches_left(outside: Outside, season: Season, before: Basis, request: Request, counted: bool) -> pa.Table | None:
    """Return how many matches players have left after voids, where the table asks for that; None if nothing changes it.

    The ledger's totals stand as they were frozen, so what is ``counted`` now lacks the voids of earlier corrections.
    """
    if "matches" not in needed(request.table or before.table):
        return None
    if request.voided is not None:
        return request.voided.matches if request.voided.matches.num_rows else None
    if counted and before.changed is not None:
        return late_voids(outside, season).among(before.changed["player_id"])
    return None


def _collected(
    outside: Outside, season: Season, before: Basis, request: Request
) -> tuple[Facts, dict[str, tuple[FactFile, bytes]]]:
    """Return the facts of another table, and the files of those that are new.

    What it asks for as the table before did stays as it was sealed; anything else is looked up now. Players whom
    earlier corrections have excluded stay excluded.
    """
    table = request.table
    assert table is not None
    same = {
        kind
        for kind in needed(table)
        if kind in before.facts.tables and _asks(table, kind) == _asks(before.table, kind)
    }
    tables = {kind: before.facts.tables[kind] for kind in same}
    added: dict[str, tuple[FactFile, bytes]] = {}
    if set(needed(table)) - same:
        found = collect(outside, season, table, request.folder)
        added = {file.kind: (file, data) for file, data in found.files if file.kind not in same}
        tables |= {kind: found.facts.tables[kind] for kind in added}
    excluded = before.facts.get("excluded")
    if excluded is not None and "excluded" not in same:
        by_hand = excluded.filter(pc.starts_with(excluded["source"], _BY))
        known = tables.get("excluded")
        if known is not None:
            more = pc.invert(pc.is_in(by_hand["player_id"], value_set=known["player_id"].combine_chunks()))
            by_hand = pa.concat_tables([known, by_hand.filter(more)])
        if by_hand.num_rows:
            tables["excluded"] = by_hand
            added["excluded"] = encode_facts("excluded", by_hand, _BY)
    return Facts(tables), added


def _asks(table: RewardTable, kind: str) -> Any:
    """Return the part of a table that a kind of fact follows from."""
    if kind == "previous":
        return {rule.previous for rule in table.rule}
    return {"excluded": table.exclude, "leagues": table.leagues}.get(kind, table.eligible)
