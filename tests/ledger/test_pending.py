"""Pending totals and the leases on buckets: what changes while it is written stays on the list."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256

import pytest

from leaderboard.errors import LeaseLostError
from leaderboard.marks import Mark
from ledger import pending
from ledger.database import Database
from ledger.pending import BUCKETS, BucketLease, Waiting
from tests.ledger.support import HOUR, NOON, leased, result, season_of, take, taken_over

KEY = 1
NOTHING = Waiting([], [])
MARKS = {(bucket, 0): Mark(1, "t1") for bucket in range(pending.BUCKETS)}


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with Database(ledger_url) as opened:
        take(opened, result("m1", "ann", 5), result("m1", "bob", 6))
        assert season_of(opened).key == KEY
        yield opened


def _bucket(database: Database, player: bytes) -> int:
    row = database.run(b"select finale.bucket_of(%(player)s) as bucket", {"player": player})[0]
    return int(row["bucket"])


def _read(database: Database, lease: BucketLease, limit: int = 10) -> Waiting:
    return pending.read(database, [lease], limit)


def _claim(
    database: Database, player: bytes, holder: str = "one", *, every: bool = False, force: bool = False
) -> BucketLease | None:
    bucket = _bucket(database, player)
    return next(
        (one for one in pending.claim(database, KEY, holder, HOUR, every=every, force=force) if one.bucket == bucket),
        None,
    )


def test_bucket_of_a_player_is_the_low_bits_of_its_sha256(database: Database) -> None:
    """Stable across versions of PostgreSQL: anyone can work it out."""
    for player in (b"ann", b"\xff\x00", "Bób".encode()):
        assert _bucket(database, player) == sha256(player).digest()[0] % BUCKETS


def test_new_totals_are_pending_and_read_as_they_are_now(database: Database) -> None:
    assert pending.count(database, KEY) == 2 and pending.seasons(database) == [KEY]
    lease = _claim(database, b"ann")
    assert lease is not None and lease.fence == 1 and pending.marks(database, KEY) == {}
    [total] = _read(database, lease).totals
    assert (total.player_id, total.points, total.reached_at) == (b"ann", 5, NOON)


def test_what_was_written_is_taken_off(database: Database) -> None:
    lease = _claim(database, b"ann")
    assert lease is not None
    pending.record(database, [lease], {(lease.bucket, 0): Mark(6, "t6"), (lease.bucket, 2): Mark(1, "u1")}, [], HOUR)
    pending.record(database, [lease], {(lease.bucket, 0): Mark(7, "t7")}, _read(database, lease).entries, HOUR)
    assert pending.marks(database, KEY) == {(lease.bucket, 0): Mark(7, "t7"), (lease.bucket, 2): Mark(1, "u1")}
    assert _read(database, lease) == NOTHING
    pending.release(database, [lease])
    again = _claim(database, b"ann", "two", every=True)
    assert again is not None and again.fence == 2


def test_a_total_that_changes_between_read_and_record_stays_pending(database: Database) -> None:
    """The change has an entry of its own, which was not read: the newer total is written next."""
    lease = _claim(database, b"ann")
    assert lease is not None
    found = _read(database, lease)
    take(database, result("m2", "ann", 1))
    pending.record(database, [lease], MARKS, found.entries, HOUR)
    [total] = _read(database, lease).totals
    assert total.points == 6


def test_a_total_that_is_changing_is_neither_waited_for_nor_taken_off(database: Database, ledger_url: str) -> None:
    """An applier never waits for an import, of whose transaction it sees neither the total nor the entry."""
    lease = _claim(database, b"ann")
    assert lease is not None
    with Database(ledger_url) as other, other.transaction():
        take(other, result("m2", "ann", 1))
        database.run(b"set lock_timeout = '5s'")
        found = _read(database, lease)
        pending.record(database, [lease], MARKS, found.entries, HOUR)
        assert [total.points for total in found.totals] == [5] and _read(database, lease) == NOTHING
    assert [total.points for total in _read(database, lease).totals] == [6]


def test_a_player_is_written_once_however_often_she_is_listed(database: Database) -> None:
    """Each result of a player adds an entry; a round reads her total once and takes all of them off."""
    for number in range(2, 30):
        take(database, result(f"m{number}", "ann", 1))
    lease = _claim(database, b"ann")
    assert lease is not None and pending.count(database, KEY) == 2
    found = _read(database, lease, 100)
    assert [total.points for total in found.totals] == [33] and len(found.entries) == found.size == 29
    pending.record(database, [lease], MARKS, found.entries, HOUR)
    assert _read(database, lease) == NOTHING


def test_a_player_without_matches_is_to_be_removed(database: Database) -> None:
    database.run(b"delete from finale.player_total where player_id = 'ann'")
    lease = _claim(database, b"ann")
    assert lease is not None
    [total] = _read(database, lease).totals
    assert (total.player_id, total.points, total.reached_at) == (b"ann", None, None)


def test_i9_a_bucket_has_one_holder(database: Database) -> None:
    """I9: while one applier holds a bucket the other gets none of it, unless it takes it by force."""
    lease = _claim(database, b"ann")
    assert lease is not None
    assert _claim(database, b"ann", "two") is None
    taken = _claim(database, b"ann", "two", force=True)
    assert taken is not None and taken.fence == lease.fence + 1
    assert pending.record(database, [lease], MARKS, _read(database, lease).entries, HOUR) == set()
    assert _read(database, taken) != NOTHING and pending.marks(database, KEY) == {}
    assert pending.count(database, KEY) == 2
    pending.release(database, [lease])
    assert _claim(database, b"ann", "three") is None, "an old holder cannot give back what another one has"


def test_i9_what_is_held_is_renewed_and_what_was_lost_is_not_written_down(database: Database) -> None:
    """I9: an applier that lost some of its buckets is told, and records nothing there."""
    held = pending.claim(database, KEY, "one", timedelta(0), every=True)
    pending.renew(database, held, HOUR)
    assert _claim(database, b"ann", "two", every=True) is None
    before = pending.read(database, held, 10)
    lost = {one.bucket for one in pending.claim(database, KEY, "two", HOUR, force=True)}
    with pytest.raises(LeaseLostError, match=r"bucket \d+ of players was taken over"):
        pending.renew(database, held, HOUR)
    assert pending.read(database, held, 10) == NOTHING
    left = set(range(BUCKETS)) - lost
    assert lost and pending.record(database, held, MARKS, before.entries, HOUR) == left
    assert pending.marks(database, KEY).keys() == {(bucket, 0) for bucket in left}
    assert pending.count(database, KEY) == 2


def test_other_buckets_may_be_claimed_though_nothing_of_them_is_pending(database: Database) -> None:
    """``also`` names them; each is claimed once, however often it is named."""
    named = {_bucket(database, b"ann"), 3, 4}
    wanted = named | {_bucket(database, b"bob")}
    assert sorted(one.bucket for one in pending.claim(database, KEY, "one", HOUR, also=[*named, 3])) == sorted(wanted)


def test_a_bucket_whose_lease_ran_out_is_free(database: Database) -> None:
    lease = pending.claim(database, KEY, "one", timedelta(0))[0]
    taken = next(one for one in pending.claim(database, KEY, "two", HOUR) if one.bucket == lease.bucket)
    assert taken.fence == lease.fence + 1


def test_the_freeze_claims_every_bucket(database: Database) -> None:
    _claim(database, b"ann", "two")
    claimed = pending.claim(database, KEY, "one", HOUR, every=True, force=True)
    assert sorted(lease.bucket for lease in claimed) == list(range(BUCKETS))


def test_lost_writes_are_pending_again(database: Database) -> None:
    """Only the buckets named, every player of them once, also beside what is pending already."""
    lease = _claim(database, b"ann")
    assert lease is not None
    pending.record(database, [lease], MARKS, _read(database, lease).entries, HOUR)
    assert pending.count(database, KEY) == 1
    pending.again(database, KEY, [_bucket(database, b"ann")])
    pending.again(database, KEY, range(BUCKETS))
    assert pending.count(database, KEY) == 2
    assert [total.points for total in _read(database, lease).totals] == [5]


def test_reading_is_limited_but_no_entry_is_cut(database: Database) -> None:
    """The oldest entries come first, until they have so many players."""
    bucket = _bucket(database, b"ann")
    players = [player for player in (f"p{n}".encode() for n in range(2_000)) if _bucket_here(player) == bucket][:20]
    for number in range(4):
        take(database, *(result("m3", player) for player in players[number * 5 : number * 5 + 5]))
    lease = _claim(database, b"ann")
    assert lease is not None
    found = _read(database, lease, 7)
    assert {total.player_id for total in found.totals} == {b"ann", *players[:10]} and len(found.entries) == 3
    assert len(_read(database, lease, 100).totals) == 21


def _bucket_here(player: bytes) -> int:
    return sha256(player).digest()[0] % BUCKETS


def test_buckets_of_the_dead_need_not_run_out(database: Database) -> None:
    lease = _claim(database, b"ann")
    assert lease is not None and pending.holders(database, KEY) == ["one"]
    bucket = _bucket(database, b"ann")
    taken = next(one for one in pending.claim(database, KEY, "two", HOUR, dead=["one"]) if one.bucket == bucket)
    assert taken.fence == lease.fence + 1


def test_i9_a_runner_that_lost_its_season_claims_nothing(database: Database) -> None:
    """I9: the freeze takes every bucket under its own lease on the season, or none."""
    lease = leased(database, season_of(database), "one")
    assert len(pending.claim(database, KEY, "one", HOUR, every=True, runner=lease)) == BUCKETS
    taken_over(database, lease)
    assert pending.claim(database, KEY, "one", HOUR, every=True, force=True, runner=lease) == []


def test_lost_writes_are_pending_again_only_where_they_are_still_held(database: Database) -> None:
    """A bucket that another applier took meanwhile is for that one to look after."""
    held = pending.claim(database, KEY, "one", HOUR, every=True)
    for lease in held:
        pending.record(database, [lease], MARKS, _read(database, lease).entries, HOUR)
    assert pending.count(database, KEY) == 0
    assert _claim(database, b"ann", "two", every=True, force=True) is not None
    pending.lost(database, held)
    assert pending.count(database, KEY) == 0
    again = pending.claim(database, KEY, "two", HOUR, every=True)
    pending.lost(database, again)
    assert pending.count(database, KEY) == 2


def test_nothing_of_a_sealed_season_is_written(database: Database) -> None:
    """The live key stays as it was sealed: nothing is claimed, read or made pending any more."""
    lease = _claim(database, b"ann")
    assert lease is not None
    database.run(b"update finale.season set state = 'sealed'")
    assert _read(database, lease) == NOTHING
    assert pending.claim(database, KEY, "two", HOUR, every=True, force=True) == []
    database.run(b"delete from finale.pending")
    pending.again(database, KEY, range(BUCKETS))
    pending.lost(database, [lease])
    assert pending.count(database, KEY) == 0


def test_giving_a_bucket_back_tells_whether_it_was_still_held(database: Database) -> None:
    lease = _claim(database, b"ann")
    assert lease is not None
    assert _claim(database, b"ann", "two", force=True) is not None
    assert not pending.release(database, [lease])
