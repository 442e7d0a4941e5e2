"""Comparing by buckets finds what comparing by rows finds, with Finale's ledger and with SQL of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from leaderboard.codec import from_microseconds
from leaderboard.season import Bounds
from leaderboard.truth import OutsideLedger
from ledger import outside, totals
from ledger.database import Database
from ledger.outside import Source
from reconcile.buckets import compared_by_buckets
from reconcile.compare import Compared, RepeatedPlayersError, Rule, Unit, compared
from reconcile.drift import rows_of
from tests.ledger.support import board
from tests.reconcile.sides import EPOCH, MINUTE, Side, batches

KEY = 1
SQL = "select who as player_id, sum(n) as points, max(at) as reached_at from public.game group by who"
BOUNDS = Bounds(from_microseconds(EPOCH), from_microseconds(EPOCH + 10**13), "s")

held = st.tuples(
    st.integers(-(2**53), 2**53) | st.integers(-2, 2),
    st.integers(-3 * MINUTE, 3 * MINUTE).map(lambda n: EPOCH + n)
    | st.integers(-2, 2).map(lambda n: EPOCH + n * MINUTE),
)
sides = st.dictionaries(st.binary(max_size=1) | st.binary(max_size=40), held, max_size=12)


def fill(database: Database, ledger: Side) -> None:
    """Let Finale's totals, and a table of the user's, be ``ledger``."""
    columns = [(name, points, from_microseconds(at or 0)) for name, (points, at) in ledger.items()]
    names, points, times = ([row[at] for row in columns] for at in range(3))
    database.run(b"delete from finale.player_total")
    database.run(
        b"insert into finale.player_total (season_id, player_id, points, reached_at, matches, version)"
        b" select 1, *, 1, 1 from unnest(%(names)s::bytea[], %(points)s::bigint[], %(times)s::timestamptz[])",
        {"names": names, "points": points, "times": times},
    )
    database.run(b"drop table if exists public.game")
    database.run(
        b"create table public.game as select player_id as who, points as n, reached_at as at from finale.player_total"
    )


def theirs(url: str, *, timed: bool) -> Source:
    ledger = OutsideLedger(sql=SQL)
    return Source(url, ledger, board(ledger={"sql": SQL}, ties="first_to_reach" if timed else "shared"), BOUNDS)


def told(found: AbstractContextManager[Compared]) -> tuple[Any, ...]:
    """Return all that a comparison says: counts and sums, every drifting player, and the hash."""
    with found as result:
        return result.counts, list(rows_of(result.batches())), result.difference("b/s")


def by_rows(url: str, redis: Side, rule: Rule) -> tuple[Any, ...]:
    with totals.reader(url, KEY) as reader:
        return told(compared(batches(redis), reader, rule))


def by_buckets(url: str, redis: Side, rule: Rule) -> Iterator[tuple[Any, ...]]:
    """Yield what comparing by buckets says, with Finale's ledger and with the user's."""
    unit = None if rule.unit is None else (rule.unit.epoch, rule.unit.size)
    ledgers = (totals.in_buckets(url, KEY, unit), outside.in_buckets(theirs(url, timed=unit is not None), unit))
    for ledger in ledgers:
        with ledger as bucketed:
            yield told(compared_by_buckets(lambda: batches(redis), bucketed, rule))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(redis=sides, ledger=sides, alike=sides, timed=st.booleans(), tolerance=st.sampled_from([0, 3]))
@example(redis={}, ledger={}, alike={}, timed=True, tolerance=0)
@example(redis={b"a": (1, EPOCH - MINUTE)}, ledger={b"a": (1, EPOCH - MINUTE)}, alike={}, timed=True, tolerance=0)
@example(redis={b"a": (1, EPOCH)}, ledger={b"a": (3, EPOCH)}, alike={b"b": (2, EPOCH)}, timed=False, tolerance=3)
def test_buckets_find_what_rows_find(
    ledger_url: str, redis: Side, ledger: Side, alike: Side, timed: bool, tolerance: int
) -> None:
    """Any two sides, at times before and after the season's start, with points up to 2^53: counts, players, hash."""
    rule = Rule(Unit(EPOCH, MINUTE) if timed else None, tolerance)
    with Database(ledger_url) as database:
        fill(database, {**alike, **ledger})
    expected = by_rows(ledger_url, {**alike, **redis}, rule)
    for found in by_buckets(ledger_url, {**alike, **redis}, rule):
        assert found == expected


def test_a_player_whom_the_ledger_gives_twice_is_found_by_buckets(ledger_url: str) -> None:
    """The checksums of his bucket differ, so his rows are asked for, and are not counted as equal."""
    with Database(ledger_url) as database:
        fill(database, {b"ann": (5, EPOCH), b"bob": (1, EPOCH)})
        database.run(b"insert into public.game select * from public.game where who = 'ann'")
    twice = OutsideLedger(sql="select who as player_id, n as points, at as reached_at from public.game")
    source = Source(ledger_url, twice, board(ledger={"sql": twice.sql}), BOUNDS)
    redis: Side = {b"ann": (5, EPOCH), b"bob": (1, EPOCH)}
    with (
        pytest.raises(RepeatedPlayersError),
        outside.in_buckets(source, None) as bucketed,
        compared_by_buckets(lambda: batches(redis), bucketed),
    ):
        pass
