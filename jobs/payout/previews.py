"""Previews: what a season would pay, sealed or as it stands now, by its own reward table or another one."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from archive.fetch import load_seal, read_parts_checked
from archive.layout import report_path
from archive.objects import ObjectDiffersError, settle
from archive.parts import standings_schema
from archive.seal import StandingFacts
from archive.sealed_grants import GrantFacts
from config.texts import read_text
from jobs.checks.reconciling import staged_rows
from jobs.payout import rewarding
from jobs.payout.absent import absent
from jobs.payout.facts import Collected, collect, previous_season
from jobs.payout.rewarding import Standings
from jobs.payout.sealed import committed
from jobs.wiring import Outside
from leaderboard.errors import InputError, UnknownNameError, WrongStateError
from leaderboard.season import Season
from leaderboard.states import State, Step, reached
from ledger import journal
from live.board import PAGE, LiveBoard
from rewards.preview import Summary, costs
from rewards.table import RewardTable, parse_table

_PLAYED = "as if the season closed now; every result can change it"
#: What can still change a preview before the seal.
_CAVEATS = {
    State.SCHEDULED: _PLAYED,
    State.OPEN: _PLAYED,
    State.CLOSING: "as if the season froze now; results played before its end still count until it does",
    State.FROZEN: "from Redis as it stands: no result counts any more, and the snapshot is still to be taken",
    State.SNAPSHOTTED: "from the snapshot: no result counts any more; it is still to be compared with the ledger, "
    "and a repair takes it again",
    State.RECONCILED: "from the snapshot, which was compared with the ledger; it is still to be sealed",
}
_LEAST = 12  # characters of a hash that name a preview


@dataclass(frozen=True, slots=True)
class Chosen:
    """The table that a preview is made with: where it is from, and the folder of its files of facts."""

    table: RewardTable
    origin: str
    folder: Path
    name: str  #: in errors


def read_table(path: Path) -> RewardTable:
    """Return the reward table in a file. Raises InputError if it cannot be read, ConfigError if it is none."""
    return parse_table(read_text(path), str(path))


def choose(outside: Outside, season: Season, path: Path | None) -> Chosen:
    """Return the table in the file ``path``, else the one that would pay the season.

    Raises ConfigError for a table that cannot be read, UnknownNameError for a board without one.
    """
    if path is not None:
        return Chosen(read_table(path), str(path), path.parent, str(path))
    closed = reached(season.state, State.CLOSING)
    found = rewarding.paying(outside, season, journal.results(outside.database, season.key))
    if found is None and closed and season.board.rewards is None:
        raise UnknownNameError(
            f"board {season.board.name} had no reward table when {season.id} closed, so nobody is paid",
            hint="name one with --table FILE"
            + (
                ""
                if reached(season.state, State.REWARDED)
                else "; approve its preview once the season is sealed to pay by it"
            ),
        )
    if found is None:
        raise UnknownNameError(
            f"board {season.board.name} has no reward table",
            hint="name one with --table FILE, or with rewards = … in the board's configuration",
        )
    if found.approved:
        return Chosen(found.table, rewarding.BY_APPROVAL, found.folder, rewarding.BY_APPROVAL)
    when = "as it was when the season closed" if closed else "as configured"
    return Chosen(found.table, f"{season.board.rewards}, {when}", found.folder, season.board.rewards or "")


def preview(outside: Outside, season: Season, chosen: Chosen) -> dict[str, Any]:
    """Return what the season would pay, as plain JSON values, and write it to a report.

    A season that has a snapshot is read from it, sealed or not; any other from Redis as it stands: ``live`` is then
    true. ``caveat`` says what can still change, ``""`` if nothing can. ``hash`` is the digest of the grants, by which
    they are approved once the season is sealed.
    """
    sealed, live = reached(season.state, State.SEALED), not reached(season.state, State.SNAPSHOTTED)
    collected = collect(outside, season, chosen.table, chosen.folder, chosen.name)
    with _standings(outside, season) as standings:
        told = _told(outside, season, chosen, collected, standings)
    told |= {"live": live, "sealed": sealed, "state": str(season.state), "table": chosen.origin}
    told["caveat"] = "" if sealed else _CAVEATS.get(season.state, _PLAYED)
    by = {"reward_table": chosen.table.definition(), "folder": rewarding.kept_folder(outside, chosen.folder)}
    told["report"] = _write(outside, season, {**told, **by})
    return told


def _told(
    outside: Outside, season: Season, chosen: Chosen, collected: Collected, standings: Standings
) -> dict[str, Any]:
    summary: list[Summary] = []

    def read() -> Any:
        return summary[0].standings(standings()) if summary else standings()

    found = rewarding.compute(read, chosen.table, collected, season)
    summary.append(Summary(found.plan, binary=season.board.member == "binary"))
    for batch in found.batches:
        summary[0].add(batch)
    before = _before(outside, season)
    gone = found.plan.marks.gone
    return {
        "board": season.board.name,
        "season": season.id,
        "hash": found.totals.digest(),
        "players": found.plan.marks.rows,
        "removed": 0 if gone is None else int(gone.sum()),
        "not_on_board": [one.to_json() for one in absent(found.plan)],
        "grants": found.totals.rows,
        "paid_players": found.totals.players,
        "approval": chosen.table.approval,
        "cost": costs(found.plan, found.totals.items, None if before is None else before["sums"]),
        "before": before,
        "rules": summary[0].rules(),
        "lines": summary[0].lines(),
        "facts": [file.to_json() for file in collected.named],
    }


def _before(outside: Outside, season: Season) -> dict[str, Any] | None:
    """Return what the season before was granted; None if it was not, or not yet."""
    before = previous_season(outside, season)
    if before is None or not reached(before.state, State.REWARDED):
        return None
    try:
        seal = load_seal(outside.store, before.board.name, before.id, "grants")
    except UnknownNameError:
        return None
    assert isinstance(seal.facts, GrantFacts)
    return {"season": before.id, "grants": seal.facts.rows, "sums": dict(seal.facts.sums)}


@contextmanager
def _standings(outside: Outside, season: Season) -> Iterator[Standings]:
    """Yield how to read the standings, the same each time: of a snapshot from the store, live ones copied once."""
    if reached(season.state, State.SEALED):
        seal = committed(outside, season, "standings")
        yield lambda: read_parts_checked(outside.store, seal)
        return
    if reached(season.state, State.SNAPSHOTTED):
        facts = StandingFacts.from_json(journal.results(outside.database, season.key)[Step.SNAPSHOT]["facts"])
        yield lambda: staged_rows(outside.store, season, facts)
        return
    with tempfile.TemporaryDirectory(prefix="finale-preview-") as folder:
        path = Path(folder) / "standings.arrow"
        schema = standings_schema(season.board.member == "binary", season.board.points == "fraction")
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch in _live_batches(outside, season, schema):
                writer.write_batch(batch)

        def read() -> Iterator[pa.RecordBatch]:
            with pa.memory_map(str(path)) as source:
                file = pa.ipc.open_file(source)
                for number in range(file.num_record_batches):
                    yield file.get_batch(number)

        yield read


def _live_batches(outside: Outside, season: Season, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    board = LiveBoard.of(outside.redis, season)
    offset = 0
    while page := board.page(offset, PAGE):
        columns = {name: [getattr(row, name) for row in page] for name in schema.names}
        arrays = [
            pa.array(columns[field.name], pa.binary()).cast(field.type)
            if field.name == "player_id"
            else pa.array(columns[field.name], field.type)
            for field in schema
        ]
        yield pa.record_batch(arrays, schema=schema)
        offset += len(page)


def _write(outside: Outside, season: Season, told: dict[str, Any]) -> str:
    """Write the report, named after its hash, and return its path; what was written before is never changed."""
    data = (json.dumps(told, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
    name = f"preview-{told['hash'][:16]}"
    for path in (
        report_path(season.board.name, season.id, f"{name}.json"),
        report_path(season.board.name, season.id, f"{name}-{sha256(data).hexdigest()[:16]}.json"),
    ):
        try:
            settle(outside.store, path, data)
        except ObjectDiffersError:
            continue
        return path
    raise AssertionError("a path with the content's own hash holds that content")


def find_report(outside: Outside, season: Season, digest: str) -> dict[str, Any]:
    """Return the newest report of a preview of a sealed season whose hash begins with ``digest``.

    Raises InputError for a hash that is too short or no hash, UnknownNameError if there is no such preview,
    WrongStateError if it was made before the season was sealed.
    """
    digest = digest.lower()
    if len(digest) < _LEAST or not set(digest) <= set("0123456789abcdef"):
        raise InputError(f"{digest!r} is no hash of a preview", hint=f"give at least {_LEAST} characters of it")
    folder = report_path(season.board.name, season.id, "x.json").rpartition("/")[0]
    name = f"{season.board.name} {season.id}"
    early = False
    for stored in sorted(outside.store.list(folder), key=lambda one: one.modified, reverse=True):
        if not stored.path.startswith(f"{folder}/preview-{digest[:16]}"):
            continue
        told: dict[str, Any] = json.loads(outside.store.get(stored.path))
        if not told["hash"].startswith(digest):
            continue
        if told.get("sealed", not told["live"]):
            return told
        early = True
    again = f"finale rewards preview {name}"
    if early:
        raise WrongStateError(
            f"the preview {digest[:_LEAST]} of {season.name} was made before the season was sealed",
            detail=f"the season is {season.state} now, and what it pays may have changed since",
            hint=f"preview it again, and approve the hash that it ends with: {again}"
            if reached(season.state, State.SEALED)
            else f"once it is sealed, preview it again: {again}",
        )
    raise UnknownNameError(
        f"no preview of {season.name} has the hash {digest}",
        detail="only what was previewed after the seal can be approved",
        hint=f"see what would be paid with: {again}",
    )
