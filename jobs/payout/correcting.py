"""Corrections: what was granted wrongly is put right by more grants and by revocations; nothing is ever rewritten.

A correction is numbered, sealed in the board's chain, written as rows beside the grants and delivered by the same
outbox. What it seals is the difference between everything granted so far and what follows from its table and facts,
which hold from then on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from archive.facts import put_facts
from archive.fetch import read_parts_checked
from archive.layout import correction_kind, staging_dir
from archive.objects import settle
from archive.parts import Part, PartWriter
from archive.publish import publish
from archive.seal import Seal
from archive.sealed_corrections import CorrectionFacts
from archive.sealed_grants import FactFile, GrantFacts
from jobs.payout import recomputing
from jobs.payout.correction_basis import Request, Sealed, basis_for, sealed
from jobs.payout.delivering import delivery_of
from jobs.payout.recomputing import Basis
from jobs.seasons import runner
from jobs.seasons.leasing import leased
from jobs.steps.seal import commit, put, sweep_own
from jobs.steps.step import Acting
from jobs.unforeseen import told
from jobs.wiring import Outside
from leaderboard.errors import FinaleError, UnknownNameError, WrongStateError
from leaderboard.season import Season
from leaderboard.wording import counted, listed
from ledger import corrections, journal, outbox, pausing, seals, seasons
from rewards.corrections import Change, correction_schema
from rewards.spending import Overrun, overruns

_SHOWN = 20  # rows that a preview shows


@dataclass(slots=True)
class Preview:
    """What a correction would do: the number it would have, what it gives and takes, its first rows.

    ``left`` are players with voided matches who stay as they were sealed, since the ledger had something else of them.
    ``over`` are the items of which more would be paid in all, with it, than the budget of its table has.
    """

    number: int
    change: Change = field(default_factory=Change)
    first: list[dict[str, Any]] = field(default_factory=list)
    not_on_board: list[bytes] = field(default_factory=list)
    left: tuple[bytes, ...] = ()
    over: list[Overrun] = field(default_factory=list)

    def to_json(self, *, binary: bool) -> dict[str, Any]:
        """Return it as plain JSON values."""

        def name(player: str | bytes) -> str:
            return player.hex() if isinstance(player, bytes) and binary else _text(player)

        return {
            "number": self.number,
            "rows": self.change.rows,
            "players": self.change.players,
            "given": self.change.given,
            "taken": self.change.taken,
            "sums": self.change.sums,
            "hash": self.change.digest,
            "over_budget": [{"item": one.item, "cost": one.cost, "budget": one.cap} for one in self.over],
            "first": [{**row, "player_id": name(row["player_id"])} for row in self.first],
            "not_on_board": [name(player) for player in self.not_on_board],
            "left_as_sealed": [name(player) for player in self.left],
        }


def _text(player: str | bytes) -> str:
    return player if isinstance(player, str) else player.decode(errors="backslashreplace")


def preview(outside: Outside, season: Season, request: Request) -> Preview:
    """Return what the correction would do, changing nothing.

    Raises WrongStateError as ``sealed`` does, UnknownNameError if none of the players to exclude is on the board.
    """
    so_far = sealed(outside, season)
    basis, _ = basis_for(outside, season, so_far, request)
    found = Preview(so_far.number, not_on_board=_missing(outside, so_far, request, basis))
    found.left = request.voided.left if request.voided else ()
    for batch in _rows(outside, so_far, basis):
        found.change.add(batch)
        if len(found.first) < _SHOWN:
            found.first += batch.slice(0, _SHOWN - len(found.first)).to_pylist()
    found.over = overruns(basis.table, _in_all(so_far, found.change))
    return found


def _in_all(so_far: Sealed, change: Change) -> dict[str, int]:
    """Return what grants and all corrections, the new one too, come to, by item."""
    sums = Counter(change.sums)
    for seal in (so_far.grants, *so_far.corrections):
        assert isinstance(seal.facts, GrantFacts | CorrectionFacts)
        sums.update(seal.facts.sums)
    return dict(sums)


def _missing(outside: Outside, so_far: Sealed, request: Request, basis: Basis) -> list[bytes]:
    if not request.exclude:
        return []
    wanted = pa.array(request.exclude, pa.binary())
    there: set[bytes] = set()
    for batch in recomputing.standings_of(outside.store, so_far.standings, basis.changed):
        players = batch.column("player_id").cast(pa.binary())
        there.update(players.filter(pc.is_in(players, value_set=wanted)).to_pylist())
    missing = [player for player in request.exclude if player not in there]
    if len(missing) == len(request.exclude):
        raise UnknownNameError(
            f"none of the players to exclude is on the board: {listed([repr(_text(one)) for one in missing], 5)}",
            hint="ids are compared byte for byte, those of binary boards written in hexadecimal; a file of players has "
            "a name that ends in .csv or .txt",
        )
    return missing


def _rows(outside: Outside, so_far: Sealed, basis: Basis) -> Iterator[pa.RecordBatch]:
    return recomputing.correction_of(
        outside.store, so_far.standings, so_far.grants, so_far.corrections, basis, so_far.number
    )


def issue(outside: Outside, season: Season, request: Request, previewed: Preview) -> Seal:
    """Issue the correction, as previewed, and hand it to the outbox; return its seal.

    Whoever issues it has seen it, so neither an approval nor the budget of its table holds it. Raises LeaseHeldError
    while somebody else works on the season, and WrongStateError if there has been another correction since the preview,
    or facts have changed, so that other rows follow.
    """
    number = previewed.number
    pausing.check(outside.database)
    with leased(outside, season, request.who) as (lease, _):
        work = runner.acting(outside, season, request.who, lease)
        so_far = sealed(outside, season)
        if so_far.number != number:
            raise WrongStateError(
                f"{season.name} has been corrected meanwhile: the next correction is {so_far.number}, not {number}",
                hint="look at the preview again",
            )
        basis, files = basis_for(outside, season, so_far, request)
        facts = _stage(work, so_far, basis, request, previewed.change)
        for file, data in _with_bytes(
            basis, files
        ):  # beside what is staged, by which a sweep knows that they are needed
            put_facts(outside.store, season.board.name, season.id, file, data)
        commit(work, correction_kind(number), facts)
        return _finish(work, number)


def _with_bytes(basis: Basis, files: list[bytes]) -> list[tuple[FactFile, bytes]]:
    """Return the files that the basis adds, which are its last, with their bytes."""
    return list(zip(basis.files[len(basis.files) - len(files) :], files, strict=True))


def _stage(work: Acting, so_far: Sealed, basis: Basis, request: Request, previewed: Change) -> CorrectionFacts:
    season, attempt = work.season, work.attempt(0)
    folder = staging_dir(season.board.name, season.id, attempt)
    writer = PartWriter(correction_schema(season.board.member == "binary"), work.outside.runner.part_rows)
    change, parts = Change(), list[Part]()

    def store(encoded: list[tuple[Part, bytes]]) -> None:
        for part, data in encoded:
            settle(work.outside.store, f"{folder}/{part.name}", data)
            parts.append(part)

    for batch in _rows(work.outside, so_far, basis):
        change.add(batch)
        store(writer.add(batch))
    store(writer.finish())
    if change.digest != previewed.digest:
        sweep_own(work)
        then, now = (f"{counted(one.rows, 'row')} for {counted(one.players, 'player')}" for one in (previewed, change))
        raise WrongStateError(
            f"correction {so_far.number} of {season.name} is not what was previewed, so nothing was issued",
            detail=f"previewed: {then}, hash {previewed.digest[:12]}; now: {now}, hash {change.digest[:12]}",
            hint="facts that its table asks for have changed meanwhile; look at the preview again",
        )
    return CorrectionFacts(
        number=so_far.number,
        attempt=attempt,
        rows=change.rows,
        parts=tuple(parts),
        grants_seal=so_far.grants_hash,
        reward_table=basis.table.definition(),
        facts=basis.files,
        sums=change.sums,
        because=request.because,
        who=request.who,
    )


def _finish(work: Acting, number: int) -> Seal:
    """Put and publish a committed correction, write its rows and plan their delivery; safe to repeat."""
    outside, season = work.outside, work.season
    row = seals.find(outside.database, season.key, correction_kind(number))
    assert row is not None
    seal = put(work, row)
    publish(outside.store, seal)
    sweep_own(work)  # before the end, so that whoever brings a killed one to its end sweeps too
    facts = seal.facts
    assert isinstance(facts, CorrectionFacts)
    planned = {one.correction: one.mode for one in outbox.planned(outside.database, season.key)}
    mode = planned.get(number) or planned.get(0) or delivery_of(outside, season).to
    with outside.database.transaction():
        rows = read_parts_checked(outside.store, seal)
        corrections.load(outside.database, work.lease, number, rows, facts.rows, facts.sums, mode)
        if number not in planned:
            detail = {"number": number, "because": facts.because, "rows": facts.rows, "sums": dict(facts.sums)}
            journal.write(
                outside.database, season.key, "corrected", who=facts.who, fence=work.lease.fence, detail=detail
            )
    return seal


def finish_unfinished(outside: Outside, season: Season, *, who: str) -> list[int]:
    """Bring corrections of the season that were committed and not handed to the outbox to their end; return which.

    A hold does not keep a person from that. Raises PausedError while everything is paused.
    """
    unfinished = corrections.unfinished(outside.database, season.board.name, held=True)
    left = [number for name, number in unfinished if name == season.id]
    if left:
        pausing.check(outside.database)
        with leased(outside, season, who) as (lease, _):
            work = runner.acting(outside, season, who, lease)
            for number in left:
                _finish(work, number)
    return left


def finish_all(outside: Outside, board: str, *, who: str) -> list[tuple[Season, FinaleError | None]]:
    """Bring the board's interrupted corrections to their end; return each season that had some, and what went wrong.

    Those of seasons on hold are left where they are, as all are while everything is paused.
    """
    found: list[tuple[Season, FinaleError | None]] = []
    for name in dict.fromkeys(name for name, _ in corrections.unfinished(outside.database, board)):
        if pausing.find(outside.database) is not None:
            break
        season = seasons.find(outside.database, board, name, outside.boards.get(board))
        try:
            finish_unfinished(outside, season, who=who)
            found.append((season, None))
        except Exception as error:  # one season never stops another, whatever is wrong with it
            found.append((season, told(season.name, error)))
    return found
