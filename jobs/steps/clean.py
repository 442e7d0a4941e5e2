"""Clean: every sealed part read again, then the live key forgotten in the transaction that proved it equal (I1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from archive import crowded, removal
from archive.fetch import read_parts_checked
from archive.removal import Removal
from archive.seal import StandingFacts
from archive.verify import verify
from jobs import renaming
from jobs.steps.seal import committed
from jobs.steps.step import Acting, Work
from jobs.verdicts import Act, Done, Verdict, Wait
from jobs.wiring import Outside
from leaderboard import keys, retention
from leaderboard.retention import Retention
from leaderboard.season import Season
from leaderboard.states import Step
from ledger import seals
from ledger.leases import Lease

#: How long a key with ``cleanup = "expire"`` stays under its private name.
EXPIRES_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Facts:
    retention: Retention
    cleanup: str


@dataclass(frozen=True, slots=True)
class Clean:
    step: Step = Step.CLEAN

    def look(self, work: Work) -> Facts:
        return Facts(retention.decide(retention.Facts(work.season, work.now)), work.season.board.cleanup)

    def plan(self, facts: Facts) -> Verdict:
        if not facts.retention.acts:
            return Wait(facts.retention.at, facts.retention.reason)
        verb = "unlink" if facts.cleanup == "unlink" else "set to expire"
        return Act(f"read every sealed part again, prove the live key equal, and {verb} it")

    def act(self, work: Acting, facts: Facts) -> Done:
        forgotten = forget(work.outside, work.season, work.lease)
        warnings = renaming.late_writes(work.outside, work.season)
        return Done(forgotten.to_json(), forgotten.figures, warnings=warnings)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What became of the live key, and how many sealed parts were read again before."""

    removal: Removal
    parts: int

    @property
    def figures(self) -> str:
        """One line for a person."""
        what = {
            "removed": f"{self.removal.rows:,} rows proved equal and unlinked",
            "expiring": f"{self.removal.rows:,} rows proved equal, to expire in {EXPIRES_AFTER}",
            "absent": "the live key was gone already",
        }[self.removal.outcome]
        return f"{self.parts} parts read again, {what}"

    def to_json(self) -> dict[str, object]:
        """Return it as plain JSON values."""
        return {
            "outcome": self.removal.outcome,
            "rows": self.removal.rows,
            "replicas": self.removal.replicas,
            "parts": self.parts,
        }


def forget(outside: Outside, season: Season, lease: Lease) -> Forgotten:
    """Read every sealed part again, then remove the live key and its helpers if the key is what was sealed (I1).

    The lease's fence stands beside the key. Raises ArchiveMismatchError for a part that is not as sealed, and what
    ``crowded.remove`` raises; the key is then as it was.
    """
    seal = committed(outside, season, "standings")
    verified = verify(outside.store, season.board.name, season.id)
    if seals.find(outside.database, season.key, "grants") is not None:
        committed(outside, season, "grants")
        verify(outside.store, season.board.name, season.id, "grants")
    assert isinstance(seal.facts, StandingFacts)
    (key,) = seal.facts.keys
    fence = keys.helper_key(season.own_key, "fence")
    expiry = removal.Expiry(keys.helper_key(season.own_key, "expiring"), EXPIRES_AFTER)
    removed = crowded.remove(
        outside.connector(key.key),
        key,
        removal.Fence(fence, lease.fence),
        descending=season.board.descending,
        helper_keys=[keys.helper_key(season.own_key, "applied"), fence],
        archived=lambda: read_parts_checked(outside.store, seal),
        expiry=expiry if season.board.cleanup == "expire" else None,
        page_rows=outside.runner.page_rows,
        page_budget=outside.runner.page_budget,
    )
    return Forgotten(removed, verified.parts)
