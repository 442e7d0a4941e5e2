"""Clean: every sealed part read again, then the live key forgotten in the transaction that proved it equal (I1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from archive import removal
from archive.fetch import read_parts_checked
from archive.seal import Seal, StandingFacts
from archive.verify import verify
from jobs.steps.seal import committed
from jobs.steps.step import Acting, Work
from jobs.verdicts import Act, Done, Verdict, Wait
from leaderboard import keys
from leaderboard.season import Season
from leaderboard.states import Step
from ledger import seals

#: How long a key with ``cleanup = "expire"`` stays under its private name.
EXPIRES_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Facts:
    now: datetime
    keep_until: datetime
    cleanup: str


@dataclass(frozen=True, slots=True)
class Clean:
    step: Step = Step.CLEAN

    def look(self, work: Work) -> Facts:
        assert work.season.keep_until is not None
        return Facts(work.now, work.season.keep_until, work.season.board.cleanup)

    def plan(self, facts: Facts) -> Verdict:
        if facts.now < facts.keep_until:
            return Wait(facts.keep_until, "the live key is kept until then")
        verb = "unlink" if facts.cleanup == "unlink" else "set to expire"
        return Act(f"read every sealed part again, prove the live key equal, and {verb} it")

    def act(self, work: Acting, facts: Facts) -> Done:
        season, outside = work.season, work.outside
        seal = committed(outside, season, "standings")
        verified = verify(outside.store, season.board.name, season.id)
        if seals.find(outside.database, season.key, "grants") is not None:
            committed(outside, season, "grants")
            verify(outside.store, season.board.name, season.id, "grants")
        removed = _remove(work, season, seal)
        what = {
            "removed": f"{removed.rows:,} rows proved equal and unlinked",
            "expiring": f"{removed.rows:,} rows proved equal, to expire in {EXPIRES_AFTER}",
            "absent": "the live key was gone already",
        }[removed.outcome]
        return Done(
            {"outcome": removed.outcome, "rows": removed.rows, "replicas": removed.replicas, "parts": verified.parts},
            f"{verified.parts} parts read again, {what}",
        )


def _remove(work: Acting, season: Season, seal: Seal) -> removal.Removal:
    assert isinstance(seal.facts, StandingFacts)
    (key,) = seal.facts.keys
    outside = work.outside
    fence = keys.helper_key(season.live_key, "fence")
    expiry = removal.Expiry(keys.helper_key(season.live_key, "expiring"), EXPIRES_AFTER)
    return removal.remove(
        outside.connect,
        key,
        removal.Fence(fence, work.lease.fence),
        descending=season.board.descending,
        helper_keys=[keys.helper_key(season.live_key, "applied"), fence],
        archived=lambda: read_parts_checked(outside.store, seal),
        expiry=expiry if season.board.cleanup == "expire" else None,
        page_rows=outside.runner.page_rows,
        page_budget=outside.runner.page_budget,
    )
