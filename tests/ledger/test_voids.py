"""Voids: the match counts no more, totals are as if it had never been; after the freeze only corrections read it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from leaderboard.errors import InputError, UnknownNameError
from leaderboard.marks import Mark
from ledger import counting, journal, pending, voids
from ledger.database import Database
from ledger.freeze import freeze
from ledger.voids import Voided
from tests.ledger.support import (
    HOUR,
    NOON,
    await_that,
    board,
    closing,
    count,
    only_batches,
    paused,
    result,
    season_of,
    take,
    totals,
    waits_for_lock,
)

MINUTE = timedelta(minutes=1)


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with Database(ledger_url) as opened:
        yield opened


def _void(database: Database, match: str, player: str | None = None, *, dry_run: bool = False) -> Voided:
    whom = player.encode() if player else None
    return voids.void(database, "goals", match, player=whom, who="op", because="cheats", dry_run=dry_run)


def test_a_void_leaves_what_there_was_without_the_match(database: Database) -> None:
    """Points, reached_at and matches go back; every board of the source is told, and the journal has who and why."""
    boards = [board("daily", source="goals", calendar={"every": "day"}), board("yearly", source="goals")]
    take(database, result("m1", points=5), result("m2", points=3, at=NOON + MINUTE), boards=boards)
    take(database, result("m2", "bob", 7, NOON + MINUTE), result("m3", points=1, at=NOON + 2 * MINUTE), boards=boards)
    found = _void(database, "m2")
    assert found.results == 2 and found.before is None
    assert [(one.board, one.season, one.players, one.frozen) for one in found.seasons] == [
        ("daily", "s20210601", 2, False),
        ("yearly", "s2021", 2, False),
    ]
    for name, season in (("daily", "s20210601"), ("yearly", "s2021")):
        assert totals(database, season_of(database, name, season)) == {b"ann": (6, NOON + 2 * MINUTE, 2)}
        entry = journal.entries(database, season_of(database, name, season).key)[-1]
        assert (entry.event, entry.who) == ("voided", "op")
        assert entry.detail == {
            "match": "m2",
            "player": None,
            "players": 2,
            "after_freeze": False,
            "because": "cheats",
        }


def test_voiding_one_player_leaves_the_others(database: Database) -> None:
    take(database, result("m1", "ann", 5), result("m1", "bob", 7))
    assert _void(database, "m1", "bob").results == 1
    assert totals(database, season_of(database)) == {b"ann": (5, NOON, 1)}
    assert _void(database, "m1").results == 1
    assert totals(database, season_of(database)) == {}


def test_voiding_twice_is_harmless_and_says_who_was_first(database: Database) -> None:
    take(database, result("m1", points=5), result("m2", points=1))
    _void(database, "m1")
    before = database.run(b"select * from finale.player_total")
    again = _void(database, "m1")
    assert (again.results, again.seasons) == (0, ()) and again.before is not None
    assert (again.before["who"], again.before["because"]) == ("op", "cheats")
    assert database.run(b"select * from finale.player_total") == before
    assert count(database, "void") == 1


def test_what_the_ledger_does_not_have_cannot_be_voided(database: Database) -> None:
    """An unknown source, match or player is told, and leaves no void that would refuse a result later."""
    with pytest.raises(UnknownNameError, match="no result of a source"):
        _void(database, "m1")
    take(database, result("m1"))
    with pytest.raises(UnknownNameError, match="no result of a match 'm2'"):
        _void(database, "m2")
    with pytest.raises(UnknownNameError, match="of player 'bob'"):
        _void(database, "m1", "bob")
    assert count(database, "void") == 0
    assert take(database, result("m1", "bob")).new == 1


def test_later_results_of_a_voided_match_are_refused(database: Database) -> None:
    """Of a match that is void, nothing that comes later counts; what the ledger had already is a repeat."""
    take(database, result("m1", "ann", 5), result("m2", "ann", 1), result("m2", "bob", 1))
    _void(database, "m1")
    _void(database, "m2", "bob")
    found = take(database, result("m1", "bob", 7, line=2), result("m1", "ann", 5, line=3), result("m2", "cat", line=4))
    assert (found.new, found.repeated, found.refused) == (1, 1, 1)
    assert found.remarks[0].line == 2
    assert "the match was voided by op on" in found.remarks[0].reason and "cheats" in found.remarks[0].reason
    assert {player: total[0] for player, total in totals(database, season_of(database)).items()} == {
        b"ann": 1,
        b"cat": 1,
    }


def test_a_dry_run_tells_and_changes_nothing(database: Database) -> None:
    take(database, result("m1", points=5))
    before = [database.run(f"select * from finale.{name}".encode()) for name in ("player_total", "pending", "journal")]
    told = _void(database, "m1", dry_run=True)
    assert (told.results, told.seasons[0].players) == (1, 1)
    after = [database.run(f"select * from finale.{name}".encode()) for name in ("player_total", "pending", "journal")]
    assert after == before and count(database, "void") == 0
    assert _void(database, "m1") == told


def test_after_the_freeze_a_void_is_only_recorded(database: Database) -> None:
    """I4, I6: totals and what is pending stay; the void is there for corrections; a season still open is recounted."""
    daily = board("daily", source="goals", calendar={"every": "day"})
    yearly = board("yearly", source="goals")
    season, lease = closing(database, yearly)
    take(database, result("m1", points=5), result("m2", points=3), boards=[daily, yearly])
    freeze(database, lease, season)
    take(database, result("m3", points=9), boards=[daily, yearly])
    pending_before = pending.read(database, pending.claim(database, season.key, "one", HOUR, every=True), 10)
    found = _void(database, "m1")
    assert [(one.board, one.frozen) for one in found.seasons] == [("daily", False), ("yearly", True)]
    assert totals(database, season) == {b"ann": (8, NOON, 2)}
    assert totals(database, season_of(database, "daily", "s20210601")) == {b"ann": (12, NOON, 2)}
    assert pending.read(database, pending.claim(database, season.key, "one", HOUR, every=True), 10) == pending_before
    [late] = voids.after_freeze(database, season.key)
    assert (late.match_id, late.player_id, late.points, late.played_at) == ("m1", b"ann", 5, NOON)
    assert (late.who, late.because) == ("op", "cheats")
    assert voids.after_freeze(database, season_of(database, "daily", "s20210601").key) == []


def test_a_void_of_what_came_late_moves_nothing(database: Database) -> None:
    """A late result never counted in the season, so its void gives corrections nothing to undo there."""
    season, lease = closing(database)
    take(database, result("m1", points=5))
    freeze(database, lease, season)
    take(database, result("m2", points=3))
    found = _void(database, "m2")
    assert (found.results, found.seasons) == (1, ())
    assert voids.after_freeze(database, season.key) == []


def test_a_late_void_stays_out_of_later_recounts(database: Database) -> None:
    """A reopened season counts on as it was frozen: what was voided after that is for corrections, not for recounts."""
    season, lease = closing(database)
    take(database, result("m1", points=5), result("m2", points=3))
    freeze(database, lease, season)
    _void(database, "m1")
    database.run(b"update finale.season set frozen_at = null")
    take(database, result("m0", points=1, at=NOON - MINUTE))
    assert totals(database, season) == {b"ann": (9, NOON, 3)}


def test_the_last_match_voided_removes_the_player_for_good(database: Database) -> None:
    """The player is pending without points, also when all is written anew; playing again brings him back."""
    take(database, result("m1", "ann", 5), result("m2", "bob", 1))
    key = season_of(database).key
    _written(database, key)
    _void(database, "m1")
    assert totals(database, key) == {b"bob": (1, NOON, 1)}
    assert _written(database, key) == {b"ann": None}
    pending.again(database, key, range(pending.BUCKETS))
    assert _written(database, key) == {b"ann": None, b"bob": 1}
    take(database, result("m3", "ann", 2))
    assert _written(database, key) == {b"ann": 2}
    pending.again(database, key, range(pending.BUCKETS))
    assert _written(database, key) == {b"ann": 2, b"bob": 1}


def test_a_total_that_begins_anew_is_not_taken_off_by_an_older_write(database: Database) -> None:
    """An applier has read the first total; meanwhile it is removed and made anew: what he read is not what stands."""
    take(database, result("m1", "ann", 5))
    key = season_of(database).key
    [lease] = pending.claim(database, key, "applier", HOUR)
    read = pending.read(database, [lease], 10)
    _void(database, "m1")
    take(database, result("m2", "ann", 2))
    pending.record(database, [lease], {(lease.bucket, 0): Mark(1, "t")}, read.entries, HOUR)
    assert [total.points for total in pending.read(database, [lease], 10).totals] == [2]


def _written(database: Database, key: int) -> dict[bytes, int | None]:
    """Take everything off the list as an applier would; return it."""
    written: dict[bytes, int | None] = {}
    for lease in pending.claim(database, key, "applier", HOUR):
        found = pending.read(database, [lease], 100)
        written.update({total.player_id: total.points for total in found.totals})
        pending.record(database, [lease], {(lease.bucket, 0): Mark(1, "t")}, found.entries, HOUR)
    return written


def test_a_void_that_no_score_could_hold_changes_nothing(database: Database) -> None:
    """Packed boards hold no negative totals: the match that makes up for a loss cannot go before the loss."""
    tight = board(ties={"by": "first_to_reach", "unit": "minute"})
    take(database, result("m1", points=5), result("m2", points=-3, at=NOON + MINUTE), boards=[tight])
    before = database.run(b"select * from finale.player_total")
    with pytest.raises(InputError, match="would have -3 points") as caught:
        _void(database, "m1")
    assert "can hold 0 to" in caught.value.detail
    assert database.run(b"select * from finale.player_total") == before
    assert count(database, "void") == 0
    assert database.run(b"select voided from finale.match_result where voided") == []
    _void(database, "m2")
    _void(database, "m1")
    assert totals(database, season_of(database)) == {}


def test_a_board_that_comes_later_does_not_count_what_is_void(database: Database) -> None:
    """The history that a new board counts leaves voided matches out."""
    take(database, result("m1", points=5), result("m2", points=3))
    _void(database, "m1")
    late_comer = board("another", source="goals")
    take(database, result("m3", points=1, at=NOON + MINUTE), boards=[board(), late_comer])
    assert totals(database, season_of(database, "another")) == {b"ann": (4, NOON + MINUTE, 2)}


def test_i6_a_void_waits_for_whoever_is_recording(
    database: Database, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I6: a result of the match that is being recorded when it is voided is voided too: none slips between."""
    take(database, result("m1", "ann", 5))
    only_batches(monkeypatch)
    with (
        ThreadPoolExecutor(2) as pool,
        Database(ledger_url) as writer,
        Database(ledger_url) as voider,
        paused(monkeypatch, counting, "count") as point,
    ):
        writing = pool.submit(take, writer, result("m1", "bob", 7))
        assert point.reached.wait(30)
        voiding = pool.submit(_void, voider, "m1")
        await_that(lambda: waits_for_lock(database))
        point.go.set()
        assert writing.result(30).new == 1
        assert voiding.result(30).results == 2
    assert totals(database, season_of(database)) == {}


def test_i9_voids_need_no_lease(database: Database) -> None:
    """Whoever works on the season does not keep a void out before the freeze."""
    season, _ = closing(database)
    take(database, result("m1", points=5))
    assert _void(database, "m1").results == 1
    assert totals(database, season) == {}
