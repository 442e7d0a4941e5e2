"""An audit by a stranger: with the object store alone, is everything of a season what it says it is (I10)?

Nothing is asked of Redis, PostgreSQL or a configuration. The chain of the board's seals is followed, every part is read
again, every rank, grant and correction is computed anew from the sealed standings, tables and facts, and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from archive.catalog import Sealed, read_catalog
from archive.chain import chain_faults
from archive.fetch import read_parts_checked
from archive.layout import kind_order
from archive.objects import Store
from archive.seal import Seal
from archive.sealed_corrections import CorrectionFacts
from archive.verify import verify
from jobs.payout.recomputing import basis_of, correction_of, grants_of
from leaderboard.errors import ArchiveMismatchError, FinaleError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, and what is wrong with it; ``told`` says what was found right."""

    name: str
    told: str
    faults: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {"check": self.name, "ok": not self.faults, "told": self.told, "faults": list(self.faults)}


@dataclass(slots=True)
class Audit:
    """All checks of a season. ``last`` is the last seal of the board's chain, by which a later audit can be held."""

    board: str
    season: str
    last: Sealed
    checks: list[Check] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        return [f"{check.name}: {fault}" for check in self.checks for fault in check.faults]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "board": self.board,
            "season": self.season,
            "ok": not self.faults,
            "last": {"number": self.last.seal.chain.number, "sha256": self.last.sha256, "path": self.last.seal.path},
            "checks": [check.to_json() for check in self.checks],
        }


def audit(store: Store, board: str, season: str, tip: str | None = None) -> Audit:
    """Return what was found. ``tip`` is the hash of a seal of the board that somebody has written down before.

    Goes on after a fault, where what follows can still be told. Raises UnknownNameError if the season is not sealed.
    """
    unknown = f"is {store.url} the archive that has it?"
    try:
        catalog = read_catalog(store, board)
    except UnknownNameError as error:
        raise UnknownNameError(error.message, detail=error.detail, hint=unknown) from None
    if not catalog.seals:
        raise ArchiveMismatchError(
            f"no seal of board {board!r} can be read",
            detail="; ".join(map(str, catalog.faults)),
            hint=f"check URL and board, {store.url} and {board}; restore seals from a backup",
        )
    last = max(catalog.seals, key=lambda one: one.seal.chain.number)
    found = Audit(board, season, last)
    faults = (*map(str, catalog.faults), *chain_faults(catalog.seals))
    found.checks.append(Check("chain", f"{len(catalog.seals):,} seals, each naming the one before", faults))
    if tip is not None:
        found.checks.append(_tip(catalog.seals, tip, last))
    mine = sorted((one.seal for one in catalog.seals if one.seal.bounds.id == season), key=_order)
    if not any(seal.kind == "standings" for seal in mine):
        if found.faults:
            return found
        raise UnknownNameError(f"{board}/{season} is not sealed", detail=store.url, hint=unknown)
    if not any(seal.kind == "grants" for seal in mine):
        told = "no seal of grants is here: not rewarded yet, no reward table, or removed, which only --tip can tell"
        found.checks.append(Check("grants", told))
    for seal in mine:
        found.checks.append(_checked(f"{seal.kind}: files", partial(_files, store, seal)))
    for seal in mine[1:]:
        check = _checked(f"{seal.kind}: computed anew", partial(_recomputed, store, mine, seal))
        found.checks.append(_unless_told(check, found.faults, store.url))
    return found


def _order(seal: Seal) -> int:
    return kind_order(seal.kind)


def _tip(seals: Iterable[Sealed], tip: str, last: Sealed) -> Check:
    """Nothing up to the seal with that hash is missing, since every seal after the first names the one before."""
    held = next((one for one in seals if one.sha256 == tip.lower()), None)
    if held is None:
        return Check(
            "tip",
            "",
            (
                f"no seal of the board has the hash {tip}: the chain ends at number {last.seal.chain.number} "
                f"({last.sha256}), and something after it, or in it, is missing or was replaced",
            ),
        )
    after = last.seal.chain.number - held.seal.chain.number
    return Check("tip", f"number {held.seal.chain.number} of the chain, {after:,} seals after it")


def _checked(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, look())
    except FinaleError as error:
        return Check(name, "", (": ".join(part for part in (error.message, error.detail) if part),))
    except (pa.ArrowException, ValueError, LookupError, TypeError) as error:
        return Check(name, "", (f"cannot be read: {error}",))


def _unless_told(check: Check, before: Iterable[str], url: str) -> Check:
    """Return the check with a broken file that was told already named no more."""
    whats = [fault.removeprefix(f"{url}: ").partition(": ")[0] for fault in check.faults]
    if whats and all(any(what in fault for fault in before) for what in whats):
        return Check(check.name, "", ("cannot be computed, since a file that was named is not as sealed",))
    return check


def _files(store: Store, seal: Seal) -> str:
    found = verify(store, seal.board_name, seal.bounds.id, seal.kind)
    return f"{found.rows:,} rows in {found.parts:,} parts, {found.size:,} bytes, as sealed"


def _recomputed(store: Store, mine: list[Seal], seal: Seal) -> str:
    """Compute grants or a correction from what is sealed before it. Raises ArchiveMismatchError if it differs."""
    standings = mine[0]
    basis = basis_of(store, seal)
    if seal.kind == "grants":
        computed = grants_of(store, standings, basis)
    else:
        before = [one for one in mine[1:] if kind_order(one.kind) < kind_order(seal.kind)]
        if not before or before[0].kind != "grants":
            raise ArchiveMismatchError("there is no seal of grants that it could correct")
        assert isinstance(seal.facts, CorrectionFacts)
        computed = correction_of(store, standings, before[0], before[1:], basis, seal.facts.number)
    if differs := first_difference(computed, read_parts_checked(store, seal)):
        raise ArchiveMismatchError(f"the {seal.name} are not what follows from the sealed files", detail=differs)
    return f"{seal.facts.rows:,} rows follow from the sealed standings, table and facts"


def first_difference(computed: Iterable[pa.RecordBatch], sealed: Iterable[pa.RecordBatch]) -> str:
    """Return where two streams of rows first differ, whatever their batches; nothing if they do not."""
    row = 0
    for mine, theirs in _side_by_side(computed, sealed):
        if mine is None or theirs is None:
            what = "is sealed but does not follow" if mine is None else "follows but is not sealed"
            return f"row {row + 1:,} {what}: {_shown(theirs if mine is None else mine, 0)}"
        if not mine.equals(theirs):
            at = _first(mine, theirs)
            return f"row {row + at + 1:,}: computed {_shown(mine, at)}, sealed {_shown(theirs, at)}"
        row += mine.num_rows
    return ""


def _side_by_side(
    one: Iterable[pa.RecordBatch], other: Iterable[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch | None, pa.RecordBatch | None]]:
    """Yield the same rows of both, as many at a time as both have; None for one that has ended."""
    streams = [(batch for batch in source if batch.num_rows) for source in (one, other)]
    left, right = (next(stream, None) for stream in streams)
    while left is not None or right is not None:
        if left is None or right is None:
            yield left, right
            return
        size = min(left.num_rows, right.num_rows)
        yield left.slice(0, size), right.slice(0, size)
        left = left.slice(size) if left.num_rows > size else next(streams[0], None)
        right = right.slice(size) if right.num_rows > size else next(streams[1], None)


def _first(mine: pa.RecordBatch, theirs: pa.RecordBatch) -> int:
    """Return the first row in which two batches of as many rows differ."""
    if mine.schema.names != theirs.schema.names:
        return 0
    firsts = []
    for name in mine.schema.names:
        different = pc.not_equal(mine.column(name), theirs.column(name).cast(mine.column(name).type))
        at = pc.index(pc.fill_null(different, True), True).as_py()
        firsts += [at] if at >= 0 else []
    return min(firsts, default=0)


def _shown(batch: pa.RecordBatch | None, row: int) -> str:
    if batch is None:
        return "nothing"
    values = batch.slice(row, 1).to_pylist()[0]
    return ", ".join(f"{name} {value}" for name, value in values.items())
