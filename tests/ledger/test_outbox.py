"""The outbox: every grant is owed until it is settled, by whoever has claimed it, and by nobody else (I5, I9)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import pyarrow as pa
import pytest

from leaderboard.errors import LeaseLostError
from ledger import grants, outbox
from ledger.database import Database
from ledger.grants import Loaded
from ledger.leases import Lease
from ledger.outbox import Claim
from tests.ledger.support import closing, count, taken_over

LONG, NONE = timedelta(minutes=5), timedelta(0)


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with Database(ledger_url) as opened:
        yield opened


@pytest.fixture
def lease(database: Database) -> Lease:
    """The lease of a season that has ten grants to be sent by webhook."""
    _, lease = closing(database)
    load(database, lease, 10)
    outbox.plan(database, lease, "webhook")
    return lease


def load(database: Database, lease: Lease, rows: int) -> None:
    batch = pa.record_batch(
        {
            "grant_id": [str(uuid4()) for _ in range(rows)],
            "player_id": [f"p{number}" for number in range(rows)],
            "rule": ["all"] * rows,
            "item": ["gems"] * rows,
            "amount": pa.array([5] * rows, pa.int64()),
            "position": pa.array(range(1, rows + 1), pa.int64()),
            "rank": pa.array([1] * rows, pa.int64()),
        }
    )
    grants.load(database, lease, [batch], Loaded(rows, {"gems": 5 * rows} if rows else {}))


def claim(database: Database, lease: Lease, size: int = 4, length: timedelta = LONG, holder: str = "me") -> Claim:
    found = outbox.claim(database, lease.key, holder, length, lambda tries: size, None)
    assert found is not None
    return found


def ids(found: Claim) -> list[str]:
    return [str(row["grant_id"]) for row in found.rows]


def settle(database: Database, lease: Lease, found: Claim, **told: object) -> int:
    values = {"acknowledged": [], "dead": {}, "again": {}, "reason": "", "failures": 0, "pause": None, **told}
    return outbox.settle(database, lease.key, found, **values)  # type: ignore[arg-type]  # passed on as they came


def test_what_is_claimed_is_nobody_elses_until_it_runs_out(database: Database, lease: Lease) -> None:
    """I5: claims are disjoint and leave nothing out; what runs out unsettled is due again, whole."""
    first, second, third = (claim(database, lease, length=LONG) for _ in range(3))
    found = [*ids(first), *ids(second), *ids(third)]
    assert len(found) == len(set(found)) == 10
    assert outbox.claim(database, lease.key, "me", LONG, lambda tries: 4, None) is None
    assert outbox.waiting(database, lease.key).grants == 10
    database.run(b"update finale.outbox set claimed_until = now() where claim = %(claim)s", {"claim": first.number})
    again = claim(database, lease)
    assert sorted(ids(again)) == sorted(ids(first)) and again.number > third.number


def test_i9_who_was_taken_over_settles_nothing(database: Database, lease: Lease) -> None:
    """I9: a deliverer that slept past its claim changes no row of the one that has it now."""
    old = claim(database, lease, length=NONE)
    new = claim(database, lease)
    assert sorted(ids(old)) == sorted(ids(new))
    assert settle(database, lease, old, acknowledged=ids(old)) == 0
    assert settle(database, lease, old, dead=dict.fromkeys(ids(old), "no"), pause=LONG, failures=9) == 0
    assert outbox.paused(database, lease.key) == (None, 0)
    assert settle(database, lease, new, acknowledged=ids(new)) == 4
    assert outbox.settled(database, lease.key) == (4, 0)


def test_many_deliverers_at_once_settle_each_grant_once(database: Database, lease: Lease, ledger_url: str) -> None:
    """I5, C56: several deliverers side by side share the grants among them."""

    def work(holder: str) -> list[str]:
        done: list[str] = []
        with Database(ledger_url) as own:
            while found := outbox.claim(own, lease.key, holder, LONG, lambda tries: 2, None):
                settle(own, lease, found, acknowledged=ids(found))
                done += ids(found)
        return done

    with ThreadPoolExecutor(4) as pool:
        found = [one for done in pool.map(work, "abcd") for one in done]
    assert len(found) == len(set(found)) == 10
    outbox.finish(database, lease.key)
    assert outbox.delivered(database, lease.key) == 10


def test_each_outcome_has_its_state(database: Database, lease: Lease) -> None:
    """Acknowledged, dead with the reason, or waiting for its next try; all in one transaction."""
    found = claim(database, lease)
    a, b, c, d = ids(found)
    settle(
        database,
        lease,
        found,
        acknowledged=[a],
        dead={b: "no such item"},
        again={c: LONG, d: NONE},
        reason="answered 500",
    )
    counted = {row["state"]: row["grants"] for row in outbox.counts(database, lease.key)}
    assert counted == {"acknowledged": 1, "dead": 1, "waiting": 8}
    [letter] = outbox.dead_letters(database, lease.key, 10)
    assert (str(letter["grant_id"]), letter["reason"], letter["attempts"], letter["amount"]) == (
        b,
        "no such item",
        1,
        5,
    )
    assert c not in ids(claim(database, lease, 10))
    assert ids(claim(database, lease, 10)) == [d]


def test_a_pause_is_of_the_whole_season(database: Database, lease: Lease) -> None:
    """What a silent target is spared, every deliverer sees, in this process or another."""
    settle(database, lease, claim(database, lease), again={}, acknowledged=[], dead={}, failures=1, pause=LONG)
    assert outbox.paused(database, lease.key) == (None, 0)
    found = claim(database, lease)
    settle(database, lease, found, again=dict.fromkeys(ids(found), LONG), failures=3, pause=LONG)
    until, failures = outbox.paused(database, lease.key)
    assert until is not None and until > database.now() and failures == 3


def test_retry_brings_dead_letters_back_once(database: Database, lease: Lease) -> None:
    """They are owed again, with all their tries; what was acknowledged stays so."""
    while found := outbox.claim(database, lease.key, "me", LONG, lambda tries: 4, None):
        one, *rest = ids(found)
        settle(database, lease, found, acknowledged=rest, dead={one: "no"})
    outbox.finish(database, lease.key)
    assert outbox.delivered(database, lease.key) == 10
    assert outbox.retry(database, lease.key, who="ana") == (3, 0)
    assert outbox.retry(database, lease.key, who="ana") == (0, 0)
    assert outbox.delivered(database, lease.key) is None
    assert claim(database, lease, 10).attempts == 0
    assert outbox.settled(database, lease.key) == (7, 0)


def test_planning_again_changes_nothing(database: Database, lease: Lease) -> None:
    """I8: the mode stands as first planned, and no grant comes into the outbox twice."""
    assert outbox.plan(database, lease, "table").mode == "webhook"
    assert count(database, "outbox") == 10 and count(database, "payable") == 0


def test_i9_an_old_fence_plans_nothing(database: Database) -> None:
    """I9: who has lost the season's lease hands nothing over."""
    _, lease = closing(database)
    load(database, lease, 1)
    taken_over(database, lease)
    with pytest.raises(LeaseLostError):
        outbox.plan(database, lease, "webhook")
    assert count(database, "delivery") == count(database, "outbox") == 0


def test_a_season_without_grants_is_delivered_at_once(database: Database) -> None:
    """Nothing to be sent is delivered."""
    _, lease = closing(database)
    load(database, lease, 0)
    assert outbox.plan(database, lease, "stream").delivered_at is not None
