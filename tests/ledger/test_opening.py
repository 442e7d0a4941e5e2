"""Fixing: what a season counts, and its key, follow the configuration until it opens or has a result."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from leaderboard.errors import ConfigError, LeaseLostError
from leaderboard.states import State
from ledger import counting, pending, seasons
from ledger.database import Database
from tests.ledger.support import (
    NOON,
    YEAR,
    await_that,
    board,
    by_hand,
    count,
    leased,
    only_batches,
    paused,
    result,
    season_of,
    take,
    taken_over,
    totals,
    waits_for_lock,
)


@pytest.fixture
def database(ledger_url: str) -> Iterator[Database]:
    with Database(ledger_url) as opened:
        yield opened


def test_a_board_that_comes_later_counts_what_its_source_has(database: Database) -> None:
    """I6: totals are those of the results, not of the order in which boards and results came."""
    played = [result(f"m{n}", f"p{n % 7}", n, NOON + timedelta(minutes=n % 5), n=n % 2) for n in range(40)]
    take(database, *played[:30], boards=[board("old", source="goals")])
    boards = [board("old", source="goals"), board("new", source="goals", where={"n": 1}, aggregate="best")]
    found = take(database, *played, boards=boards)
    assert (found.new, found.repeated) == (10, 30)
    odd = [one for one in played if one.attributes == {"n": 1}]
    assert totals(database, season_of(database, "old")) == by_hand(played)
    assert totals(database, season_of(database, "new")) == by_hand(odd, "best")
    assert pending.count(database, season_of(database, "new").key) == len(by_hand(odd))


def test_opening_a_scheduled_season_counts_what_is_there(database: Database) -> None:
    """A season that no result has touched since it was made is counted when it opens, and its key fixed."""
    take(database, result("m1", points=5), boards=[board("old", source="goals")])
    new = board("new", source="goals", key="lb:<board>:<season>")
    seasons.create(database, board("new", source="other"), YEAR, database.now(), who="test")
    season = season_of(database, "new", configured=new)
    assert totals(database, season) == {}
    seasons.advance(database, leased(database, season), State.SCHEDULED, State.OPEN, definition=new)
    opened = season_of(database, "new")
    assert (opened.state, opened.live_key, opened.board) == (State.OPEN, "lb:new:s2021", new)
    assert totals(database, opened) == {b"ann": (5, NOON, 1)}


def test_a_scheduled_season_follows_the_configuration_until_its_first_result(database: Database) -> None:
    """The first result fixes aggregate, filter and key; later changes wait for the next season."""
    seasons.create(database, board(), YEAR, database.now(), who="test")
    best = board(aggregate="best", key="lb:<board>:<season>")
    assert season_of(database, configured=best).board.aggregate == "best"
    take(database, result("m1", points=5), boards=[best])
    take(database, result("m2", points=3), boards=[board(aggregate="last", key="other:<board>:<season>")])
    season = season_of(database, configured=board(aggregate="last", grace="1h"))
    assert (season.board.aggregate, season.live_key, season.state) == ("best", "lb:goals:s2021", State.SCHEDULED)
    assert season.board.grace == timedelta(hours=1), "what is not fixed follows the configuration"
    assert totals(database, season) == {b"ann": (5, NOON, 2)}


def test_opening_does_not_replace_what_a_result_has_fixed(database: Database) -> None:
    """The step that opens looked at the season before the result came: the result's word stands."""
    seasons.create(database, board(), YEAR, database.now(), who="test")
    season = season_of(database)
    lease = leased(database, season)
    take(database, result("m1", points=5), boards=[board(aggregate="best")])
    other = board(aggregate="last", key="lb:<board>:<season>")
    seasons.advance(database, lease, State.SCHEDULED, State.OPEN, definition=other, live_key="lb:goals:s2021")
    opened = season_of(database)
    assert (opened.state, opened.board.aggregate) == (State.OPEN, "best")
    assert opened.live_key == "leaderboard:goals:s2021"


def test_i9_opening_with_an_old_fence_fixes_nothing(database: Database) -> None:
    seasons.create(database, board(), YEAR, database.now(), who="test")
    season = season_of(database)
    lease = leased(database, season)
    taken_over(database, lease)
    with pytest.raises(LeaseLostError):
        seasons.advance(database, lease, State.SCHEDULED, State.OPEN, definition=board(aggregate="best"))
    assert count(database, "season where fixed_at is not null") == 0


def test_results_count_for_seasons_of_boards_that_are_configured_elsewhere(database: Database) -> None:
    """A recorder with an older configuration counts for every season of the source that the ledger has."""
    take(database, result("m1", points=1), boards=[board("one", source="goals"), board("two", source="goals")])
    take(database, result("m2", points=2), boards=[board("one", source="goals")])
    assert totals(database, season_of(database, "two")) == {b"ann": (3, NOON, 2)}


def test_no_result_falls_between_recording_and_fixing(
    database: Database, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result that is being recorded while a new board is fixed is counted by it once, neither missed nor doubled."""
    take(database, result("m0", points=1), boards=[board("old", source="goals")])
    only_batches(monkeypatch)
    with (
        ThreadPoolExecutor(2) as pool,
        Database(ledger_url) as one,
        Database(ledger_url) as two,
        paused(monkeypatch, counting, "count") as point,
    ):
        recording = pool.submit(take, one, result("m1", points=2), boards=[board("old", source="goals")])
        assert point.reached.wait(30)
        both = [board("old", source="goals"), board("new", source="goals")]
        adding = pool.submit(take, two, result("m0", points=1), boards=both)
        await_that(lambda: waits_for_lock(database))
        assert not adding.done()
        point.go.set()
        assert recording.result(30).new == 1
        assert adding.result(30).repeated == 1
    assert totals(database, season_of(database, "new")) == {b"ann": (3, NOON, 2)}


def test_a_season_that_cannot_hold_its_history_is_refused(database: Database) -> None:
    """A board whose scores are too small for what its source has already is a mistake to be told, not a loss."""
    take(database, result("m1", points=2**30), boards=[board("old", source="goals")])
    tight = board("new", source="goals", ties={"by": "first_to_reach", "unit": "minute"})
    with pytest.raises(ConfigError, match=r"board new cannot count season s2021: player b'ann' has 1,073,741,824"):
        take(database, result("m2", "bob"), boards=[board("old", source="goals"), tight])
    assert count(database, "match_result") == 1
    assert seasons.of_board(database, "new") == []


def test_board_without_own_ledger_counts_nothing(database: Database) -> None:
    """A board that declares no ledger is fixed like any other, and has no totals here."""
    take(database, result("m1"), boards=[board("old", source="goals")])
    bare = board("bare", source="goals", ledger="none")
    seasons.create(database, bare, YEAR, database.now(), who="test", state=State.OPEN)
    take(database, result("m2"), boards=[board("old", source="goals")])
    assert totals(database, season_of(database, "bare")) == {}
