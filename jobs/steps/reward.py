"""Reward: grants computed from the sealed files alone, sealed themselves, and written as rows, all or none (I5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from archive.facts import put_facts
from archive.fetch import read_parts_checked
from archive.layout import staging_dir
from archive.objects import settle
from archive.parts import Part, PartWriter
from archive.publish import publish
from archive.seal import Seal
from archive.sealed_grants import GrantFacts
from jobs.payout import absent, rewarding
from jobs.payout.facts import collect
from jobs.payout.rewarding import Paying
from jobs.payout.sealed import check_there, committed
from jobs.seasons.verdicts import Act, Done, Held, Verdict
from jobs.steps.seal import commit, put, sweep_own
from jobs.steps.step import Acting, Work
from leaderboard.errors import AccessError, ConfigError, FinaleError, InputError, SeasonHeldError
from leaderboard.season import Season
from leaderboard.states import Step
from ledger import grants as ledger_grants
from ledger import seals
from ledger.grants import Loaded
from ledger.seals import SealRow
from rewards.compute import grants_schema
from rewards.plan import COLUMNS

_APPROVED = "; by the reward table that was approved"
_TABLE_CHANGED = "; by the reward table as it was when the season closed, the configured one has changed since"
_NO_TABLE = "no reward table when the season closed, so no grants"


@dataclass(frozen=True, slots=True)
class Facts:
    name: str
    rewards: str | None  #: the reward table that the board named when the season closed
    paying: Paying | None  #: that table as it was then, or another one that a person has approved
    changed: bool  #: whether the configured one is another by now
    committed: SealRow | None


@dataclass(frozen=True, slots=True)
class Reward:
    step: Step = Step.REWARD

    def look(self, work: Work) -> Facts:
        check_there(work.outside, work.season)
        board = work.season.board
        configured = work.outside.settings.tables.get(board.name)
        paying = rewarding.paying(work.outside, work.season, work.results)
        return Facts(
            f"{board.name} {work.season.id}",
            board.rewards,
            paying,
            configured is not None and paying is not None and configured != paying.table,
            seals.find(work.outside.database, work.season.key, "grants"),
        )

    def plan(self, facts: Facts) -> Verdict:
        if facts.committed is not None:
            return Act("publish and load the grants that are sealed")
        if facts.paying is None and facts.rewards is None:
            return Act("note that the board had no reward table when the season closed")
        if facts.paying is None:
            return Held(
                f"the reward table {facts.rewards} of this board is no longer configured, so nobody would be paid",
                "the board named it when the season closed",
                f"configure the board with its reward table again; then: finale season release {facts.name}",
            )
        return Act("compute the grants from the sealed files, seal them, write them as rows")

    def act(self, work: Acting, facts: Facts) -> Done:
        row, warnings = facts.committed, tuple[str, ...]()
        if row is None:
            if facts.paying is None:
                return Done({"grants": 0, "table": None}, _NO_TABLE)
            staged, warnings = _stage(work, facts.paying)
            row = commit(work, "grants", staged)
        seal = put(work, row)
        publish(work.outside.store, seal)
        assert isinstance(seal.facts, GrantFacts)
        expected = Loaded(seal.facts.rows, dict(seal.facts.sums))
        batches = read_parts_checked(work.outside.store, seal)
        ledger_grants.load(work.outside.database, work.lease, batches, expected)
        sweep_own(work)
        sums = ", ".join(f"{amount:,} {item}" for item, amount in sorted(seal.facts.sums.items()))
        return Done(
            {
                "grants": seal.facts.rows,
                "sums": dict(seal.facts.sums),
                "digest": seal.facts.digest,
                "path": seal.path,
            },
            f"{seal.facts.rows:,} grants: {sums or 'nothing'}{_by(facts)}",
            warnings=warnings,
        )


def _by(facts: Facts) -> str:
    if facts.paying is not None and facts.paying.approved:
        return _APPROVED
    return _TABLE_CHANGED if facts.changed else ""


def _stage(work: Acting, paying: Paying) -> tuple[GrantFacts, tuple[str, ...]]:
    """Compute and stage the grants, put the facts; return what to seal, and what a person should look after.

    Raises SeasonHeldError if these may not be paid.
    """
    season, store, table = work.season, work.outside.store, paying.table
    seal = committed(work.outside, season, "standings")
    with _facts_of(season, AccessError, ConfigError, InputError):
        name = rewarding.BY_APPROVAL if paying.approved else season.board.rewards or ""
        collected = collect(work.outside, season, table, paying.folder, name)
    with _facts_of(season, InputError):
        found = rewarding.compute(_standings(work, seal), table, collected, season)
    attempt = work.attempt(0)
    folder = staging_dir(season.board.name, season.id, attempt)
    writer, parts = PartWriter(grants_schema(season.board.member == "binary"), work.outside.runner.part_rows), []
    for part, data in _encoded(writer, found.batches):
        settle(store, f"{folder}/{part.name}", data)
        parts.append(part)
    try:
        rewarding.check_spending(table, found.totals, rewarding.approval(work.outside, season), season)
    except SeasonHeldError:
        sweep_own(work)
        raise
    for file, data in collected.files:
        put_facts(store, season.board.name, season.id, file, data)
    staged = GrantFacts(
        attempt=attempt,
        rows=found.totals.rows,
        parts=tuple(parts),
        standings_seal=_committed_hash(work),
        reward_table=table.definition(),
        sums=found.totals.items,
        digest=found.totals.digest(),
        facts=collected.named,
    )
    return staged, absent.warnings(found.plan)


@contextmanager
def _facts_of(season: Season, *wrong: type[FinaleError]) -> Iterator[None]:
    """Turn what is wrong with the outside facts, which only a person can mend, into a hold."""
    try:
        yield
    except wrong as error:
        raise SeasonHeldError(
            f"{season.name}: the facts that its rewards need cannot be read, so nobody is paid",
            detail=" ".join(part for part in (error.message, error.detail) if part),
            hint=error.hint,
        ) from error


def _committed_hash(work: Acting) -> str:
    row = seals.find(work.outside.database, work.season.key, "standings")
    assert row is not None
    return row.sha256


def _standings(work: Acting, seal: Seal) -> rewarding.Standings:
    """Return how the sealed standings are read: twice, which is what is told as progress."""
    done = 0

    def read() -> Iterator[Any]:
        nonlocal done
        for batch in read_parts_checked(work.outside.store, seal, COLUMNS):
            yield batch
            done += batch.num_rows
            work.progress(done, 2 * seal.facts.rows)

    return read


def _encoded(writer: PartWriter, batches: Iterable[Any]) -> Iterator[tuple[Part, bytes]]:
    for batch in batches:
        yield from writer.add(batch)
    yield from writer.finish()
