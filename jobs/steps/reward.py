"""Reward: grants computed from the sealed files alone, sealed themselves, and written as rows, all or none (I5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from archive.fetch import read_parts_checked
from archive.layout import staging_dir
from archive.parts import Part, PartWriter
from archive.publish import publish
from archive.seal import Seal
from archive.sealed_grants import GrantFacts
from jobs.steps.seal import commit, committed, put, sweep_own
from jobs.steps.step import Acting, Work
from jobs.verdicts import Act, Done, Held, Verdict
from leaderboard.states import Step
from ledger import grants as ledger_grants
from ledger import seals
from ledger.grants import Loaded
from ledger.seals import SealRow
from rewards.compute import grants, grants_schema
from rewards.plan import plan
from rewards.table import RewardTable
from rewards.totals import Totals

_TABLE_CHANGED = "; by the reward table as it was when the season closed, the configured one has changed since"


@dataclass(frozen=True, slots=True)
class Facts:
    name: str
    rewards: str | None  #: the reward table that the board named when the season closed
    table: RewardTable | None  #: as it was then
    changed: bool  #: whether the configured one is another by now
    committed: SealRow | None


@dataclass(frozen=True, slots=True)
class Reward:
    step: Step = Step.REWARD

    def look(self, work: Work) -> Facts:
        board = work.season.board
        configured = work.outside.settings.tables.get(board.name)
        fixed = work.results.get(Step.CLOSE, {}).get("reward_table")
        table = RewardTable.from_definition(fixed) if fixed else configured
        return Facts(
            f"{board.name} {work.season.id}",
            board.rewards,
            table,
            configured is not None and configured != table,
            seals.find(work.outside.database, work.season.key, "grants"),
        )

    def plan(self, facts: Facts) -> Verdict:
        if facts.committed is not None:
            return Act("publish and load the grants that are sealed")
        if facts.rewards is None:
            return Act("note that the board has no reward table")
        if facts.table is None:
            return Held(
                f"the reward table {facts.rewards} of this board is no longer configured, so nobody would be paid",
                "the board named it when the season closed",
                f"configure the board with its reward table again; then: finale season release {facts.name}",
            )
        return Act("compute the grants from the sealed files, seal them, write them as rows")

    def act(self, work: Acting, facts: Facts) -> Done:
        row = facts.committed
        if row is None:
            if facts.rewards is None or facts.table is None:
                return Done({"grants": 0, "table": None}, "no reward table, so no grants")
            row = commit(work, "grants", _stage(work, facts.table))
        seal = put(work, row)
        publish(work.outside.store, seal)
        assert isinstance(seal.facts, GrantFacts)
        expected = Loaded(seal.facts.rows, dict(seal.facts.sums))
        batches = read_parts_checked(work.outside.store, seal)
        ledger_grants.load(work.outside.database, work.lease, batches, expected)
        sweep_own(work)
        sums = ", ".join(f"{amount:,} {item}" for item, amount in sorted(seal.facts.sums.items()))
        return Done(
            {"grants": seal.facts.rows, "sums": dict(seal.facts.sums), "path": seal.path},
            f"{seal.facts.rows:,} grants: {sums or 'nothing'}{_TABLE_CHANGED if facts.changed else ''}",
        )


def _stage(work: Acting, table: RewardTable) -> GrantFacts:
    season, store = work.season, work.outside.store
    seal = committed(work.outside, season, "standings")
    attempt = work.attempt(0)
    folder = staging_dir(season.board.name, season.id, attempt)
    totals, parts = Totals(), list[Part]()
    for part, data in _encoded(work, seal, table, totals):
        store.put_new(f"{folder}/{part.name}", data)
        parts.append(part)
    return GrantFacts(
        attempt=attempt,
        rows=totals.rows,
        parts=tuple(parts),
        standings_seal=_committed_hash(work),
        reward_table=table.definition(),
        sums=totals.items,
    )


def _committed_hash(work: Acting) -> str:
    row = seals.find(work.outside.database, work.season.key, "standings")
    assert row is not None
    return row.sha256


def _encoded(work: Acting, seal: Seal, table: RewardTable, totals: Totals) -> Iterator[tuple[Part, bytes]]:
    season = work.season
    writer = PartWriter(grants_schema(season.board.member == "binary"), work.outside.runner.part_rows)
    read = 0

    def standings() -> Iterator[Any]:
        nonlocal read
        for batch in read_parts_checked(work.outside.store, seal):
            yield batch
            read += batch.num_rows
            work.progress(read, seal.facts.rows)

    planned = plan(read_parts_checked(work.outside.store, seal), table)
    batches: Iterator[pa.RecordBatch] = grants(standings(), planned, season.board.name, season.id)
    for batch in batches:
        totals.add(batch)
        yield from writer.add(batch)
    yield from writer.finish()
