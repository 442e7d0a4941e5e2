"""Reconcile: the staged standings against the ledger, every player; agreed, accepted, repaired, or held (I4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from shlex import quote

from archive.seal import StandingFacts
from jobs.checks import reconciling, repairing, reporting
from jobs.checks.reporting import Report
from jobs.seasons.verdicts import DRIFT, REPAIR, REPAIRED, Act, Done, Verdict
from jobs.steps.step import Acting, Work
from leaderboard.board import Board
from leaderboard.errors import SeasonHeldError
from leaderboard.season import Season
from leaderboard.states import State, Step
from leaderboard.wording import counted, listed
from ledger import acceptance, journal
from ledger.acceptance import Acceptance
from ledger.recount import recount
from reconcile.compare import Compared
from reconcile.drift import Comparison
from reconcile.verdict import Allowed, Decision, decide


@dataclass(frozen=True, slots=True)
class Facts:
    snapshot: StandingFacts
    ledger: str  #: own, outside or none
    accepted: Mapping[str, Acceptance]  #: differences that a person has accepted, by their hashes
    repaired: int  #: how often Redis was put right since a person last looked


@dataclass(frozen=True, slots=True)
class Reconcile:
    step: Step = Step.RECONCILE

    def look(self, work: Work) -> Facts:
        season, database = work.season, work.outside.database
        return Facts(
            StandingFacts.from_json(work.results[Step.SNAPSHOT]["facts"]),
            season.board.ledger_kind,
            acceptance.of_season(database, season.key),
            _repaired(journal.entries(database, season.key)),
        )

    def plan(self, facts: Facts) -> Verdict:
        if facts.ledger == "none":
            return Act("note that the board declares no ledger")
        return Act("compare every player with the ledger")

    def act(self, work: Acting, facts: Facts) -> Done:
        if facts.ledger == "none":
            return Done({"ledger": "none"}, "the board declares no ledger; the seal says so")
        season = work.season
        rows = partial(reconciling.staged_rows, work.outside.store, season, facts.snapshot, reconciling.COLUMNS)
        _check_totals(work, facts)
        with reconciling.compared_with_ledger(work.outside, season, rows) as found:
            counts = found.counts
            _check_read(season, facts.snapshot, counts)
            difference = found.difference(season.name) if counts.drift else ""
            verdict = decide(counts, difference, _allowed(season, facts, counts))
            if verdict.decision is Decision.AGREED:
                return _agreed(season, facts, counts)
            report = reporting.write_report(work.outside, season, found)
            match verdict.decision:
                case Decision.ACCEPTED:
                    return _accepted(season, facts, counts, facts.accepted[difference])
                case Decision.REPAIR:
                    return _repair(work, found, report)
        journal.put_result(work.outside.database, season.key, DRIFT, counts.to_json(), work.lease.fence)
        raise _drifted(work, counts, report, verdict.why)


def _check_totals(work: Acting, facts: Facts) -> None:
    """Count the totals anew, if the board asks for it; raise SeasonHeldError where the results do not make them."""
    season = work.season
    if facts.ledger != "own" or not season.board.reconcile.deep:
        return
    found = recount(work.outside.database, season)
    if found.broken:
        raise SeasonHeldError(
            f"{season.name}: {counted(found.broken, 'total')} of the ledger not as its results make, so nobody is paid",
            detail=listed(found.examples, 5, found.broken, between="; "),
            hint=f"count them anew: finale reconcile {season.board.name} {season.id} --deep --repair, then: "
            f"finale season release {season.board.name} {season.id}",
        )


def _repaired(entries: list[journal.Entry]) -> int:
    released = max((number for number, entry in enumerate(entries) if entry.event == "released"), default=-1)
    return sum(entry.event == REPAIRED for entry in entries[released + 1 :])


def _allowed(season: Season, facts: Facts, counts: Comparison) -> Allowed:
    players = max(counts.players_in_redis, counts.players_in_ledger)
    return Allowed(
        own=facts.ledger == "own" and not season.adopted,
        repairs=season.board.reconcile.repairs(players),
        done=facts.repaired,
        accepted=frozenset(facts.accepted),
    )


def _check_read(season: Season, snapshot: StandingFacts, counts: Comparison) -> None:
    """Raise SeasonHeldError unless the rows that were compared are those of the snapshot, by number and sum."""
    read, taken = (counts.players_in_redis, counts.redis_points), (snapshot.rows, snapshot.points_sum)
    if read != taken:
        raise SeasonHeldError(
            f"{season.name}: {read[0]:,} standings with {read[1]:,} points were read back, the snapshot had "
            f"{taken[0]:,} with {taken[1] or 0:,}",
            hint="take the snapshot again",
        )


def _agreed(season: Season, facts: Facts, counts: Comparison) -> Done:
    tolerated = f", {counts.tolerated:,} within the tolerance" if counts.tolerated else ""
    return Done(
        {"ledger": facts.ledger, **counts.to_json()},
        f"{counted(counts.equal, 'player')} equal{tolerated}, no drift, {counts.ledger_points:,} points",
        definition=_as_compared(season),
    )


def _accepted(season: Season, facts: Facts, counts: Comparison, by: Acceptance) -> Done:
    return Done(
        {"ledger": facts.ledger, **counts.to_json(), "accepted": by.to_json()},
        f"{counted(counts.drift, 'player differs', 'players differ')}, accepted by {by.who}: {by.because}",
        definition=_as_compared(season),
    )


def _as_compared(season: Season) -> Board | None:
    """Return the board to store, whose seal shall show by which SQL it was compared; None where there is none."""
    return season.board if season.board.ledger_kind == "outside" else None


def _repair(work: Acting, found: Compared, report: Report) -> Done:
    counts = found.counts
    repairing.repair(work.outside, work.season, work.lease, found.players())
    told = {
        "players": counts.drift,
        "only_redis": counts.only_redis,
        "only_ledger": counts.only_ledger,
        "points_differ": counts.points_differ,
        "reached_at_differs": counts.reached_at_differs,
        "difference": report.difference,
        "report": report.path,
        "shared": report.shared,
    }
    earlier = work.results.get(REPAIR, {}).get("repairs", [])
    return Done(
        {"repairs": [*earlier, told]},
        f"{counted(counts.drift, 'player')} put right from the ledger ({counts.counted}); the snapshot is taken again",
        warnings=(
            f"{counted(counts.drift, 'player')} drifted and were repaired, see {work.outside.store.url}/{report.path}",
        ),
        back_to=State.FROZEN,
    )


def _drifted(work: Acting, counts: Comparison, report: Report, why: str) -> SeasonHeldError:
    season = work.season
    named = listed(counts.examples, 5, counts.drift, between="; ")
    shared = " ".join(f"{words}." for words in report.shared)
    return SeasonHeldError(
        f"{season.name}: Redis and the ledger differ in {counted(counts.drift, 'player')}, so nobody is paid",
        detail=f"{counts.counted}; {why}. {shared} {named}. Report: {work.outside.store.url}/{report.path}".replace(
            "  ", " "
        ),
        hint=_remedy(season, report),
    )


def _remedy(season: Season, report: Report) -> str:
    name = f"{season.board.name} {season.id}"
    accept = f'finale season release {name} --accept-drift {report.path.rpartition("/")[2]} --because "…"'
    if season.adopted:
        return (
            f"correct the key, then: finale season release {name}; "
            f"or let no ledger count, in your name: finale archive adopt {quote(season.live_key)} "
            f"--board {season.board.name} --season {season.id} --no-ledger; or accept it: {accept}"
        )
    if season.board.ledger != "own":
        return f"correct the key or the ledger, then: finale season release {name}; or accept it: {accept}"
    return (
        f"write the ledger's truth: finale reconcile {name} --repair, then: finale season release {name}; "
        f"or accept it: {accept}"
    )
