"""Season rows: made once from the calendar, moved under the fence, held and released."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from leaderboard.errors import ConfigError, LeaseLostError, UnknownNameError, WrongStateError
from leaderboard.season import Bounds, Season
from leaderboard.states import State
from ledger import journal, levers, seals, seasons
from ledger.database import Database
from ledger.freeze import freeze
from tests.ledger.support import (
    NOON,
    YEAR,
    board,
    closing,
    count,
    leased,
    result,
    season_of,
    take,
    taken_over,
    totals,
)

DAY = timedelta(days=1)


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with Database(ledger_url) as opened:
        yield opened


def _current(database: Database, before: timedelta = DAY, after: timedelta = DAY, **fields: Any) -> Season:
    """Return an open season from ``before`` now to ``after`` now."""
    now = database.now()
    bounds = Bounds(now - before, now + after, "current")
    listed = {"seasons": [{"id": "current", "starts_at": bounds.starts_at, "ends_at": bounds.ends_at}]}
    seasons.create(database, board(calendar=listed, **fields), bounds, now, who="test", state=State.OPEN)
    return season_of(database, season="current")


def test_a_season_is_made_once(database: Database) -> None:
    now = database.now()
    assert seasons.create(database, board(), YEAR, now, who="test")
    assert not seasons.create(database, board(aggregate="best"), YEAR, now, who="test")
    season = season_of(database)
    assert (season.state, season.bounds, season.live_key) == (State.SCHEDULED, YEAR, "leaderboard:goals:s2021")
    assert season.board == board() and season.closes_at == YEAR.ends_at + timedelta(minutes=15)
    assert [entry.event for entry in journal.entries(database, season.key)] == ["created"]


def test_runners_at_once_make_a_season_once(database: Database, ledger_url: str) -> None:
    def make(_: int) -> bool:
        with Database(ledger_url) as own:
            return seasons.create(own, board(), YEAR, own.now(), who="test", state=State.OPEN)

    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(make, range(6)))
    assert made.count(True) == 1
    assert count(database, "season") == 1


def test_i7_a_season_past_its_grace_is_a_backfill(database: Database) -> None:
    """I7: PostgreSQL's clock tells whether a season was first seen after its grace."""
    take(database, result("m1"), result("m2", at=database.now()))
    assert {season.id: season.backfill for season in seasons.of_board(database, "goals")} == {
        "s2021": True,
        f"s{database.now().year}": False,
    }


def test_a_season_in_its_grace_is_no_backfill(database: Database) -> None:
    now = database.now()
    bounds = Bounds(now - DAY, now - timedelta(minutes=5), "ended")
    seasons.create(database, board(), bounds, now, who="test")
    assert not season_of(database, season="ended").backfill


def test_overlapping_seasons_are_refused_naming_both(database: Database) -> None:
    seasons.create(database, board(), YEAR, database.now(), who="test")
    for starts_at, ends_at in [
        (NOON, NOON + DAY),
        (YEAR.starts_at - DAY, YEAR.starts_at + DAY),
        (NOON, YEAR.ends_at + DAY),
    ]:
        with pytest.raises(ConfigError, match=r"season extra .* overlaps season s2021 .*2021-01-01"):
            seasons.create(database, board(), Bounds(starts_at, ends_at, "extra"), database.now(), who="test")
    assert seasons.create(
        database, board(), Bounds(YEAR.ends_at, YEAR.ends_at + DAY, "next"), database.now(), who="test"
    )
    assert seasons.create(database, board("other"), Bounds(NOON, NOON + DAY, "extra"), database.now(), who="test")


def test_i7_stored_bounds_win_over_a_changed_calendar(database: Database) -> None:
    """C61, I7: results go by the bounds as they were stored, whatever the calendar or the zone data say now."""
    take(database, result("m1", at=datetime(2021, 12, 31, 23, 30, tzinfo=UTC)))
    berlin = board(calendar={"every": "year", "timezone": "Europe/Berlin"})
    found = take(database, result("m2", at=datetime(2021, 12, 31, 23, 45, tzinfo=UTC)), boards=[berlin])
    assert found.new == 1
    assert season_of(database).bounds == YEAR
    assert totals(database, season_of(database))[b"ann"][2] == 2
    with pytest.raises(ConfigError, match=r"s2022 .* overlaps season s2021"):
        take(database, result("m3", at=datetime(2022, 1, 5, tzinfo=UTC)), boards=[berlin])


def test_unknown_season_lists_what_there_is(database: Database) -> None:
    with pytest.raises(UnknownNameError, match="it has none yet"):
        season_of(database)
    seasons.create(database, board(), YEAR, database.now(), who="test")
    with pytest.raises(UnknownNameError, match=r"no season 's2022'. it has s2021. see: finale calendar goals"):
        season_of(database, season="s2022")


def test_c55_seasons_are_listed_from_what_is_stored(database: Database) -> None:
    """C55: whoever asks what is due gets every season, also the ones that ended while nobody ran."""
    daily = board("daily", calendar={"every": "day"})
    take(database, *(result(f"m{n}", at=NOON + n * DAY) for n in range(3)), boards=[daily], source="daily")
    take(database, result("m1"))
    assert [season.name for season in seasons.every(database, {})] == [
        "daily/s20210601",
        "daily/s20210602",
        "daily/s20210603",
        "goals/s2021",
    ]


def test_i9_an_old_fence_changes_nothing(database: Database) -> None:
    """I9: advance, hold, freeze, results of steps: each carries the fence, and matches no row with an old one."""
    season, old = closing(database)
    taken_over(database, old)
    before = database.run(b"select * from finale.season")
    with pytest.raises(LeaseLostError):
        seasons.advance(database, old, State.CLOSING, State.FROZEN)
    with pytest.raises(LeaseLostError):
        seasons.hold(database, old, "reason", "", "")
    with pytest.raises(LeaseLostError):
        freeze(database, old, season)
    with pytest.raises(LeaseLostError):
        journal.put_result(database, season.key, "freeze", {}, old.fence)
    with pytest.raises(LeaseLostError):
        seasons.failed(database, old, "error")
    assert database.run(b"select * from finale.season") == before
    assert journal.results(database, season.key) == {}


def test_advance_from_another_state_is_a_lost_lease(database: Database) -> None:
    _, lease = closing(database)
    with pytest.raises(LeaseLostError):
        seasons.advance(database, lease, State.FROZEN, State.SNAPSHOTTED)


def test_transitions_that_are_not_in_the_table_are_refused(database: Database) -> None:
    _, lease = closing(database)
    with pytest.raises(WrongStateError, match="no season goes from closing to sealed"):
        seasons.advance(database, lease, State.CLOSING, State.SEALED)


def test_advance_keeps_what_it_is_given_and_clears_the_attempts(database: Database) -> None:
    season, lease = closing(database)
    seasons.failed(database, lease, "no answer")
    assert (season_of(database).attempts, season_of(database).last_error) == (1, "no answer")
    seasons.advance(
        database,
        lease,
        State.CLOSING,
        State.FROZEN,
        definition=board(keep_live="1d"),
        sealed_at=NOON,
        keep_until=NOON + DAY,
    )
    moved = season_of(database)
    assert (moved.state, moved.attempts, moved.last_error) == (State.FROZEN, 0, None)
    assert (moved.sealed_at, moved.keep_until, moved.board.keep_live) == (NOON, NOON + DAY, DAY)
    assert moved.key == season.key


def test_the_result_of_a_step_replaces_that_of_its_earlier_attempt(database: Database) -> None:
    season, lease = closing(database)
    journal.put_result(database, season.key, "freeze", {"applied": 1}, lease.fence)
    journal.put_result(database, season.key, "freeze", {"applied": 2}, lease.fence)
    assert journal.results(database, season.key) == {"freeze": {"applied": 2}}


def test_hold_and_release(database: Database) -> None:
    """A hold keeps the time of the first reason; a release lets the season go on where it stood."""
    season, lease = closing(database)
    seasons.hold(database, lease, "3 players differ", "ann, bob, cat", "look at them")
    held = season_of(database)
    assert held.hold is not None
    assert (held.hold.reason, held.hold.detail, held.hold.hint) == ("3 players differ", "ann, bob, cat", "look at them")
    seasons.hold(database, lease, "4 players differ", "", "")
    again = season_of(database)
    assert again.hold is not None and again.hold.since == held.hold.since and again.attempts == 2
    with pytest.raises(WrongStateError, match=r"on hold already since .* UTC.*: 4 players differ"):
        seasons.hold_by_hand(database, again, who="eve", because="why not")
    seasons.release(database, again, who="eve", because="looked", snapshot_again=False)
    assert season_of(database).hold is None and season_of(database).state is State.CLOSING
    with pytest.raises(WrongStateError, match="not on hold"):
        seasons.release(database, season, who="eve", because="again", snapshot_again=False)
    assert [(one.event, one.who) for one in journal.entries(database, season.key)][-1] == ("released", "eve")


def test_release_with_a_new_snapshot_goes_back_to_frozen(database: Database) -> None:
    season, lease = closing(database)
    for before, after in [(State.CLOSING, State.FROZEN), (State.FROZEN, State.SNAPSHOTTED)]:
        seasons.advance(database, lease, before, after)
    seasons.hold_by_hand(database, season, who="eve", because="a doubt")
    seasons.release(database, season, who="eve", because="take it again", lease=lease, snapshot_again=True)
    assert season_of(database).state is State.FROZEN
    assert journal.entries(database, season.key)[-1].detail == {"because": "take it again", "snapshot_again": True}


def test_i4_no_snapshot_is_taken_again_under_a_lost_lease_or_a_committed_seal(database: Database) -> None:
    """I4, I9: both are refused in the transaction that would release the season, whose hold so stays."""
    season, lost = closing(database)
    for before, after in [(State.CLOSING, State.FROZEN), (State.FROZEN, State.SNAPSHOTTED)]:
        seasons.advance(database, lost, before, after)
    seasons.hold_by_hand(database, season, who="eve", because="a doubt")
    lease = taken_over(database, lost)
    with pytest.raises(LeaseLostError):
        seasons.release(database, season, who="eve", because="", lease=lost, snapshot_again=True)
    seals.commit(database, lease, "goals", "standings", lambda *_: b"a seal")
    with pytest.raises(WrongStateError, match="its seal is committed"):
        seasons.release(database, season, who="eve", because="", lease=lease, snapshot_again=True)
    assert season_of(database).hold is not None and season_of(database).state is State.SNAPSHOTTED


def test_a_season_closed_early_ends_after_its_last_result(database: Database) -> None:
    """I6: no result that has counted falls out of the season; what is played later is kept as late."""
    season = _current(database)
    listed = [season.board]
    now = database.now()
    ahead = now + timedelta(minutes=2)
    take(database, result("m1", at=ahead), boards=listed)
    ended = levers.cut_short(database, season, now, who="eve")
    assert ended == ahead + timedelta(microseconds=1)
    short = season_of(database, season="current")
    assert (short.bounds.ends_at, short.closes_at) == (ended, ended)
    assert take(database, result("m2", at=ended), boards=listed).late == 1
    assert take(database, result("m3", at=ahead), boards=listed).new == 1
    [entry] = [one for one in journal.entries(database, season.key) if one.event == "closed early"]
    assert (entry.who, entry.detail["ends_at"]) == ("eve", ended.isoformat())


def test_closing_early_in_the_grace_ends_the_grace(database: Database) -> None:
    season = _current(database, after=-timedelta(minutes=5), grace="1h")
    now = database.now()
    assert levers.cut_short(database, season, now, who="eve") == season.bounds.ends_at
    assert season_of(database, season="current").closes_at == now


def test_what_has_not_begun_or_is_frozen_is_not_closed_early(database: Database) -> None:
    now = database.now()
    seasons.create(database, board(), Bounds(now + DAY, now + 2 * DAY, "later"), now, who="test")
    with pytest.raises(WrongStateError, match="has not begun"):
        levers.cut_short(database, season_of(database, season="later"), now, who="eve")
    season, lease = closing(database, board("other"), YEAR)
    freeze(database, lease, season)
    with pytest.raises(WrongStateError):
        levers.cut_short(database, season, now, who="eve")


def test_retention_can_be_cut_short_once_it_runs(database: Database) -> None:
    season, lease = closing(database)
    levers.forget_retention(database, season, who="eve")
    assert season_of(database).keep_until is None
    later = database.now() + DAY
    seasons.advance(database, lease, State.CLOSING, State.FROZEN, keep_until=later)
    levers.forget_retention(database, season, who="eve")
    kept = season_of(database).keep_until
    assert kept is not None and kept <= database.now()


def test_cancelled_seasons_take_no_results(database: Database) -> None:
    seasons.create(database, board(), YEAR, database.now(), who="test")
    lease = leased(database, season_of(database))
    seasons.advance(database, lease, State.SCHEDULED, State.CANCELLED)
    assert take(database, result("m1")).refused == 1


def test_a_season_as_json_is_plain(database: Database) -> None:
    season, lease = closing(database)
    seasons.hold(database, lease, "reason", "detail", "hint")
    shown = seasons.as_json(season_of(database))
    assert shown["starts_at"] == "2021-01-01T00:00:00Z" and shown["state"] == "closing"
    assert shown["hold"]["reason"] == "reason" and shown["hold"]["since"].endswith("Z")
    assert seasons.as_json(season)["hold"] is None
