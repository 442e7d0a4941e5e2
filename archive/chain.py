"""The chain of a board's seals: numbers without a gap, each with the hash of the one before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from archive.catalog import Sealed
from archive.layout import correction_kind
from archive.sealed_corrections import CorrectionFacts
from archive.sealed_grants import GrantFacts


def chain_faults(seals: Iterable[Sealed]) -> list[str]:
    """Return what does not hold together among all seals of one or more boards, a line a fault; empty if all does.

    Of each board the numbers must be 1, 2, 3, … and every seal must name the hash of the one before; grants must name
    the hash of their season's standings. What is missing at the end of a chain cannot be seen.
    """
    boards: dict[str, list[Sealed]] = defaultdict(list)
    for one in seals:
        boards[one.seal.board_name].append(one)
    return [fault for name in sorted(boards) for fault in _faults(boards[name])]


def _faults(seals: list[Sealed]) -> list[str]:
    ordered = sorted(seals, key=lambda one: one.seal.chain.number)
    first = ordered[0].seal
    faults = []
    if first.chain.number != 1:
        faults.append(f"{first.board_name}: the chain begins with number {first.chain.number} ({first.path})")
    for before, after in pairwise(ordered):
        number, expected = after.seal.chain.number, before.seal.chain.number + 1
        if number != expected:
            faults.append(
                f"{after.seal.path} has number {number} in the chain, after {before.seal.path} comes {expected}"
            )
        elif after.seal.chain.previous != before.sha256:
            faults.append(f"{after.seal.path} does not follow {before.seal.path}: it names another hash")
    by_kind = {(one.seal.bounds.id, one.seal.kind): one.sha256 for one in seals}
    for one in seals:
        facts, season = one.seal.facts, one.seal.bounds.id
        if isinstance(facts, GrantFacts) and facts.standings_seal != by_kind.get((season, "standings")):
            faults.append(f"{one.seal.path} was computed from other standings than are sealed")
        if isinstance(facts, CorrectionFacts):
            if facts.grants_seal != by_kind.get((season, "grants")):
                faults.append(f"{one.seal.path} corrects other grants than are sealed")
            if facts.number > 1 and (season, correction_kind(facts.number - 1)) not in by_kind:
                faults.append(f"{one.seal.path} follows correction {facts.number - 1}, which is missing")
    return faults
