"""Seal (I2): the exact bytes are committed under the fence, put if absent, and only then are the parts published."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from archive.canary import check_conditional_put
from archive.layout import parse_seal, seals_dir
from archive.objects import ObjectDiffersError, Store, settle
from archive.publish import publish, staged_attempts, sweep
from archive.seal import Chain, Seal, StandingFacts, build, same_content, sha256
from archive.sealed_corrections import CorrectionFacts
from archive.sealed_grants import GrantFacts
from jobs.checks import same_store
from jobs.checks.reconciling import staged_rows
from jobs.seasons import renaming
from jobs.seasons.verdicts import REPAIR, Act, Done, Verdict
from jobs.steps.step import Acting, Work
from jobs.version import SOFTWARE
from leaderboard.errors import SeasonHeldError
from leaderboard.states import Step
from leaderboard.wording import listed
from ledger import seals
from ledger.seals import SealRow


@dataclass(frozen=True, slots=True)
class Facts:
    snapshot: StandingFacts
    verdict: dict[str, Any]
    accepted: dict[str, Any] | None  #: the drift that a person has accepted
    repaired: list[Any] | None  #: what was repaired before the snapshot that is sealed
    committed: SealRow | None


@dataclass(frozen=True, slots=True)
class SealStep:
    step: Step = Step.SEAL

    def look(self, work: Work) -> Facts:
        same_store.check(work.outside.store, work.outside.database, work.season.board.name)
        verdict = dict(work.results[Step.RECONCILE])
        accepted = verdict.pop("accepted", None)
        return Facts(
            StandingFacts.from_json(work.results[Step.SNAPSHOT]["facts"]),
            verdict,
            accepted,
            work.results.get(REPAIR, {}).get("repairs"),
            seals.find(work.outside.database, work.season.key, "standings"),
        )

    def plan(self, facts: Facts) -> Verdict:
        if facts.committed is not None:
            return Act("put and publish the seal that the journal has")
        return Act("read the staged parts back, commit the seal, put it, publish its parts")

    def act(self, work: Acting, facts: Facts) -> Done:
        season, store = work.season, work.outside.store
        row = facts.committed
        if row is None:
            _read_back(store, work, facts.snapshot)
            check_conditional_put(store, season.board.name)
            row = commit(
                work,
                "standings",
                facts.snapshot,
                reconcile=facts.verdict,
                repaired=facts.repaired,
                accepted_drift=facts.accepted,
            )
        seal = put(work, row)
        publish(store, seal)
        sweep_own(work)
        sealed = seal.sealed_at
        stands = seals.find(work.outside.database, season.key, "standings") or row
        return Done(
            {"sha256": stands.sha256, "number": seal.chain.number, "rows": seal.facts.rows, "path": seal.path},
            f"seal {seal.chain.number} of the board, {seal.facts.rows:,} rows, SHA-256 {stands.sha256[:12]}…",
            warnings=renaming.late_writes(work.outside, season),
            sealed_at=sealed,
            # An adopted key is somebody else's: it goes only when a person says so.
            keep_until=None if season.adopted else sealed + season.board.keep_live,
        )


def _read_back(store: Store, work: Work, facts: StandingFacts) -> None:
    """Decode every staged part; fetching has compared its bytes with what was put."""
    for _ in staged_rows(store, work.season, facts):
        pass


def commit(work: Acting, kind: str, facts: StandingFacts | GrantFacts | CorrectionFacts, **told: Any) -> SealRow:
    """Commit the seal of ``facts`` as the next in the board's chain; one committed before is returned as it stands."""
    season = work.season
    same_store.check(work.outside.store, work.outside.database, season.board.name, read=season.key)

    def bytes_of(number: int, previous: str | None, now: datetime) -> bytes:
        return build(
            Seal(
                board=season.board.definition(),
                bounds=season.bounds,
                facts=facts,
                chain=Chain(number, previous),
                software=SOFTWARE,
                sealed_at=now,
                **told,
            )
        )

    after = _after(work, kind)
    return seals.commit(work.outside.database, work.lease, season.board.name, kind, bytes_of, after=after)


def _after(work: Acting, kind: str) -> tuple[int, str] | None:
    """Return number and hash of the last seal of the board that the store has and this ledger does not.

    A ledger restored from a backup knows less than the store. None where nothing is unknown, or this very seal is:
    that one will be taken over with its own place.
    """
    store, season = work.outside.store, work.season
    known = seals.kinds(work.outside.database, season.board.name)
    places = ((found.path, parse_seal(found.path)) for found in store.list(seals_dir(season.board.name)))
    unknown = {
        (place.season, place.kind): path for path, place in places if place and (place.season, place.kind) not in known
    }
    if not unknown or (season.id, kind) in unknown:
        return None
    read = ((Seal.parse(body).chain.number, sha256(body)) for body in map(store.get, unknown.values()))
    return max(read)


def put(work: Acting, row: SealRow) -> Seal:
    """Put the committed seal if there is none and return the one that stands.

    If another sealer was first, what it sealed is compared: the same is adopted byte for byte, anything else holds.
    """
    mine = Seal.parse(row.body)
    try:
        settle(work.outside.store, mine.path, row.body)
        return mine
    except ObjectDiffersError:
        body = work.outside.store.get(mine.path)
    theirs = Seal.parse(body)
    if differing := same_content(theirs, mine):
        # Ours is nowhere but here and never will be: without it, the season may be reopened and counted anew.
        seals.withdraw(work.outside.database, work.lease, mine.kind, row.sha256)
        raise SeasonHeldError(
            f"the {mine.name} are sealed already, with other content than this ledger's",
            detail=f"{mine.path}: {listed(differing, 5, between='; ')} (sealed, here)",
            hint="another installation writes to this bucket, or the ledger was restored and lacks results: import "
            "them, reopen the season and close it (docs/backup.md)",
        )
    place = theirs.chain
    seals.adopt(work.outside.database, work.lease, mine.board_name, mine.kind, body, place.number, place.previous)
    return theirs


def sweep_own(work: Acting) -> None:
    """Remove what this runner and earlier ones of this ledger have staged for the season, nothing of another's.

    A later runner's staging stays: this one may have been taken over without knowing it yet.
    """
    season, store = work.season, work.outside.store
    for attempt in staged_attempts(store, season.board.name, season.id):
        if work.may_sweep(attempt):
            sweep(store, season.board.name, season.id, attempt)
