"""Taking results: what is new, repeated, conflicting, refused and late, and that nothing is half taken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ledger import seasons
from ledger.database import Database
from ledger.freeze import freeze
from ledger.result_files import Chunk, Unreadable
from ledger.results import Recorded, Remark, record
from tests.ledger.support import NOON, board, chunk, closing, count, result, season_of, take, taken_over, totals

SECOND = timedelta(seconds=1)


def _counts(found: Recorded) -> tuple[int, int, int, int, int]:
    return found.new, found.repeated, found.conflicting, found.refused, found.late


@pytest.fixture
def database(ledger_url: str) -> object:
    with Database(ledger_url) as opened:
        yield opened


def test_i6_second_import_adds_nothing(database: Database) -> None:
    """I6: the same results once more are repeats; totals, versions and what is pending stay as they were."""
    results = [result(f"m{n}", f"p{n % 3}", n, NOON + n * SECOND, region="eu") for n in range(10)]
    assert _counts(take(database, *results)) == (10, 0, 0, 0, 0)
    before = database.run(b"select * from finale.player_total order by player_id")
    again = take(database, *results)
    assert _counts(again) == (0, 10, 0, 0, 0)
    assert again.remarks == [] and again.seasons == set()
    assert database.run(b"select * from finale.player_total order by player_id") == before
    assert count(database, "match_result") == 10


def test_c64_i6_repeats_and_conflicts_within_a_batch(database: Database) -> None:
    """C64: of equal keys in one batch the first is taken; equal ones repeat it, others are in conflict with it."""
    found = take(
        database,
        result("m1", points=5, line=2),
        result("m1", points=5, line=3),
        result("m1", points=6, line=4),
        result("m1", points=5, at=NOON + SECOND, line=5),
        result("m1", points=5, line=6, region="eu"),
        result("m2", points=7, line=7),
    )
    assert _counts(found) == (2, 1, 3, 0, 0)
    assert [(one.line, one.kind) for one in found.remarks] == [(4, "conflict"), (5, "conflict"), (6, "conflict")]
    assert found.remarks[0].reason == "line 2 gives the same match and player other values"
    assert totals(database, season_of(database)) == {b"ann": (12, NOON, 2)}


def test_i6_a_few_known_results_anywhere_among_new_ones(database: Database) -> None:
    """I6: wherever in a batch those stand that the ledger has, each new one counts once, and each known one not."""
    known = [result(f"k{n}", f"p{n}") for n in range(3)]
    take(database, *known)
    for turn, at in enumerate((0, 3, 9)):
        new = [result(f"n{turn}-{n}", f"p{n}") for n in range(9)]
        found = take(database, *new[:at], known[turn], *new[at:])
        assert (found.new, found.repeated, found.conflicting) == (9, 1, 0)
    assert sum(matches for _, _, matches in totals(database, season_of(database)).values()) == 30


def test_conflict_with_the_ledger_is_told_and_kept_once(database: Database) -> None:
    """The same key with other values never replaces what stands; a repeated import sets it aside once."""
    take(database, result("m1", points=5))
    for _ in range(2):
        found = take(database, result("m1", points=6, line=9))
        assert _counts(found) == (0, 0, 1, 0, 0)
        reason = "the ledger has this match and player with 5 points played at 2021-06-01T12:00:00.000000Z"
        assert found.remarks == [Remark(9, "conflict", reason)]
    [kept] = database.run(b"select kind, reason, given, origin, line from finale.set_aside")
    assert (kept["kind"], kept["origin"], kept["line"]) == ("conflict", "test", 9)
    assert kept["given"]["points"] == "6" and kept["given"]["player_id"] == "ann"
    assert totals(database, season_of(database)) == {b"ann": (5, NOON, 1)}


def test_attributes_mean_the_same_from_every_file(database: Database) -> None:
    """What CSV gives as text and Parquet as numbers is the same attribute: a repeat, not a conflict."""
    take(database, result("m1", level=3, ratio=2.0, ranked=True, region="eu"))
    assert _counts(take(database, result("m1", level="3", ratio="2", ranked="true", region="eu")))[:3] == (0, 1, 0)
    assert _counts(take(database, result("m1", level="4", ratio="2", ranked="true", region="eu")))[:3] == (0, 0, 1)


def test_one_result_is_counted_by_every_board_of_its_source(database: Database) -> None:
    """Daily, weekly and yearly boards share a source; each counts a result in the season of its played_at."""
    boards = [
        board("daily", source="goals", calendar={"every": "day"}),
        board("weekly", source="goals", calendar={"every": "week"}),
        board("yearly", source="goals"),
    ]
    found = take(database, result("m1", points=2), result("m2", points=3, at=NOON + timedelta(days=1)), boards=boards)
    assert found.new == 2 and found.uncounted == 0
    assert totals(database, season_of(database, "daily", "s20210601")) == {b"ann": (2, NOON, 1)}
    assert totals(database, season_of(database, "daily", "s20210602")) == {b"ann": (3, NOON + timedelta(days=1), 1)}
    both = {b"ann": (5, NOON + timedelta(days=1), 2)}
    assert totals(database, season_of(database, "weekly", "s2021w22")) == both
    assert totals(database, season_of(database, "yearly", "s2021")) == both
    assert found.seasons == {
        season.key for name in ("daily", "weekly", "yearly") for season in seasons.of_board(database, name)
    }


def test_filters_decide_which_board_counts(database: Database) -> None:
    """A board with a filter counts only what satisfies it; what satisfies none is kept and said to be uncounted."""
    boards = [
        board("europe", source="goals", where={"region": "eu"}),
        board("ranked", source="goals", where={"ranked": True, "level": 3}),
    ]
    found = take(
        database,
        result("m1", "ann", 1, region="eu"),
        result("m2", "bob", 2, region="us", ranked="true", level="3"),
        result("m3", "cat", 4, region="eu", ranked=True, level=3.0),
        result("m4", "dan", 8, region="us", ranked="true"),
        result("m5", "eve", 16),
        boards=boards,
    )
    assert (found.new, found.uncounted) == (5, 2)
    assert set(totals(database, season_of(database, "europe"))) == {b"ann", b"cat"}
    assert set(totals(database, season_of(database, "ranked"))) == {b"bob", b"cat"}
    assert count(database, "match_result") == 5


def test_c73_bounds_are_half_open(database: Database) -> None:
    """C73: the first microsecond of a season is its own, the first after it the next one's."""
    start, end = datetime(2021, 1, 1, tzinfo=UTC), datetime(2022, 1, 1, tzinfo=UTC)
    tick = timedelta(microseconds=1)
    take(database, *(result(f"m{n}", f"p{n}", 1, at) for n, at in enumerate([start - tick, start, end - tick, end])))
    assert set(totals(database, season_of(database, season="s2020"))) == {b"p0"}
    assert set(totals(database, season_of(database, season="s2021"))) == {b"p1", b"p2"}
    assert set(totals(database, season_of(database, season="s2022"))) == {b"p3"}


def test_results_outside_all_seasons_are_refused(database: Database) -> None:
    """Before the first listed season, in an off-season and after the last there is no board for a result."""
    listed = [
        {"id": "spring", "starts_at": "2021-03-01T00:00:00", "ends_at": "2021-04-01T00:00:00"},
        {"id": "autumn", "starts_at": "2021-09-01T00:00:00", "ends_at": "2021-10-01T00:00:00"},
    ]
    days = [datetime(2021, month, 10, tzinfo=UTC) for month in (1, 3, 6, 9, 12)]
    results = [result(f"m{n}", at=day) for n, day in enumerate(days)]
    found = take(database, *results, boards=[board(calendar={"seasons": listed})])
    assert _counts(found) == (2, 0, 0, 3, 0)
    assert [one.line for one in found.remarks] == [2, 4, 6]
    assert found.remarks[0].reason == "no season of any board takes results played at that time"
    assert count(database, "match_result") == 2 and count(database, "set_aside") == 3


def test_a_refused_line_does_not_shadow_a_good_one(database: Database) -> None:
    """The key of a refused line is still free for a later line of the same batch."""
    listed = [{"id": "spring", "starts_at": "2021-06-01T00:00:00", "ends_at": "2021-07-01T00:00:00"}]
    found = take(
        database,
        result("m1", at=NOON - timedelta(days=300)),
        result("m1", at=NOON),
        boards=[board(calendar={"seasons": listed})],
    )
    assert _counts(found) == (1, 0, 0, 1, 0)


def test_played_in_the_future_is_refused_and_makes_no_season(database: Database) -> None:
    """PostgreSQL's clock decides; a few minutes are forgiven to the clocks of those who play."""
    now = database.now()
    daily = board(calendar={"every": "day"})
    found = take(
        database,
        result("m1", at=now + timedelta(minutes=1)),
        result("m2", at=now + timedelta(minutes=30)),
        result("m3", at=now + timedelta(days=400)),
        boards=[daily],
    )
    assert _counts(found) == (1, 0, 0, 2, 0)
    assert "future" in found.remarks[0].reason
    assert len(seasons.of_board(database, "goals")) == 1


def test_points_past_the_ceiling_refuse_that_players_lines_only(database: Database) -> None:
    """Nothing is half applied: the results, totals and pending rows of the refused player stay as they were."""
    tight = board(ties={"by": "first_to_reach", "unit": "minute"})
    ceiling = 2**53 // 2**24 - 1
    take(database, result("m0", "ann", ceiling - 1), boards=[tight])
    found = take(
        database,
        result("m1", "ann", 1, line=2),
        result("m2", "ann", 1, line=3),
        result("m3", "bob", ceiling, line=4),
        result("m4", "cat", -1, line=5),
        boards=[tight],
    )
    assert _counts(found) == (2, 0, 0, 2, 0)
    assert [one.line for one in found.remarks] == [3, 5], "in the file's order, the ceiling itself still fits"
    assert "536,870,912 points; board goals can hold 0 to 536,870,911" in found.remarks[0].reason
    assert "-1 points;" in found.remarks[1].reason
    assert totals(database, season_of(database))[b"ann"][0] == ceiling
    assert totals(database, season_of(database))[b"bob"] == (ceiling, NOON, 1)
    assert b"cat" not in totals(database, season_of(database))
    assert count(database, "match_result") == 3


@pytest.mark.parametrize("aggregate", ["sum", "best", "last"])
def test_one_bad_row_costs_no_good_one(database: Database, aggregate: str) -> None:
    """A row whose own points do not fit is refused by itself; all of the player's others in the batch count."""
    ceiling = 2**53 // 2**24 - 1
    tight = board(ties={"by": "first_to_reach", "unit": "minute"}, aggregate=aggregate)
    rows = [result(f"m{n}", "ann", n, NOON + n * SECOND, line=n + 1) for n in (1, 2, 3)]
    bad = [result("high", "ann", ceiling + 100, NOON + 9 * SECOND, line=9), result("low", "ann", -7, line=10)]
    found = take(database, *bad, *rows, boards=[tight])
    assert _counts(found) == (3, 0, 0, 2, 0)
    assert [one.line for one in found.remarks] == [9, 10]
    assert "points do not fit: board goals can hold 0 to" in found.remarks[0].reason
    assert "-7 points" in found.remarks[1].reason or "total would be -1 points" in found.remarks[1].reason
    points = {"sum": 6, "best": 3, "last": 3}[aggregate]
    assert totals(database, season_of(database))[b"ann"][0] == points


def test_a_line_refused_by_one_board_is_counted_by_none(database: Database) -> None:
    """A result is taken or not: the yearly board's ceiling also keeps it from the daily one."""
    yearly = board("yearly", source="goals", ties={"by": "first_to_reach", "unit": "minute"})
    daily = board("daily", source="goals", calendar={"every": "day"})
    take(database, result("m1", "ann", 2**29 - 1, NOON - timedelta(days=1)), boards=[yearly, daily])
    found = take(database, result("m2", "ann", 1, NOON), boards=[yearly, daily])
    assert _counts(found) == (0, 0, 0, 1, 0)
    assert totals(database, season_of(database, "daily", "s20210601")) == {}


def test_unreadable_rows_are_counted_told_and_set_aside_once(database: Database) -> None:
    """A row that is no result is kept as it was given, also with bytes that PostgreSQL could not store."""
    bad = Unreadable(3, "points 'x' is no whole number", {"match_id": "m\x00\udcff", "points": "x"})
    for _ in range(2):
        given = Chunk(list(chunk([result("m1")]).results), [bad])
        found = record(database, "goals", [board()], given, origin="a.csv")
        assert found.refused == 1
        assert found.remarks == [Remark(3, "refused", "points 'x' is no whole number")]
    [kept] = database.run(b"select kind, given, origin, line from finale.set_aside")
    assert kept == {
        "kind": "refused",
        "given": {"match_id": "m\\x00\\udcff", "points": "x"},
        "origin": "a.csv",
        "line": 3,
    }


def test_chunk_of_unreadable_rows_only(database: Database) -> None:
    found = record(database, "goals", [board()], Chunk([], [Unreadable(2, "wrong", {})]), origin="a.csv")
    assert _counts(found) == (0, 0, 0, 1, 0)
    assert _counts(record(database, "goals", [board()], Chunk(), origin="a.csv")) == (0, 0, 0, 0, 0)


def test_late_results_are_kept_and_named_but_not_counted(database: Database) -> None:
    """I6: after the freeze a result is recorded as late; totals and what is pending do not move."""
    season, lease = closing(database)
    take(database, result("m1", points=5))
    freeze(database, lease, season)
    before = totals(database, season)
    found = take(database, result("m2", points=7, line=4), result("m1", points=5, line=5))
    assert _counts(found) == (1, 1, 0, 0, 1)
    assert found.remarks == [Remark(4, "late", "board goals: the season was frozen before it came")]
    assert found.seasons == set()
    assert totals(database, season) == before == {b"ann": (5, NOON, 1)}
    [late] = database.run(b"select season_id, match_id, player_id from finale.late_result")
    assert late == {"season_id": season.key, "match_id": "m2", "player_id": b"ann"}
    assert _counts(take(database, result("m2", points=7))) == (0, 1, 0, 0, 0), "a late one repeated is a repeat"


def test_late_for_one_board_counts_for_the_others(database: Database) -> None:
    daily = board("daily", source="goals", calendar={"every": "day"})
    yearly = board("yearly", source="goals")
    season, lease = closing(database, yearly)
    freeze(database, lease, season)
    found = take(database, result("m1", points=5), boards=[daily, yearly])
    assert _counts(found) == (1, 0, 0, 0, 1)
    assert found.uncounted == 0
    assert totals(database, season_of(database, "daily", "s20210601")) == {b"ann": (5, NOON, 1)}
    assert totals(database, season) == {}


def test_a_late_result_stays_out_of_later_recounts(database: Database) -> None:
    """A recount of the player after a reopened season still leaves out what came late."""
    season, lease = closing(database)
    take(database, result("m1", points=5))
    freeze(database, lease, season)
    take(database, result("m2", points=7))
    database.run(b"update finale.season set frozen_at = null")
    take(database, result("m3", points=1, at=NOON + SECOND))
    assert totals(database, season) == {b"ann": (6, NOON + SECOND, 2)}


def test_many_remarks_are_cut_but_all_are_counted(database: Database) -> None:
    take(database, *(result(f"m{n}") for n in range(1_500)))
    found = take(database, *(result(f"m{n}", points=2) for n in range(1_500)))
    assert found.conflicting == 1_500 and len(found.remarks) == 1_000
    assert count(database, "set_aside") == 1_500


def test_folding_batches_keeps_order_and_sums() -> None:
    one = Recorded(new=1, late=2, remarks=[Remark(9, "late", "")], seasons={1})
    one.add(Recorded(new=2, refused=1, remarks=[Remark(3, "refused", "")], seasons={2}))
    assert _counts(one) == (3, 0, 0, 1, 2)
    assert [remark.line for remark in one.remarks] == [3, 9]
    assert one.seasons == {1, 2}


def test_i9_taking_over_a_season_does_not_disturb_results(database: Database) -> None:
    """Results need no lease: they count whoever works on the season."""
    season, lease = closing(database)
    taken_over(database, lease)
    assert take(database, result("m1")).new == 1
    assert totals(database, season) == {b"ann": (1, NOON, 1)}
