"""Reconcile: the staged standings against the ledger's totals, every player (I4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from shlex import quote
from typing import Any

from archive.fetch import fetch_part, open_part
from archive.layout import report_path, staging_dir
from archive.objects import ObjectExistsError, Store
from archive.seal import StandingFacts
from jobs.steps.step import Acting, Work
from jobs.verdicts import Act, Done, Verdict
from leaderboard.codec import to_microseconds
from leaderboard.errors import SeasonHeldError
from leaderboard.season import Season
from leaderboard.states import Step
from leaderboard.ties import UNIT_MICROSECONDS
from ledger import totals
from reconcile.compare import Comparison, Unit, compare


@dataclass(frozen=True, slots=True)
class Facts:
    snapshot: StandingFacts
    own_ledger: bool


@dataclass(frozen=True, slots=True)
class Reconcile:
    step: Step = Step.RECONCILE

    def look(self, work: Work) -> Facts:
        return Facts(StandingFacts.from_json(work.results[Step.SNAPSHOT]["facts"]), work.season.board.ledger == "own")

    def plan(self, facts: Facts) -> Verdict:
        if not facts.own_ledger:
            return Act("note that the board declares no ledger")
        return Act("compare every player with the ledger")

    def act(self, work: Acting, facts: Facts) -> Done:
        if not facts.own_ledger:
            return Done({"ledger": "none"}, "the board declares no ledger; the seal says so")
        season = work.season
        with totals.reader(work.outside.database.url, season.key) as reader:
            found = compare(staged_rows(work.outside.store, season, facts.snapshot), reader, _unit(season))
        if found.drift:
            raise _drifted(work, found)
        return Done(
            {"ledger": "own", **found.to_json()},
            f"{found.equal:,} players equal, no drift, {found.ledger_points:,} points",
        )


def staged_rows(store: Store, season: Season, facts: StandingFacts) -> Iterator[Any]:
    """Yield the staged standings as record batches, each part read again and compared with its SHA-256."""
    folder = staging_dir(season.board.name, season.id, facts.attempt)
    for part in facts.parts:
        yield from open_part(f"{folder}/{part.name}", part, fetch_part(store, folder, part)).iter_batches()


def _unit(season: Season) -> Unit | None:
    if not season.board.packed:
        return None
    return Unit(to_microseconds(season.bounds.starts_at), UNIT_MICROSECONDS[season.board.ties.unit])


def _drifted(work: Acting, found: Comparison) -> SeasonHeldError:
    season = work.season
    name = f"{season.board.name} {season.id}"
    path = report_path(season.board.name, season.id, f"drift-f{work.lease.fence}.json")
    text = json.dumps(found.report(), indent=2, sort_keys=True, ensure_ascii=False)
    with suppress(ObjectExistsError):
        work.outside.store.put_new(path, f"{text}\n".encode())
    classes = (
        (found.only_redis, "only in Redis"),
        (found.only_ledger, "only in the ledger"),
        (found.points_differ, "with other points"),
        (found.reached_at_differs, "with the same points reached at another time"),
    )
    counted = ", ".join(f"{count:,} {what}" for count, what in classes if count)
    named = "; ".join(str(drift) for drift in found.examples[:5])
    return SeasonHeldError(
        f"{season.name}: Redis and the ledger differ in {found.drift:,} players, so nobody is paid",
        detail=f"{counted}. {named}. Report: {work.outside.store.url}/{path}",
        hint=_remedy(season, name),
    )


def _remedy(season: Season, name: str) -> str:
    if season.adopted:
        return (
            f"correct the key, then: finale season release {name} --again; "
            f"or let no ledger count, in your name: finale archive adopt {quote(season.live_key)} "
            f"--board {season.board.name} --season {season.id} --no-ledger"
        )
    return (
        f"write the ledger's totals with: finale results apply {name} --all (players only in Redis are removed "
        f"by hand), then: finale season release {name} --again"
    )
