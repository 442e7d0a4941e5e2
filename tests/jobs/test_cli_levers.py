"""The levers: what each does, what it refuses, and that who, when and why stand in the journal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.seasons import runner
from tests.support.cli import World, differing, finale

HOUR = timedelta(hours=1)
NOW = datetime.now(UTC).replace(microsecond=0)
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
WHO = ("--because", "a reason", "--as", "ana")


def config(*seasons: tuple[str, timedelta, timedelta], extra: str = "") -> str:
    """Return a board ``cup`` whose seasons begin and end so far from now."""
    listed = ", ".join(
        f'{{ id = "{name}", starts_at = {(NOW + start).isoformat()}, ends_at = {(NOW + end).isoformat()} }}'
        for name, start, end in seasons
    )
    board = f'[board.cup]\nties = "shared"\nkeep_live = "0s"\nrewards = "cup.toml"\n{extra}\n'
    return f"{board}calendar = {{ seasons = [{listed}] }}"


@pytest.fixture
def running(world: World) -> World:
    """Season ``one`` is running and has a player, ``two`` follows it, ``three`` later; all but the last exist."""
    seasons = (("one", -HOUR, HOUR), ("two", HOUR, 3 * HOUR), ("three", 3 * HOUR, 5 * HOUR))
    world.configure(config(*seasons, extra='grace = "10m"\nahead = 1'), cup=TABLE)
    world.played("cup", f"m1,ann,5,{(NOW - HOUR / 2).isoformat()}")
    finale("tick").ok()
    return world


@pytest.fixture
def ended(world: World) -> World:
    """Season ``one`` ended two hours ago, with a player, and nothing has been done since it opened."""
    world.configure(config(("one", -4 * HOUR, -2 * HOUR), extra='grace = "3h"'), cup=TABLE)
    world.seen("cup", NOW - 3 * HOUR)
    world.played("cup", f"m1,ann,5,{(NOW - 3 * HOUR).isoformat()}")
    world.sql("update finale.season set closes_at = ends_at")
    return world


def bounds(world: World, season: str) -> tuple[datetime, datetime]:
    ((starts_at, ends_at),) = world.sql("select starts_at, ends_at from finale.season where season = %s", season)
    return starts_at, ends_at


def last_entry(world: World, season: str) -> tuple[str, str, dict[str, object]]:
    return world.journal("cup", season)[-1]


def text(instant: datetime) -> str:
    return instant.isoformat()


def test_extending_moves_the_end_and_the_next_start(running: World) -> None:
    """Both bounds move, the grace keeps its length, the live key stays, and both journals say who and why."""
    until = NOW + 2 * HOUR
    told = finale("season", "extend", "cup", "one", "--until", text(until), *WHO, "--json").ok().json
    assert told["next_season"] == {"season": "two", "starts_at": until.isoformat().replace("+00:00", "Z")}
    assert bounds(running, "one")[1] == until
    assert bounds(running, "two") == (until, NOW + 3 * HOUR)
    assert running.sql("select closes_at - ends_at from finale.season where season = 'one'") == [(HOUR / 6,)]
    event, who, detail = last_entry(running, "one")
    assert (event, who, detail["because"], detail["ends_at_before"]) == (
        "extended",
        "ana",
        "a reason",
        text(NOW + HOUR),
    )
    assert last_entry(running, "two")[0] == "moved"
    assert finale("tick", "--json").ok().json == []


def test_extending_far_creates_the_season_that_it_moves(running: World) -> None:
    """A season of the calendar that is not in the ledger yet is made, so that it is moved and not left out for ever."""
    running.sql("delete from finale.season where season = 'two'")
    finale("season", "extend", "cup", "one", "--until", text(NOW + 2 * HOUR), *WHO).ok()
    assert bounds(running, "two") == (NOW + 2 * HOUR, NOW + 3 * HOUR)


@pytest.mark.parametrize(
    ("until", "code", "words"),
    [
        (NOW + HOUR / 2, 23, ("ends at", "anyway")),
        (NOW + 4 * HOUR, 23, ("nothing would be left of cup/two", "season cancel cup two")),
    ],
)
def test_an_extension_that_cannot_be_changes_nothing(
    running: World, until: datetime, code: int, words: tuple[str, ...]
) -> None:
    """Not to an earlier end, and not over the whole of the next season; the dry run refuses the same."""
    before = running.picture()
    for dry in ((), ("--dry-run",)):
        finale("season", "extend", "cup", "one", "--until", text(until), *WHO, *dry).refused(code, *words)
    assert differing(before, running.picture()) == []


def test_a_next_season_that_is_not_in_the_ledger_has_a_remedy_that_works(running: World) -> None:
    """It cannot be cancelled before it is made: the refusal makes none, dry or not, and says how to have it made."""
    finale("season", "cancel", "cup", "two", *WHO).ok()
    extend = ("season", "extend", "cup", "one", "--until", text(NOW + 6 * HOUR), *WHO)
    before = running.picture()
    for dry in ((), ("--dry-run",)):
        words = ("nothing would be left of cup/three", "let it end before", "a larger ahead, then finale tick")
        finale(*extend, *dry).refused(23, *words, "season cancel cup three")
    assert differing(before, running.picture()) == []
    running.config.write_text(running.config.read_text().replace("ahead = 1", "ahead = 2"))
    finale("tick").ok()
    finale("season", "cancel", "cup", "three", *WHO).ok()
    finale(*extend).ok()
    assert bounds(running, "one")[1] == NOW + 6 * HOUR


def test_a_season_is_not_extended_into_one_with_results(running: World) -> None:
    """Once the next season has a result, its bounds stand."""
    running.sql(
        "insert into finale.player_total select season_id, 'ann', 1, starts_at, 1, 1 from finale.season"
        " where season = 'two'"
    )
    answer = finale("season", "extend", "cup", "one", "--until", text(NOW + 2 * HOUR), *WHO)
    answer.refused(23, "cup/two has results already")


def test_a_season_past_its_cutoff_is_not_extended(ended: World) -> None:
    """Its results may be frozen any moment: the lever for that is reopen, which the hint names."""
    answer = finale("season", "extend", "cup", "one", "--until", text(NOW + HOUR), *WHO)
    answer.refused(23, "its cutoff was", "season reopen cup one")


def test_c02_an_extension_past_the_codecs_ceiling_is_refused(world: World) -> None:
    """C02: seconds of more than 194 days do not fit beside the points; the arithmetic is told."""
    day = timedelta(days=1)
    board = config(("one", -day, day), extra="").replace('"shared"', '{ by = "first_to_reach", unit = "second" }')
    world.configure(board, cup=TABLE)
    finale("tick").ok()
    answer = finale("season", "extend", "cup", "one", "--until", text(NOW + 200 * day), *WHO)
    answer.refused(3, "do not fit", "16,777,216")


def test_results_between_the_old_end_and_the_new_one_count(running: World) -> None:
    """What was played after the end of a season that is extended, and counted nowhere, counts in it from then on."""
    at = NOW + 2 * HOUR
    running.sql("delete from finale.season where season = 'two'")
    running.sql(
        "insert into finale.match_result select source_id, 'm9', 'ben', 7, %s from finale.source where name = 'cup'", at
    )
    running.configure(config(("one", -HOUR, HOUR), extra='grace = "10m"\nahead = 1'), cup=TABLE)
    finale("season", "extend", "cup", "one", "--until", text(at + HOUR), *WHO).ok()
    assert running.sql("select points from finale.player_total where player_id = 'ben'") == [(7,)]


def test_a_season_that_never_opened_is_cancelled_and_stays_so(running: World) -> None:
    """It is not made again, no tick opens it, no fence is left in Redis, and an open one is refused."""
    finale("season", "cancel", "cup", "two", *WHO).ok()
    assert running.state("cup", "two") == "cancelled"
    assert last_entry(running, "two")[:2] == ("cancelled", "ana")
    running.sql("update finale.season set starts_at = starts_at - interval '2h', ends_at = ends_at - interval '1m'")
    finale("tick").ok()
    assert running.state("cup", "two") == "cancelled"
    assert not [key for key in running.redis.scan_iter() if b"two" in key]
    finale("season", "cancel", "cup", "one", *WHO).refused(23, "is open")


def test_reopening_counts_late_results_and_throws_the_snapshot_away(ended: World) -> None:
    """I6: closed too early, a result came late; reopened it counts, and the season closes once more, with both."""
    finale("close", "cup", "one", "--until", "reconcile").ok()
    late = ended.results(f"m2,ben,9,{(NOW - 3 * HOUR).isoformat()}", name="late.csv")
    finale("results", "import", str(late), "--board", "cup").ok()
    assert ended.sql("select count(*) from finale.late_result") == [(1,)]
    assert ended.files("staging")
    planned = finale("season", "reopen", "cup", "one", *WHO, "--dry-run", "--json").ok().json
    assert planned["from"] == "reconciled" and planned["expected_seconds"] > 0
    finale("season", "reopen", "cup", "one", "--grace", "0s", *WHO).refused(
        23, "give a later --until, or a longer --grace"
    )
    told = finale("season", "reopen", "cup", "one", "--grace", "1h", *WHO, "--json").ok().json
    assert told["late_counted"] == 1
    assert ended.state("cup", "one") == "open"
    assert ended.files("staging") == []
    assert ended.sql("select step from finale.step_result order by 1") == [("open",)]
    finale("tick").ok()
    assert ended.state("cup", "one") == "closing"
    ended.sql("update finale.season set closes_at = ends_at")
    finale("tick").ok()
    top = finale("standings", "cup", "one", "--json").ok().json
    assert [(one["player_id"], one["points"]) for one in top] == [("ben", 9), ("ann", 5)]
    assert [event for event, _, _ in ended.journal("cup", "one")].count("reopened") == 1


def test_reopening_with_a_later_end_takes_results_played_after_the_old_one(running: World) -> None:
    """I6: closed early by mistake: what is played until the planned end is kept as late, and counts once reopened."""
    finale("close", "cup", "one", "--now", "--as", "ana", "--until", "snapshot").ok()
    played = datetime.now(UTC)
    between = str(running.results(f"m2,ann,3,{played.isoformat()}", name="between.csv"))
    taken = finale("results", "import", between, "--board", "cup", "--json").ok().json
    assert (taken["new"], taken["late"], taken["uncounted"], taken["refused"]) == (1, 1, 0, 0)
    assert taken["remarks"][0]["reason"] == "board cup: the season was closed early, before it was played"
    (late,) = finale("results", "late", "cup", "one", "--json").ok().json
    assert (late["match_id"], late["points"]) == ("m2", 3)
    finale("season", "reopen", "cup", "one", *WHO).ok()
    assert running.sql("select match_id from finale.late_result") == [("m2",)]
    finale("close", "cup", "one", "--now", "--as", "ana", "--until", "snapshot").ok()
    told = finale("season", "reopen", "cup", "one", "--until", text(NOW + HOUR), *WHO, "--json").ok().json
    assert told["late_counted"] == 1
    assert finale("results", "import", between, "--board", "cup", "--json").ok().json["repeated"] == 1
    assert running.sql("select points from finale.player_total") == [(8,)]
    assert bounds(running, "one")[1] == NOW + HOUR


def test_what_was_voided_after_the_freeze_is_not_paid_once_reopened(ended: World) -> None:
    """I4: a cheater is found before the seal: reopened and closed again, the season pays him nothing."""
    ended.played("cup", f"m2,eve,90,{(NOW - 3 * HOUR).isoformat()}")
    finale("close", "cup", "one", "--until", "reconcile").ok()
    finale("results", "void", "m2", "--board", "cup", *WHO).ok()
    finale("season", "reopen", "cup", "one", *WHO).ok()
    assert ended.sql("select player_id, points from finale.player_total") == [(b"ann", 5)]
    assert last_entry(ended, "one")[2]["voids_followed"] == 1
    ended.sql("update finale.season set closes_at = ends_at")
    finale("close", "cup", "one", "--until", "deliver").ok()
    top = finale("standings", "cup", "one", "--json").ok().json
    assert [one["player_id"] for one in top] == ["ann"]
    assert ended.sql("select distinct player_id from finale.grants") == [(b"ann",)]


def test_i2_a_sealed_season_is_not_reopened(ended: World) -> None:
    """I2: neither once it is sealed, nor when the seal is committed and its put has not been recorded."""
    finale("close", "cup", "one", "--until", "reconcile").ok()
    key = ended.sql("select season_id from finale.season")[0][0]
    ended.sql("insert into finale.seal values (%s, 'standings', 'cup', 1, null, 'x', 'x', 1)", key)
    finale("season", "reopen", "cup", "one", *WHO).refused(23, "its seal is committed")
    ended.sql("delete from finale.seal")
    finale("close", "cup", "one").ok()
    finale("season", "reopen", "cup", "one", *WHO).refused(23, "cannot be reopened: its seal is committed")


def test_a_failed_step_is_tried_again_at_once_when_told(ended: World) -> None:
    """A step that failed waits for its next try, which retry takes away; else there is nothing to retry."""
    finale("season", "retry", "cup", "one", "--as", "ana").refused(23, "no step of cup/one has failed")
    ended.sql("update finale.season set attempts = 9, last_error = 'no store', retry_at = now() + interval '5m'")
    assert finale("tick", "--json").ok().json == []
    assert finale("season", "show", "cup", "one", "--json").ok().json["retry_at"]
    told = finale("season", "retry", "cup", "one", "--as", "ana", "--json").ok().json
    assert (told["step"], told["attempts"], told["last_error"]) == ("open", 9, "no store")
    assert finale("tick", "--json").ok().json[-1]["steps"][-1] == "clean"


def test_a_failure_sets_the_next_try_further_away_each_time(ended: World) -> None:
    """C57: tries come after 1, 2, 4 … seconds, and never more than five minutes apart."""
    ended.redis.delete("leaderboard:cup:one")
    ended.redis.hset("leaderboard:cup:one", "not", "a board")
    for tries in (1, 2, 9):
        ended.sql("update finale.season set retry_at = null, attempts = %s", tries - 1)
        assert finale("tick").code == 4
        ((attempts, pause),) = ended.sql(
            "select attempts, retry_at - (select max(at) from finale.journal where event = 'failed') from finale.season"
        )
        expected = timedelta(seconds=min(2 ** (tries - 1), 300))
        assert attempts == tries
        assert abs(pause - expected) < timedelta(seconds=1)


def test_pause_stops_every_runner_and_resume_lets_it_catch_up(ended: World) -> None:
    """Neither tick nor close takes a step; both say since when, by whom and why; the journal of everything has both."""
    finale("pause", "--because", "Redis moves", "--as", "ana").ok()
    before = ended.picture()
    (told,) = finale("tick", "--json").ok().json
    assert "by ana: Redis moves" in told["held"]
    finale("close", "cup", "one").refused(24, "by ana: Redis moves", "finale resume")
    assert differing(before, ended.picture()) == []
    finale("pause", "--because", "again", "--as", "ben").refused(
        23, "everything is already paused since", "by ana", "finale resume"
    )
    finale("resume", "--as", "ben", "--json").ok()
    finale("resume", "--as", "ben").refused(23, "nothing is paused", "hint:")
    assert finale("tick", "--json").ok().json[-1]["steps"][-1] == "clean"
    told = finale("journal", "--json").ok().json
    assert [(one["event"], one["who"]) for one in told] == [("paused", "ana"), ("resumed", "ben")]


REFUSALS = [(24, "pause"), (20, "another runner"), (22, "hold")]


@pytest.mark.parametrize(("code", "why"), REFUSALS, ids=[why for _, why in REFUSALS])
@pytest.mark.parametrize("lever", ["close", "clean"])
def test_what_is_refused_has_not_ended_anything_early(
    running: World, monkeypatch: pytest.MonkeyPatch, lever: str, code: int, why: str
) -> None:
    """``--now`` while all is paused, or the season is worked on or just held: neither bounds nor keep_live move."""
    if lever == "clean":
        finale("close", "cup", "one", "--now", "--until", "deliver", "--as", "ana").ok()
        running.sql("update finale.season set keep_until = keep_until + interval '1d' where season = 'one'")
    begun = runner.leased

    def held_meanwhile(*given: Any) -> Any:
        finale("season", "hold", "cup", "one", *WHO).ok()
        return begun(*given)

    if why == "pause":
        finale("pause", *WHO).ok()
    elif why == "another runner":
        running.sql(
            "insert into finale.lease"
            " select season_id, 'ben@host:1', 99, now(), now() + interval '1h' from finale.season"
            " on conflict (season_id) do update set holder = excluded.holder, expires_at = excluded.expires_at"
        )
    else:
        monkeypatch.setattr(runner, "leased", held_meanwhile)
    told = "select starts_at, ends_at, closes_at, keep_until, state from finale.season order by 1"
    before = running.sql(told)
    finale(lever, "cup", "one", "--now", "--as", "ana").refused(code)
    assert running.sql(told) == before
    assert last_entry(running, "one")[0] not in ("closed early", "retention cut short")


def test_closing_early_says_where_results_until_the_old_end_go(running: World) -> None:
    """The dry run names the planned end; the journal keeps both ends; what is played in between is kept, uncounted."""
    (first, *_) = finale("close", "cup", "one", "--now", "--dry-run", "--json").ok().json
    assert f"until {(NOW + HOUR).isoformat().replace('+00:00', 'Z')} count in no season of cup" in first["results"]
    assert first["expected_seconds"] is None
    said = finale("close", "cup", "one", "--now", "--dry-run").ok().out
    assert "count in no season of cup" in " ".join(said.split())


def test_the_expected_duration_follows_from_earlier_seasons(running: World) -> None:
    """Once a season has been closed, a dry run tells how long the next one will take."""
    finale("close", "cup", "one", "--now", "--as", "ana").ok()
    running.sql("update finale.season set starts_at = now() - interval '1h' where season = 'two'")
    finale("tick").ok()
    (first, *_) = finale("close", "cup", "two", "--now", "--dry-run", "--json").ok().json
    assert first["expected_seconds"] > 0


LEVERS = [
    ("season", "extend", "cup", "one", "--until", text(NOW + 2 * HOUR), "--because", "x"),
    ("season", "cancel", "cup", "two", "--because", "x"),
    ("season", "hold", "cup", "one", "--because", "x"),
    ("close", "cup", "one", "--now"),
    ("pause", "--because", "x"),
]


@pytest.mark.parametrize("lever", LEVERS, ids=lambda lever: lever[1] if lever[0] == "season" else lever[0])
def test_a_lever_needs_a_name_and_its_dry_run_changes_nothing(running: World, lever: tuple[str, ...]) -> None:
    """Without a terminal a lever needs --as; --dry-run needs none, tells what would be, and changes nothing."""
    before = running.picture()
    finale(*lever).refused(4, "needs the name")
    finale(*lever, "--dry-run").ok()
    assert finale(*lever, "--dry-run", "--json").ok().json
    assert differing(before, running.picture()) == []


def test_the_journal_of_a_season_tells_who_when_and_why(running: World) -> None:
    """Every entry has its time, event and name, in words and as JSON; half a name is refused."""
    finale("season", "hold", "cup", "one", *WHO).ok()
    *_, last = finale("journal", "cup", "one", "--json").ok().json
    assert (last["event"], last["who"], last["detail"]) == ("held", "ana", {"because": "a reason"})
    assert datetime.fromisoformat(last["at"]).tzinfo is not None
    assert "because a reason" in finale("journal", "cup", "one").ok().out
    finale("journal", "cup").refused(4, "cup is a board", "both BOARD and SEASON", "finale season list cup")
