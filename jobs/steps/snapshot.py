"""Snapshot: the live keys at one instant (I3), staged as Parquet parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from archive import snapshot
from jobs.checks import same_store
from jobs.checks.reconciling import players_in_ledger
from jobs.seasons import renaming
from jobs.seasons.verdicts import REPAIR, Act, Done, Held, Verdict
from jobs.steps.step import Acting, Work
from leaderboard.errors import SeasonHeldError
from leaderboard.states import Step
from leaderboard.wording import counted, listed
from ledger import journal
from live.eviction import eviction
from live.keyspace import sizes
from live.nodes import serving

_TRIES = 10_000  #: more than any one snapshot takes


@dataclass(frozen=True, slots=True)
class Facts:
    name: str
    live_key: str
    players: int | None  #: in the ledger, if the key is missing; None without one
    exists: bool
    foreign: bool = False  #: Finale does not write the key
    fate: str = ""  #: what may have become of a missing key
    gone: tuple[str, ...] = ()  #: shards that do not exist, while others do
    suspect: bool = False  #: whether a person must say that nobody played in those
    empty: str = ""  #: who has said that nobody played in the whole season


@dataclass(frozen=True, slots=True)
class Snapshot:
    step: Step = Step.SNAPSHOT

    def look(self, work: Work) -> Facts:
        season = work.season
        # Before anything is staged, which would make the folder.
        same_store.check(work.outside.store, work.outside.database, season.board.name)
        found = sizes(work.outside.redis, season.standing_keys)
        gone = [key for key, rows in found.items() if not rows]
        exists = len(gone) < len(found)
        fate = renaming.undone(work.outside, season) or _fate(work, gone[0]) if gone else ""
        players = None if exists else players_in_ledger(work.outside, season)
        foreign = season.adopted or season.board.ledger != "own"
        empty = "" if exists or players is not None else journal.said_empty(work.outside.database, season.key)
        name = f"{season.board.name} {season.id}"
        facts = Facts(name, season.standing_key, players, exists, foreign, fate, empty=empty)
        if not gone or not exists:
            return facts
        facts = replace(facts, gone=tuple(gone))
        # A band may well be empty. That no player at all falls to a shard is rare, and without a ledger nobody knows.
        suspect = season.board.ledger == "none" and season.board.shards.by == "player"
        accepted = suspect and journal.accepted(work.outside.database, season.key, _gone(facts))
        return replace(facts, suspect=suspect and not accepted)

    def plan(self, facts: Facts) -> Verdict:
        put_back = f"put the key back, then: finale season release {facts.name}"
        if not facts.exists and facts.players is None and not facts.empty:
            return Held(
                f"the live key {facts.live_key} does not exist, and no ledger tells whether anyone played",
                f"an empty board and a lost one look alike in Redis; {facts.fate}",
                f"{put_back}; or, if nobody played: finale season release {facts.name} --empty",
            )
        if not facts.exists and facts.players:
            again = f"finale results apply {facts.name} --all writes it again; then: finale season release {facts.name}"
            return Held(
                f"the live key {facts.live_key} is missing while the ledger has {counted(facts.players, 'player')}",
                facts.fate,
                put_back if facts.foreign else again,
            )
        if facts.suspect:
            return Held(
                _gone(facts),
                f"players are spread over all shards, so one without any is rarely right; {facts.fate}",
                f"put back what was lost; or, if nobody plays there: finale season release {facts.name}",
            )
        return Act("read the live key at one instant and stage it")

    def act(self, work: Acting, facts: Facts) -> Done:
        season, runner = work.season, work.outside.runner
        repairs = len(work.results.get(REPAIR, {}).get("repairs", []))
        taken = snapshot.take(
            work.outside.connect,
            snapshot.Source(
                season.board, season.bounds, season.standing_key, season.standing_keys if season.sharded else ()
            ),
            work.outside.store,
            # A repair has the snapshot taken again under the same fence; names of attempts never come twice.
            attempt=lambda number: work.attempt(number + repairs * _TRIES),
            tries=runner.snapshot_tries,
            page_rows=runner.page_rows,
            page_budget=runner.page_budget,
            part_rows=runner.part_rows,
            progress=work.progress,
        )
        lost = [key.key for key in taken.facts.keys if not key.rows and key.key not in facts.gone]
        if facts.exists and lost:
            raise SeasonHeldError(
                f"the live key {lost[0]} has gone while it was read",
                detail=_fate(work, lost[0]),
                hint="put the key back",
            )
        size = sum(part.size for part in taken.facts.parts)
        again = f", started over {taken.restarts} times" if taken.restarts else ""
        return Done(
            {"facts": taken.facts.to_json(), "restarts": taken.restarts},
            f"{taken.facts.rows:,} rows in {len(taken.facts.parts)} parts, {size:,} bytes{again}",
            warnings=_archived_as_empty(facts),
        )


def _archived_as_empty(facts: Facts) -> tuple[str, ...]:
    if facts.empty:
        return (f"the live key {facts.live_key} does not exist; archived as empty, as {facts.empty} has said",)
    return (f"{_gone(facts)}; archived as empty",) if facts.gone and facts.players is None else ()


def _gone(facts: Facts) -> str:
    """Return which shards do not exist, the same as long as it is the same ones."""
    named = listed(facts.gone, 5)
    return f"{len(facts.gone)} shards do not exist: {named}{', …' if len(facts.gone) > 5 else ''}"


def _fate(work: Work, key: str) -> str:
    return eviction(serving(work.outside.redis, key)).fate()
