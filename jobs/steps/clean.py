"""Clean: every sealed part read again, then the live keys forgotten in the transactions that proved them equal (I1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from archive import crowded, removal
from archive.departures import remove_all
from archive.fetch import read_parts_checked
from archive.removal import Departure, Removal
from archive.seal import KeyFacts, StandingFacts
from archive.verify import verify
from jobs.boards.building import left_behind
from jobs.checks import same_store
from jobs.payout.sealed import committed
from jobs.seasons import renaming
from jobs.seasons.verdicts import Act, Done, Held, Verdict, Wait
from jobs.steps.step import Acting, Work
from jobs.wiring import Outside
from leaderboard import keys, retention
from leaderboard.retention import Retention
from leaderboard.season import Season
from leaderboard.states import Step
from ledger import journal, seals
from ledger.leases import Lease
from live.eviction import blocks_when_it_expires
from live.keyspace import kinds

#: How long a key with ``cleanup = "expire"`` stays under its private name.
EXPIRES_AFTER = timedelta(days=1)
#: From how many rows on freeing a key at one go is felt: some 10 ms.
MANY_ROWS = 50_000
#: The journal's entry between the last proof and the first removal of a board over several keys.
REMOVING = "removing"


@dataclass(frozen=True, slots=True)
class Facts:
    retention: Retention
    cleanup: str
    shards: int
    foreign: str = ""  #: what stands under a live key and is no board, in words


@dataclass(frozen=True, slots=True)
class Clean:
    step: Step = Step.CLEAN

    def look(self, work: Work) -> Facts:
        board = work.season.board
        verdict = retention.decide(retention.Facts(work.season, work.now))
        found = kinds(work.outside.redis, work.season.own_keys) if verdict.acts else {}
        return Facts(verdict, board.cleanup, board.shards.number, retention.foreign(found))

    def plan(self, facts: Facts) -> Verdict:
        if not facts.retention.acts:
            return Wait(facts.retention.at, facts.retention.reason)
        if facts.foreign:
            return Held(facts.foreign, retention.NOT_OURS, retention.away(facts.foreign))
        verb = "unlink" if facts.cleanup == "unlink" else "set to expire"
        what = (
            "the live key equal, and {} it"
            if facts.shards == 1
            else f"all {facts.shards} live keys equal, and {{}} them"
        )
        return Act(f"read every sealed part again, prove {what.format(verb)}")

    def act(self, work: Acting, facts: Facts) -> Done:
        forgotten = forget(work.outside, work.season, work.lease)
        warnings = renaming.late_writes(work.outside, work.season)
        told = (*forgotten.warnings, *warnings, *_slow_expiry(work, forgotten))
        return Done(forgotten.to_json(), forgotten.figures, warnings=told)


def _slow_expiry(work: Work, forgotten: Forgotten) -> tuple[str, ...]:
    """Return what a person is told of large keys that the server will free at one go when they expire."""
    key = work.season.own_key
    if (
        forgotten.outcome != "expiring"
        or forgotten.rows < MANY_ROWS
        or not blocks_when_it_expires(work.outside.redis, key)
    ):
        return ()
    return (
        f"when the key under its private name expires, this server frees {forgotten.rows:,} rows at one go and serves "
        'nobody meanwhile; set lazyfree-lazy-expire yes, or cleanup = "unlink"',
    )


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What became of each live key, and how many sealed parts were read again before.

    ``before``: the keys that an earlier run had removed, once all were proved.
    """

    keys: tuple[KeyFacts, ...]
    removals: tuple[Removal, ...]
    parts: int
    before: frozenset[str] = frozenset()

    @property
    def outcome(self) -> str:
        """What was done with the keys, or with those that were left."""
        found = {removal.outcome for removal in self.removals}
        return next(outcome for outcome in ("removed", "expiring", "absent") if outcome in found)

    @property
    def rows(self) -> int:
        """Rows removed now."""
        return sum(removal.rows for removal in self.removals)

    @property
    def figures(self) -> str:
        """One line for a person."""
        gone = "the live key was gone already" if len(self.keys) == 1 else "all live keys were gone already"
        what = {
            "removed": f"{self.rows:,} rows proved equal and unlinked",
            "expiring": f"{self.rows:,} rows proved equal, to expire in {EXPIRES_AFTER}",
            "absent": gone,
        }[self.outcome]
        earlier = f", {len(self.before)} shards by an earlier run" if self.before else ""
        return f"{self.parts} parts read again, {what}{earlier}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of shards that went without being removed, and of replicas that are behind."""
        told = (removal.behind(done.replicas, done.acknowledged) for done in self.removals)
        return (*self._gone(), *dict.fromkeys(filter(None, told)))

    def _gone(self) -> Iterator[str]:
        if len(self.keys) == 1:
            return
        for key, done in zip(self.keys, self.removals, strict=True):
            if done.outcome == "absent" and key.rows and key.key not in self.before:
                yield (
                    f"the live key {key.key}, sealed with {key.rows:,} rows, was gone before anything was removed: "
                    "deleted, evicted, or lost in a failover"
                )

    def to_json(self) -> dict[str, object]:
        """Return it as plain JSON values; ``replicas`` is the least number that follow any of the servers.

        So is ``acknowledged`` of those that confirmed, null if a server did not say.
        """
        confirmed = [removal.acknowledged for removal in self.removals if removal.acknowledged is not None]
        told: dict[str, object] = {
            "outcome": self.outcome,
            "rows": self.rows,
            "replicas": min(removal.replicas for removal in self.removals),
            "acknowledged": min(confirmed) if len(confirmed) == len(self.removals) else None,
            "parts": self.parts,
        }
        if len(self.keys) > 1:
            pairs = zip(self.keys, self.removals, strict=True)
            told["keys"] = [{"key": key.key, "outcome": done.outcome, "rows": done.rows} for key, done in pairs]
        return told


def forget(outside: Outside, season: Season, lease: Lease) -> Forgotten:
    """Read every sealed part again, then remove the live keys and their helpers if each is what was sealed (I1).

    The lease's fence stands beside each key. Raises ArchiveMismatchError for a part that is not as sealed, and what
    ``crowded.remove`` raises; the keys are then as they were, or, where all were proved, some of them removed.
    """
    seal = committed(outside, season, "standings")
    verified = verify(outside.store, season.board.name, season.id)
    if seals.find(outside.database, season.key, "grants") is not None:
        committed(outside, season, "grants")
        verify(outside.store, season.board.name, season.id, "grants")
    same_store.check(outside.store, outside.database, season.board.name, read=season.key)
    assert isinstance(seal.facts, StandingFacts)
    left = left_behind(outside.database, season)
    departures = [_departure(season, lease, key, left.get(key.key, [])) for key in seal.facts.keys]
    options: dict[str, Any] = {
        "descending": season.board.descending,
        "archived": lambda: read_parts_checked(outside.store, seal),
        "page_rows": outside.runner.page_rows,
        "page_budget": outside.runner.page_budget,
    }
    if not season.sharded:
        (one,) = departures
        removed = crowded.remove(
            outside.connector(one.sealed.key),
            one.sealed,
            one.fence,
            helper_keys=one.helper_keys,
            expiry=one.expiry,
            **options,
        )
        return Forgotten(seal.facts.keys, (removed,), verified.parts)
    before = _removed_before(outside, season)
    names = [key.key for key in seal.facts.keys]

    def proved(there: Sequence[str]) -> None:
        detail = {"keys": list(there)}
        journal.write(outside.database, season.key, REMOVING, who=lease.holder, fence=lease.fence, detail=detail)

    removals = remove_all(outside.connect, departures, proved=proved, **options)
    gone = {name for name, removal in zip(names, removals, strict=True) if removal.outcome == "absent"}
    sealed = {key.key for key in seal.facts.keys if key.rows}
    return Forgotten(seal.facts.keys, removals, verified.parts, frozenset(before & gone & sealed))


def _departure(season: Season, lease: Lease, key: KeyFacts, left: Sequence[str]) -> Departure:
    fence = keys.helper_key(key.key, "fence")
    expiry = removal.Expiry(keys.helper_key(key.key, "expiring"), EXPIRES_AFTER)
    return Departure(
        key,
        removal.Fence(fence, lease.fence),
        helper_keys=[keys.helper_key(key.key, kind) for kind in keys.BESIDE] + list(left),
        expiry=expiry if season.board.cleanup == "expire" else None,
    )


def _removed_before(outside: Outside, season: Season) -> set[str]:
    """Return the keys that were all proved by an earlier run, which then began to remove them."""
    noted = [entry for entry in journal.entries(outside.database, season.key) if entry.event == REMOVING]
    return {str(key) for entry in noted for key in entry.detail.get("keys", ())}
