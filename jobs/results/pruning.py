"""Pruning the ledger: the results of cleaned seasons go into sealed Parquet, are read back, and only then removed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from archive import results as archived
from archive.results import ResultsSeal
from jobs.checks import same_store
from jobs.seasons.leasing import leased
from jobs.version import SOFTWARE
from jobs.wiring import Outside
from leaderboard.errors import FinaleError, InputError
from leaderboard.season import Season
from leaderboard.states import State
from ledger import journal, match_rows, seals, seasons
from ledger.leases import Lease

_STEP = "prune"  #: under which the journal has what was done


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a season's results, and why; the same in dry run and real run."""

    season: Season
    action: Literal["prune", "keep", "done"]
    reason: str
    rows: int | None = None  #: sealed by this run; of what is still to be pruned, how many would go
    error: FinaleError | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "board": self.season.board.name,
            "season": self.season.id,
            "verdict": self.action,
            "reason": self.reason,
            "rows": self.rows,
            "error": self.error.message if self.error else None,
        }


def verdicts(outside: Outside, board: str | None = None) -> list[Verdict]:
    """Return the verdict on every season that counts results of Finale's own ledger, or on those of one board.

    Raises UnknownNameError for a board that neither the configuration nor the ledger knows.
    """
    every, asked = _seasons(outside, board)
    done = journal.finished(outside.database, _STEP)
    return [_verdict(outside, season, every, season.key in done) for season in asked]


def prune(outside: Outside, board: str | None, *, who: str) -> list[Verdict]:
    """Prune every season that may be, and return all verdicts; a season that fails keeps no other from its turn."""
    every, asked = _seasons(outside, board)
    done, begun = journal.finished(outside.database, _STEP), match_rows.begun(outside.database)
    found = {}
    # What was broken off comes first: until it is done, seasons that share its results wait.
    for season in sorted(asked, key=lambda one: one.key not in begun):
        verdict = _verdict(outside, season, every, season.key in done)
        if verdict.action == "prune":
            try:
                verdict = _prune(outside, season, every, who)
            except FinaleError as error:
                verdict = Verdict(season, "prune", verdict.reason, error=error)
        found[season.key] = verdict
    return [found[season.key] for season in asked]


def _seasons(outside: Outside, board: str | None) -> tuple[Sequence[Season], Sequence[Season]]:
    """Return every season, and those that are asked about: of one board or all, with results of Finale's own ledger."""
    every = seasons.every(outside.database, outside.boards)
    if board is not None and all(season.board.name != board for season in every):
        outside.settings.board(board)
    return every, [one for one in every if one.board.ledger == "own" and board in (None, one.board.name)]


def _verdict(outside: Outside, season: Season, every: Sequence[Season], done: bool) -> Verdict:
    if done:
        return Verdict(season, "done", "its results are in the archive")
    if season.state is not State.CLEANED:
        return Verdict(season, "keep", f"the season is {season.state}")
    if season.board.name not in outside.boards:
        # Another configuration may have it, and boards that count these results, which nobody here can know.
        return Verdict(season, "keep", "its board is not in this configuration")
    for other in every:
        # Whether there is a shared result now says nothing: one may come until this season takes none any more.
        if _may_share(season, other):
            return Verdict(season, "keep", f"{other.name}, which is {other.state}, may count results of it too")
    if other_first := match_rows.first_claim(outside.database, season, every):
        return _after(season, other_first)
    rows = match_rows.removable(outside.database, season)
    return Verdict(season, "prune", "the season and all that share its results are cleaned", rows)


def _may_share(season: Season, other: Season) -> bool:
    return other.state not in (State.CLEANED, State.CANCELLED) and match_rows.may_share(season, other)


def _after(season: Season, other: Season) -> Verdict:
    reason = f"{other.name} may count results of it too and is being pruned, or was broken off: run it again to go on"
    return Verdict(season, "keep", reason)


def _prune(outside: Outside, season: Season, every: Sequence[Season], who: str) -> Verdict:
    """Return the verdict with how many rows are sealed. Killed anywhere and run again, it ends the same."""
    with leased(outside, season, who) as (lease, _):
        if other := match_rows.claim(outside.database, lease, season, every):
            return _after(season, other)
        match_rows.close(outside.database, season)
        seal = archived.find(outside.store, season.board.name, season.id)
        if seal is None:
            same_store.check(outside.store, outside.database, season.board.name)
            seal = archived.put_seal(outside.store, _sealed(outside, season))
        if archived.missing(outside.store, seal):
            archived.put_parts(outside.store, seal, _parts(outside, season))
        for _ in archived.read_back(outside.store, seal):
            pass  # every part is there and as sealed before the first row goes
        _remove(outside, season, lease, seal)
        figures = {"rows": seal.rows, "parts": len(seal.parts), "path": seal.path}
        with outside.database.transaction():
            journal.put_result(outside.database, season.key, _STEP, figures, lease.fence)
            journal.write(outside.database, season.key, "pruned", who=who, fence=lease.fence, detail=figures)
    return Verdict(season, "done", "its results are in the archive", seal.rows)


def _sealed(outside: Outside, season: Season) -> ResultsSeal:
    """Return the seal of what the ledger has; the parts are encoded to be named, and once more to be stored."""
    parts = tuple(part for part, _ in _parts(outside, season))
    standings = seals.find(outside.database, season.key, "standings")
    return ResultsSeal(
        board=season.board.name,
        season=season.id,
        source=season.board.source,
        rows=sum(part.rows for part in parts),
        parts=parts,
        standings_seal=standings.sha256 if standings else "",
        software=SOFTWARE,
        sealed_at=outside.database.now(),
    )


def _parts(outside: Outside, season: Season) -> Iterator[Any]:
    schema = archived.results_schema(season.board.member == "binary")
    return archived.encoded(schema, _batches(outside, season, schema))


def _batches(outside: Outside, season: Season, schema: Any) -> Iterator[Any]:
    import pyarrow as pa

    for rows in match_rows.read(outside.database, season):
        columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in schema.names}
        columns["attributes"] = [
            json.dumps(found, ensure_ascii=False, sort_keys=True) if found else None for found in columns["attributes"]
        ]
        if season.board.member != "binary":
            columns["player_id"] = [_text(season, player) for player in columns["player_id"]]
        yield pa.RecordBatch.from_pydict(columns, schema=schema)


def _text(season: Season, player: bytes) -> str:
    try:
        return player.decode()
    except UnicodeDecodeError:
        raise InputError(
            f"{season.name}: the player {player!r} is not UTF-8, and the board's members are text",
            hint='a board with such ids needs member = "binary"',
        ) from None


def _remove(outside: Outside, season: Season, lease: Lease, seal: ResultsSeal) -> None:
    for batch in archived.read_back(outside.store, seal):
        matches, players = (batch.column(name).to_pylist() for name in ("match_id", "player_id"))
        ids = [player if isinstance(player, bytes) else player.encode() for player in players]
        match_rows.remove(outside.database, lease, season, list(zip(matches, ids, strict=True)))
