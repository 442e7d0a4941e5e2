"""What the reward step, a preview and a correction share: the table and its folder, the computing, the approval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs.payout.facts import Collected
from jobs.wiring import Outside
from leaderboard.errors import SeasonHeldError, WrongStateError
from leaderboard.season import Season
from leaderboard.states import State, Step
from ledger import journal, seasons
from rewards.compute import grants
from rewards.plan import Plan, plan
from rewards.spending import overruns
from rewards.table import RewardTable
from rewards.totals import Totals

APPROVED = "rewards approved"  #: the journal's event
HELD = "the grants"  #: how the reason of a hold begins that an approval ends
BY_APPROVAL = "the reward table that was approved"  #: what a table is called that a preview brought
Standings = Callable[[], Iterable[pa.RecordBatch]]  #: reads all standings in board order, as often as it is called


@dataclass(slots=True)
class Computation:
    """Grants as they are computed: ``batches`` once, and what they come to when all were taken."""

    plan: Plan
    totals: Totals
    batches: Iterator[pa.RecordBatch]


def compute(standings: Standings, table: RewardTable, facts: Collected, season: Season) -> Computation:
    """Return the computation of a season's grants: ``standings`` is read twice, the second time as grants are taken."""
    planned, totals = plan(standings(), table, facts.facts), Totals()

    def counted() -> Iterator[pa.RecordBatch]:
        for batch in grants(standings(), planned, season.board.name, season.id):
            totals.add(batch)
            yield batch

    return Computation(planned, totals, counted())


@dataclass(frozen=True, slots=True)
class Paying:
    """The table that pays a season, the folder of its files of facts, and whether it is one that was approved."""

    table: RewardTable
    folder: Path
    approved: bool = False


def paying(outside: Outside, season: Season, results: Mapping[str, Mapping[str, Any]]) -> Paying | None:
    """Return what pays a season: a table that was approved, else that of its close, before it the configured one.

    None if there is none of these; a board that named no table when it closed is not paid by one configured later.
    """
    if (approved := approval(outside, season)) is not None:
        folder = folder_of(outside, season) if approved.folder is None else _root(outside) / approved.folder
        return Paying(RewardTable.from_definition(approved.table), folder, approved=True)
    fixed = results.get(Step.CLOSE, {}).get("reward_table")
    if fixed:
        return Paying(RewardTable.from_definition(fixed), folder_of(outside, season))
    configured = outside.settings.tables.get(season.board.name) if season.board.rewards is not None else None
    return Paying(configured, folder_of(outside, season)) if configured else None


def folder_of(outside: Outside, season: Season) -> Path:
    """Return the folder of the board's reward table, from which its files of facts are named."""
    return (_root(outside) / (season.board.rewards or "")).parent


def kept_folder(outside: Outside, folder: Path) -> str:
    """Return a table's folder as an approval keeps it: from the configuration's, where it is below that.

    So it is found by a runner whose configuration lies elsewhere.
    """
    found, root = folder.resolve(), _root(outside).resolve()
    return str(found.relative_to(root) if found.is_relative_to(root) else found)


def _root(outside: Outside) -> Path:
    config = outside.settings.path
    return config.parent if config else Path()


@dataclass(frozen=True, slots=True)
class Approval:
    """Grants that somebody has approved: their digest, the definition of the table that they came from, its folder."""

    digest: str
    table: dict[str, Any]
    folder: str | None  #: as ``kept_folder`` gives it; None in approvals that have none


def approval(outside: Outside, season: Season) -> Approval | None:
    """Return what was approved last; None if nothing was."""
    found = [one for one in journal.entries(outside.database, season.key) if one.event == APPROVED]
    if not found:
        return None
    detail = found[-1].detail
    return Approval(str(detail["digest"]), dict(detail["reward_table"]), detail.get("folder"))


def approve(outside: Outside, season: Season, report: Mapping[str, Any], *, who: str, because: str) -> None:
    """Approve the grants of a preview, with the table that made them, and end the hold that waits for it.

    Raises WrongStateError for a season that is not waiting to be rewarded.
    """
    if season.state is not State.SEALED:
        raise WrongStateError(
            f"{season.name} is {season.state}; only what is to be paid next can be approved",
            hint=f"see: finale season show {season.board.name} {season.id}",
        )
    detail = {"digest": report["hash"], "because": because}
    detail |= {name: report.get(name) for name in ("reward_table", "folder")}
    with outside.database.transaction():
        journal.write(outside.database, season.key, APPROVED, who=who, detail=detail)
        if season.hold is not None and season.hold.reason.startswith(f"{season.name}: {HELD}"):
            seasons.release(outside.database, season, who=who, because=because, snapshot_again=False)


def check_spending(table: RewardTable, totals: Totals, approved: Approval | None, season: Season) -> None:
    """Raise SeasonHeldError if the grants pass the budget, or wait for an approval, or are not what was approved.

    An approval is of exactly these grants, in a person's name, so it also lets the budget be passed.
    """
    digest = totals.digest()
    if approved is not None and approved.digest == digest:
        return
    over = overruns(table, totals.items)
    if approved is None and not over and table.approval == "none":
        return
    if approved is not None:
        reason, detail = "are not those that were approved", f"approved was {approved.digest}"
    elif over:
        reason, detail = "pass the budget of the reward table, so nobody is paid", "; ".join(map(str, over))
    else:
        reason, detail = "wait for an approval", "the reward table asks for one"
    name = f"{season.board.name} {season.id}"
    raise SeasonHeldError(
        f"{season.name}: {HELD} {reason}",
        detail=f"{totals.rows:,} grants with hash {digest}; {detail}",
        hint=f"see first who would be paid what: finale rewards preview {name} (or another table, with --table FILE); "
        f'then approve it by the hash that it ends with: finale rewards approve {name} HASH --because "…"',
    )
