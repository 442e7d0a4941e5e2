"""Taking results from files: recorded in the ledger chunk by chunk, then written to the live boards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs import identity
from jobs.boards.projection import Applied, apply_pending, check_own_key
from jobs.boards.snapshots import give_up_snapshot
from jobs.results.beside import Beside
from jobs.seasons.leasing import leased
from jobs.wiring import Outside
from leaderboard.board import Board
from leaderboard.errors import FinaleError, InputError, UnavailableError, UnknownNameError
from leaderboard.season import Season
from leaderboard.states import State, reached
from leaderboard.wording import counted
from ledger import pending, seasons
from ledger.result_files import Chunk, read_file
from ledger.results import Recorded, record

_LARGE = 5_000  #: rows of a chunk from which on a thread and a connection more are worth their while


@dataclass(slots=True)
class Taken:
    """What became of a file's rows, how many totals reached the live boards, and why some did not."""

    recorded: Recorded = field(default_factory=Recorded)
    applied: int = 0
    waiting: int = 0
    unapplied: FinaleError | None = None
    left: set[int] = field(default_factory=set)  #: seasons whose live boards could not be written

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        found = self.recorded
        return {
            "new": found.new,
            "repeated": found.repeated,
            "conflicting": found.conflicting,
            "late": found.late,
            "refused": found.refused,
            "uncounted": found.uncounted,
            "applied": self.applied,
            "waiting": self.waiting,
            "seasons_created": sorted(found.created),
            "remarks": [{"line": one.line, "kind": one.kind, "reason": one.reason} for one in found.remarks],
            "unapplied": self.unapplied.message if self.unapplied else None,
        }


def source_named(outside: Outside, source: str | None, board: str | None) -> tuple[str, list[Board]]:
    """Return a source and the boards that count it, from its name or a board's.

    Raises InputError unless exactly one is given, UnknownNameError for a source that no board counts.
    """
    if source is not None and board is not None:
        raise InputError(
            "--source and --board both say where the results come from", hint="one of them is enough; leave one out"
        )
    if source is None and board is None:
        raise InputError("say where the results come from", hint="give either --source SOURCE or --board BOARD")
    name = source if source is not None else outside.settings.board(board or "").source
    boards = [one for one in outside.boards.values() if one.source == name and one.ledger == "own"]
    if not boards:
        known = sorted({one.source for one in outside.boards.values() if one.ledger == "own"})
        raise UnknownNameError(
            f"no board counts the source {name!r}",
            detail=f"sources: {', '.join(known) or 'none'}",
            hint="name one of them, or a --board",
        )
    return name, boards


def take_file(outside: Outside, path: Path, source: str, boards: list[Board], progress: Callable[[int], None]) -> Taken:
    """Record every row of the file, a chunk a transaction, and write the totals that changed to the live boards.

    The ledger has every row once this returns, also if Redis could not be reached; what is then still waiting to be
    written, this file's or an earlier one's, is written by the next import, ``finale results apply`` or tick. Raises
    InputError for a file that is none.
    """
    taken = Taken()
    take_chunks(outside, _chunks(path, outside.runner.batch_rows), source, boards, taken, path.name, progress)
    counted = {season.key for board in boards for season in seasons.of_board(outside.database, board.name)}
    behind = counted & set(pending.seasons(outside.database))
    write_totals(outside, boards, behind, taken)
    taken.waiting = sum(pending.count(outside.database, key) for key in behind)
    return taken


def _chunks(path: Path, size: int) -> Iterator[Chunk]:
    rows = 0
    try:
        for chunk in read_file(path, size):
            yield chunk
            rows += chunk.rows
    except InputError as error:
        if not rows:
            raise
        raise InputError(
            error.message,
            detail=f"the first {rows:,} rows were taken. {error.detail}".strip(),
            hint="correct the file and import it again: what was taken is not taken twice",
        ) from error


def take_chunks(
    outside: Outside,
    chunks: Iterable[Chunk],
    source: str,
    boards: list[Board],
    taken: Taken,
    origin: str,
    progress: Callable[[int], None],
) -> None:
    """Record chunk after chunk, each in a transaction, and write their totals to the live boards, as ``take_chunk``.

    While one large chunk is recorded, the totals of those before it are written.
    """
    rows = 0
    with Beside(outside, lambda own, keys: write_totals(own, boards, keys, taken)) as beside:
        for chunk in chunks:
            if chunk.rows < _LARGE:
                beside.finish()
                take_chunk(outside, chunk, source, boards, taken, origin=origin)
            else:
                recorded = record(outside.database, source, boards, chunk, origin=origin)
                taken.recorded.add(recorded)
                beside.tell(recorded.seasons)
            rows += chunk.rows
            progress(rows)


def take_chunk(outside: Outside, chunk: Chunk, source: str, boards: list[Board], taken: Taken, *, origin: str) -> None:
    """Record one chunk and write its totals to the live boards, folding what came of it into ``taken``."""
    recorded = record(outside.database, source, boards, chunk, origin=origin)
    taken.recorded.add(recorded)
    write_totals(outside, boards, recorded.seasons, taken)


def write_totals(outside: Outside, boards: list[Board], keys: set[int], taken: Taken) -> None:
    """Write to the live boards what is pending of the seasons ``keys``, folding what came of it into ``taken``.

    A board whose Redis does not answer keeps nobody else from theirs; what is left stays pending.
    """
    if not keys - taken.left:
        return
    configured = {board.name: board for board in boards}
    for season in seasons.of_keys(outside.database, keys - taken.left, configured):
        if season.board.name in configured and season.frozen_at is None:
            try:
                taken.applied += apply_pending(outside, season, identity.holder()).players
            except FinaleError as error:  # the other boards of the source get theirs all the same
                taken.unapplied = taken.unapplied or error
                taken.left.add(season.key)


def apply_all(outside: Outside, season: Season, *, every_total: bool, who: str) -> Applied:
    """Write the season's pending totals, or every one anew, whoever else is writing: those are shut out and stop.

    A season that has its snapshot goes back to frozen first. Raises UnavailableError if some are left, because the
    next applier has taken over in turn, WrongStateError for an adopted key and once the seal is committed, and
    LeaseHeldError while somebody else works on a season that has its snapshot.
    """
    check_own_key(season)
    if reached(season.state, State.SNAPSHOTTED):
        with leased(outside, season, who) as (lease, _):
            season = give_up_snapshot(outside, season, lease, who=who, because="totals are written by hand")
    if every_total:
        pending.again(outside.database, season.key, range(pending.BUCKETS))
    done = apply_pending(outside, season, identity.holder(), force=True)
    if left := pending.count(outside.database, season.key):
        raise UnavailableError(
            f"{counted(done.players, 'total')} written to {season.standing_key}, {left:,} wait",
            detail="another applier has taken them over, or new results came meanwhile",
            hint="run the command again",
        )
    return done
