"""The most likely cause of one player's drift, from the results alone; and what many players share, said once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconcile.drift import Drift
from reconcile.explain import Cause, Counting, Match, explain
from reconcile.shared import shared_place, shared_time

START = datetime(2026, 1, 1, tzinfo=UTC)
SUM = Counting("sum", descending=True)


def match(number: int, points: int, **kind: bool) -> Match:
    at = START + timedelta(minutes=number)
    return Match(f"m{number}", points, at, at, **kind)


def cause(redis: int | None, ledger: int | None, *matches: Match, counting: Counting = SUM) -> tuple[Cause, str]:
    """Explain a player whose results came in the order given; the last is the newest."""
    kind = "only_ledger" if redis is None else "only_redis" if ledger is None else "points_differ"
    told = explain(Drift(kind, b"ann", redis, ledger, None, None), matches[::-1], counting, whole=True)
    return told.cause, "" if told.since is None else f"{told.since:%M}"


THREE = (match(1, 5), match(2, 7), match(3, 11))
BEST = Counting("best", descending=True)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (cause(12, 23, *THREE), (Cause.NEVER_APPLIED, "03")),
        (cause(5, 23, *THREE), (Cause.NEVER_APPLIED, "02")),
        (cause(None, 23, *THREE), (Cause.NEVER_APPLIED, "01")),
        (cause(30, 23, *THREE), (Cause.TWICE, "")),
        (cause(24, 23, *THREE), (Cause.FOREIGN, "")),
        (cause(9, None), (Cause.FOREIGN, "")),
        (cause(32, 23, *THREE, match(4, 9, voided=True)), (Cause.VOID, "")),
        (cause(9, None, match(4, 9, voided=True)), (Cause.VOID, "")),
        (cause(33, 23, *THREE, match(4, 10, late=True)), (Cause.LATE, "")),
        (cause(23, 24, *THREE), (Cause.BROKEN, "")),
        (cause(7, 11, *THREE, counting=BEST), (Cause.NEVER_APPLIED, "03")),
        (cause(20, 11, *THREE, match(4, 20, voided=True), counting=BEST), (Cause.VOID, "")),
    ],
)
def test_the_most_likely_cause(found: tuple[Cause, str], expected: tuple[Cause, str]) -> None:
    """Never applied since a time, applied twice, a void or a late result counted, a broken total, or somebody else."""
    assert found == expected


def test_a_rollback_is_said_once() -> None:
    """Where nearly all who were active since a time lack what was recorded, the server was rolled back; else not."""
    since = [START + timedelta(seconds=at) for at in range(40)]
    rolled = shared_time(since, lambda _: 40)
    assert rolled is not None and rolled.kind == "rollback" and rolled.since == START
    assert "since 2026-01-01T00:00:00Z: 40 players" in rolled.words
    spread = shared_time(since, lambda _: 60)
    assert spread is not None and spread.kind == "unapplied"
    assert shared_time(since, lambda _: 4_000) is None, "a time that nearly all came after tells nobody apart"
    known = shared_time(since, lambda _: 4_000, lost_buckets=3)
    assert known is not None and known.kind == "rollback" and "3 buckets" in known.words
    assert shared_time(since[:1], lambda _: 1) is None


def test_drift_in_one_shard_is_said_once() -> None:
    """All in one of eight shards: said, with its name; spread over all, or too few to tell: not."""
    lost = shared_place({"lb:3": 1_250}, 8, "shards")
    assert lost is not None and lost.words == "all 1,250 are in 1 of 8 shards: lb:3 (1,250)"
    assert shared_place({f"lb:{shard}": 150 for shard in range(8)}, 8, "shards") is None
    assert shared_place({"lb:3": 2}, 8, "shards") is None
    assert shared_place({"one": 500}, 1, "shards") is None
