"""Leases: one holder at a time, a fence that grows, a heartbeat that notices its loss."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from leaderboard.errors import LeaseHeldError, LeaseLostError
from ledger import journal, leases
from ledger.database import Database
from ledger.leases import Heartbeat
from tests.ledger.support import HOUR, await_that, waits_for_lock

SHORT = timedelta(milliseconds=300)


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with Database(ledger_url) as opened:
        yield opened


def _acquire(database: Database, holder: str, length: timedelta = HOUR, dead: str | None = None) -> leases.Lease:
    return leases.acquire(database, 1, "goals/s2021", holder, length, dead=dead)


def _expire(database: Database) -> None:
    database.run(b"update finale.lease set expires_at = clock_timestamp()")


def test_i9_one_holder_at_a_time(database: Database) -> None:
    """I9: the second one is told who holds the season and since when."""
    lease = _acquire(database, "anna@host:1")
    row = leases.find(database, 1)
    assert row is not None and row.alive and row.holder == "anna@host:1"
    with pytest.raises(LeaseHeldError) as caught:
        _acquire(database, "ben@host:2")
    since = f"{row.acquired_at:%Y-%m-%d %H:%M:%S} UTC"
    assert caught.value.message == f"goals/s2021 is being worked on by anna@host:1 since {since}"
    leases.check(database, lease)


def test_i9_runners_at_once_get_one_lease(ledger_url: str) -> None:
    """I9, C56: of runners that start together one works; the others are told of it, none waits."""

    def attempt(number: int) -> bool:
        with Database(ledger_url) as own:
            try:
                _acquire(own, f"runner {number}")
            except LeaseHeldError:
                return False
            return True

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(attempt, range(8))).count(True) == 1


def test_i9_every_lease_has_a_higher_fence(database: Database) -> None:
    """I9: given back, run out or taken from the dead: the next fence is higher, and the old lease is lost."""
    held = [_acquire(database, "anna")]
    leases.give_back(database, held[-1])
    held.append(_acquire(database, "ben"))
    _expire(database)
    held.append(_acquire(database, "cleo"))
    held.append(_acquire(database, "dora", dead="cleo"))
    assert [lease.fence for lease in held] == [1, 2, 3, 4]
    told = [(one.event, one.fence, one.who, one.detail) for one in journal.entries(database, 1)]
    assert told == [  # what was given back was not taken over
        ("taken over", 3, "cleo", {"from": "ben", "why": "its lease ran out", "by": "cleo"}),
        ("taken over", 4, "dora", {"from": "cleo", "why": "its process has ended", "by": "dora"}),
    ]
    for lease in held[:-1]:
        with pytest.raises(LeaseLostError, match="taken this season over"):
            leases.check(database, lease)
    leases.check(database, held[-1])


def test_only_the_named_dead_is_taken_over(database: Database) -> None:
    _acquire(database, "anna")
    with pytest.raises(LeaseHeldError):
        _acquire(database, "ben", dead="cleo")


def test_giving_back_an_old_lease_does_not_end_the_new_one(database: Database) -> None:
    old = _acquire(database, "anna")
    new = _acquire(database, "ben", dead="anna")
    leases.give_back(database, old)
    row = leases.find(database, 1)
    assert row is not None and row.alive and row.fence == new.fence


def test_a_lease_that_was_given_back_is_not_renewed(database: Database, ledger_url: str) -> None:
    """A heartbeat that outlives the hand-over of its lease is told of its loss, and the next runner gets it at once."""
    lease = _acquire(database, "anna", SHORT)
    with Heartbeat(ledger_url, lease, SHORT) as heartbeat:
        leases.give_back(database, lease)
        assert heartbeat.lost.wait(30)
    row = leases.find(database, 1)
    assert row is not None and not row.alive
    assert _acquire(database, "ben").fence == lease.fence + 1
    assert [entry.event for entry in journal.entries(database, 1)] == []  # nothing was taken over


def test_unknown_season_has_no_lease(database: Database) -> None:
    assert leases.find(database, 1) is None


def test_i9_a_take_over_waits_for_a_transaction_that_checked_its_lease(database: Database, ledger_url: str) -> None:
    """I9: what was checked inside a transaction holds until it ends; the heartbeat renews meanwhile, undisturbed."""
    lease = _acquire(database, "anna")
    with (
        ThreadPoolExecutor(1) as pool,
        Database(ledger_url) as working,
        Database(ledger_url) as other,
        Database(ledger_url) as beating,
    ):
        with working.transaction():
            leases.check(working, lease)
            beating.run(b"set lock_timeout = '5s'")
            assert beating.row("leases.renew", {**lease.params, "length": HOUR}) is not None
            taking = pool.submit(_acquire, other, "ben", HOUR, "anna")
            await_that(lambda: waits_for_lock(database, "transactionid") or waits_for_lock(database, "tuple"))
            assert not taking.done()
            leases.check(working, lease)
        assert taking.result(30).fence == lease.fence + 1


@pytest.mark.parametrize("given_back", [False, True])
def test_i9_a_lease_that_ends_while_it_is_asked_for_is_not_taken_from_under_a_transaction(
    database: Database, ledger_url: str, monkeypatch: pytest.MonkeyPatch, given_back: bool
) -> None:
    """I9: alive when it was to be locked, it is not taken over in the same breath: the next one to ask waits."""
    lease = _acquire(database, "anna")
    with ThreadPoolExecutor(1) as pool, Database(ledger_url) as working, Database(ledger_url) as other:
        with working.transaction():
            leases.check(working, lease)
            with monkeypatch.context() as patch, pytest.raises(LeaseHeldError):
                real = other.row

                def ending(name: str, params: Any = None) -> Any:
                    found = real(name, params)
                    if name == "leases.lock_free" and given_back:
                        leases.give_back(database, lease)
                    elif name == "leases.lock_free":
                        _expire(database)
                    return found

                patch.setattr(other, "row", ending)
                _acquire(other, "ben")
            taking = pool.submit(_acquire, other, "ben")
            await_that(lambda: waits_for_lock(database, "transactionid") or waits_for_lock(database, "tuple"))
            leases.check(working, lease)
        assert taking.result(30).fence == lease.fence + 1


def test_asking_for_a_held_lease_does_not_wait_for_its_holder(database: Database, ledger_url: str) -> None:
    lease = _acquire(database, "anna")
    with Database(ledger_url) as other, database.transaction():
        leases.check(database, lease)
        other.run(b"set lock_timeout = '5s'")
        with pytest.raises(LeaseHeldError):
            _acquire(other, "ben")


def test_heartbeat_keeps_the_lease_alive(database: Database, ledger_url: str) -> None:
    """The lease outlives its length several times over, and runs out once the heartbeat has stopped."""
    lease = _acquire(database, "anna", SHORT)
    first = leases.find(database, 1)
    assert first is not None
    with Heartbeat(ledger_url, lease, SHORT) as heartbeat:
        await_that(lambda: database.now() > first.expires_at + 2 * SHORT)
        row = leases.find(database, 1)
        assert row is not None and row.alive and not heartbeat.lost.is_set()
    await_that(lambda: not getattr(leases.find(database, 1), "alive", True))


def test_heartbeat_notices_a_take_over(database: Database, ledger_url: str) -> None:
    lease = _acquire(database, "anna", SHORT)
    with Heartbeat(ledger_url, lease, SHORT) as heartbeat:
        _acquire(database, "ben", dead="anna")
        assert heartbeat.lost.wait(30)


def test_heartbeat_reports_loss_when_it_cannot_renew(database: Database, ledger_url: str) -> None:
    """A connection that is made but whose renewals never come through is a loss too, after the lease's length."""
    lease = _acquire(database, "anna", SHORT)
    with Database(ledger_url) as other, Heartbeat(ledger_url, lease, SHORT) as heartbeat, other.transaction():
        other.run(b"select 1 from finale.lease for update")
        assert heartbeat.lost.wait(30)


def test_heartbeat_outlives_a_broken_connection(database: Database, ledger_url: str) -> None:
    """One connection that breaks is made anew; the lease is not lost."""
    length = timedelta(seconds=3)
    lease = _acquire(database, "anna", length)

    def beating() -> list[int]:
        statement = (
            b"select pid from pg_stat_activity where datname = current_database()"
            b" and query like '%update finale.lease%' and pid <> pg_backend_pid()"
        )
        return [row["pid"] for row in database.run(statement)]

    with Heartbeat(ledger_url, lease, length) as heartbeat:
        await_that(beating)
        [pid] = beating()
        database.run(b"select pg_terminate_backend(%(pid)s)", {"pid": pid})
        await_that(lambda: beating() and beating() != [pid])
        assert not heartbeat.lost.is_set()


def test_heartbeat_stops_at_once(database: Database, ledger_url: str) -> None:
    """Leaving the block does not wait for the next beat of a long lease."""
    lease = _acquire(database, "anna")
    with ThreadPoolExecutor(1) as pool:

        def beat() -> None:
            with Heartbeat(ledger_url, lease, HOUR):
                pass

        pool.submit(beat).result(30)
