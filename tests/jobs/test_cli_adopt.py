"""finale archive adopt: a sorted set that Finale never opened becomes a sealed season; nothing is written to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest

from archive.seal import Seal, StandingFacts
from jobs.seasons import runner
from jobs.steps.clean import Clean
from leaderboard.board import Board
from leaderboard.codec import codec_for, to_microseconds
from leaderboard.errors import UnavailableError
from leaderboard.season import Bounds
from tests.support.cli import World, differing, finale

CONFIG = """
[board.cup]
ties = "shared"
ledger = "none"
rewards = "cup.toml"
calendar = { every = "month" }
[board.counted]
source = "matches"
ties = "shared"
calendar = { every = "month" }
"""
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
KEY = "old cron board/2025-01"
ROWS = {"ann": 7.0, "bob": 7.0, "eve": -2.0}
ADOPT = ("archive", "adopt", KEY, "--board", "cup", "--season", "s2025m01")
FENCE = f"{{{KEY}}}:finale:fence".encode()


@pytest.fixture
def cup(world: World) -> World:
    """A board without a ledger, one with, and a key of some cron script's."""
    world.configure(CONFIG, cup=TABLE)
    world.redis.zadd(KEY, ROWS)
    return world


def seal_of(world: World, board: str = "cup", season: str = "s2025m01") -> tuple[Seal, StandingFacts]:
    seal = Seal.parse((world.store / f"seals/{board}/{season}/standings.json").read_bytes())
    assert isinstance(seal.facts, StandingFacts)
    return seal, seal.facts


def test_a_key_is_archived_as_it_is_and_nothing_is_written_to_it(cup: World) -> None:
    """Sealed with the board's codec and the calendar's bounds; the key's very bytes and its having no TTL stay."""
    before = cup.redis.dump(KEY)
    run = finale(*ADOPT, "--json").ok().json
    assert [step["step"] for step in run["steps"]] == ["snapshot", "reconcile", "seal"]
    assert (run["state"], run["adopted"], run["live_key"], run["keep_until"]) == ("sealed", True, KEY, None)
    assert "finale close cup s2025m01" in run["next"]["when"]
    seal, facts = seal_of(cup)
    assert seal.reconcile == {"ledger": "none"}
    assert (facts.rows, facts.points_sum, facts.keys[0].key) == (3, 12, KEY)
    assert (seal.bounds.starts_at, seal.bounds.ends_at) == (
        datetime(2025, 1, 1, tzinfo=UTC),
        datetime(2025, 2, 1, tzinfo=UTC),
    )
    (part,) = (cup.store / "standings/board=cup/season=s2025m01").iterdir()
    rows = pq.read_table(part, partitioning=None).to_pylist()
    assert [(row["player_id"], row["rank"], row["points"]) for row in rows] == [
        ("bob", 1, 7),
        ("ann", 1, 7),
        ("eve", 3, -2),
    ]
    assert cup.redis.dump(KEY) == before
    assert cup.redis.ttl(KEY) == -1
    assert sorted(cup.redis.keys()) == sorted([KEY.encode(), FENCE])
    finale("archive", "verify", "cup", "s2025m01").ok()
    event, _, detail = cup.journal("cup", "s2025m01")[0]
    assert (event, detail["live_key"], detail["ledger"]) == ("adopted", KEY, "none")


def test_a_dry_run_changes_nothing_and_decides_like_the_adoption(cup: World) -> None:
    """--dry-run shows rows as the board reads them, refuses what adopt refuses, and leaves every server as it was."""
    before = cup.picture()
    planned = finale(*ADOPT, "--dry-run", "--json").ok().json
    assert [(one["step"], one["verdict"]) for one in planned] == [
        ("snapshot", "act"),
        ("reconcile", "follows"),
        ("seal", "follows"),
    ]
    assert "read 3 rows at one instant: 1. bob has 7 points; 2. ann has 7 points; 3. eve has -2" in planned[0]["why"]
    assert planned[1]["why"] == "compare with nothing"
    finale("archive", "adopt", "nothing", *ADOPT[3:], "--dry-run").refused(5, "there is no key 'nothing'")
    counted = ("--board", "counted", "--season", "s2025m01", "--dry-run", "--json")
    assert "every player" in finale("archive", "adopt", KEY, *counted).ok().json[1]["why"]
    assert "nothing" in finale("archive", "adopt", KEY, *counted, "--no-ledger").ok().json[1]["why"]
    assert differing(before, cup.picture()) == []
    finale(*ADOPT).ok()
    after = cup.picture()
    assert finale(*ADOPT, "--dry-run", "--json").ok().json == []
    finale("archive", "adopt", "other", *ADOPT[3:], "--dry-run").refused(23, "was adopted already")
    assert differing(after, cup.picture()) == []


def test_adopting_again_changes_nothing(cup: World) -> None:
    finale(*ADOPT).ok()
    before = cup.picture()
    assert "nothing to do" in finale(*ADOPT).ok().out
    assert differing(before, cup.picture()) == []


def test_an_adopted_season_goes_on_only_when_a_person_says_so(cup: World) -> None:
    """No tick pays or removes anything of it; close pays, and the key goes with clean --now alone."""
    finale(*ADOPT).ok()
    finale("tick").ok()
    assert cup.state("cup", "s2025m01") == "sealed"
    assert cup.sql("select count(*) from finale.payable") == [(0,)]
    finale("clean", "cup", "s2025m01", "--now", "--as", "ana").refused(23, "finale close cup s2025m01")
    finale("close", "cup", "s2025m01").ok()
    assert cup.sql("select count(*) from finale.payable") == [(3,)]
    finale("tick").ok()
    verdict = finale("clean", "cup", "--dry-run", "--json").ok().json
    assert ("keep", True) in [(one["verdict"], "--now" in one["reason"]) for one in verdict]
    assert finale("clean").ok().out == "nothing is due\n"
    finale("clean", "cup", "s2025m01").refused(6, "finale clean cup s2025m01 --now")
    (planned,) = finale("clean", "cup", "s2025m01", "--dry-run", "--json").ok().json
    assert (planned["verdict"], planned["until"]) == ("wait", None)
    assert cup.redis.zrange(KEY, 0, -1, withscores=True) == [(b"eve", -2.0), (b"ann", 7.0), (b"bob", 7.0)]
    assert "finale clean cup s2025m01 --now" in finale("season", "show", "cup", "s2025m01").ok().out
    finale("clean", "cup", "s2025m01", "--now", "--as", "ana").ok()
    assert cup.redis.keys(f"*{KEY}*") == []
    assert len(finale("standings", "cup", "s2025m01", "--json").ok().json) == 3


def delivered(cup: World) -> None:
    finale(*ADOPT).ok()
    finale("close", "cup", "s2025m01").ok()


def kept_until_now_is_said_again(cup: World) -> None:
    """No tick, nor a clean of all that is due, removes the key; only another clean --now does."""
    finale("tick").ok()
    finale("clean").ok()
    finale("clean", "cup", "s2025m01").refused(6, "finale clean cup s2025m01 --now")
    assert (cup.redis.exists(KEY), cup.state("cup", "s2025m01")) == (1, "delivered")
    finale("clean", "cup", "s2025m01", "--now", "--as", "ana").ok()
    assert (cup.redis.exists(KEY), cup.state("cup", "s2025m01")) == (0, "cleaned")


def test_a_hold_of_the_clean_ends_the_decision_to_forget_an_adopted_key(cup: World) -> None:
    """Refused as the key had changed and released again, the key stays for ever though it is equal once more."""
    delivered(cup)
    cup.redis.zadd(KEY, {"ann": 8})
    finale("clean", "cup", "s2025m01", "--now", "--as", "ana").refused(22, "ann")
    assert finale("season", "show", "cup", "s2025m01", "--json").ok().json["keep_until"] is None
    finale("season", "release", "cup", "s2025m01", "--because", "decided to keep it", "--as", "ana").ok()
    cup.redis.zadd(KEY, ROWS)
    kept_until_now_is_said_again(cup)


@pytest.mark.parametrize("held_by", ["a person", "an older version"])
def test_a_hold_by_hand_and_any_release_end_that_decision_too(
    cup: World, monkeypatch: pytest.MonkeyPatch, held_by: str
) -> None:
    """A season put on hold while its clean waits, or held before holds ended the decision, keeps its key as well."""

    def cut_off(*_: Any, **__: Any) -> None:
        raise UnavailableError("cut off")

    delivered(cup)
    with monkeypatch.context() as patch:
        patch.setattr(Clean, "act", cut_off)
        finale("clean", "cup", "s2025m01", "--now", "--as", "ana").refused(10, "cut off")
    kept = "select keep_until is not null from finale.season where season = 's2025m01' and board = 'cup'"
    assert cup.sql(kept) == [(True,)]
    finale("season", "hold", "cup", "s2025m01", "--because", "wait", "--as", "ana").ok()
    assert cup.sql(kept) == [(False,)]
    if held_by == "an older version":
        cup.sql("update finale.season set keep_until = now() where season = 's2025m01'")
    finale("season", "release", "cup", "s2025m01", "--as", "ana").ok()
    kept_until_now_is_said_again(cup)


def test_the_same_key_may_be_adopted_season_after_season(cup: World) -> None:
    """One key for ever: once a season of it is cleaned it is free for the next; no tick is alarmed by its new life."""
    finale(*ADOPT).ok()
    following = (*ADOPT[:-1], "s2025m02")
    finale(*following).refused(23, "live key of cup/s2025m01")
    finale("close", "cup", "s2025m01").ok()
    finale("clean", "cup", "s2025m01", "--now", "--as", "ana").ok()
    cup.redis.zadd(KEY, {"zoe": 1})
    finale("tick").ok()
    finale(*following).ok()
    assert seal_of(cup, season="s2025m02")[0].chain.number == 3
    finale("clean", "cup", "s2025m01", "--again", "--as", "ana").refused(23, "another season has it now")
    assert cup.redis.zcard(KEY) == 1


def test_bounds_may_be_given_where_the_calendar_has_no_such_season(cup: World) -> None:
    bounds = ("--starts-at", "2024-12-24T18:00:00+02:00", "--ends-at", "2024-12-27T00:00:00Z")
    finale(*ADOPT[:-1], "xmas").refused(5, "'xmas'", "--starts-at")
    finale(*ADOPT[:-1], "xmas", *bounds).ok()
    assert seal_of(cup, season="xmas")[0].bounds.starts_at == datetime(2024, 12, 24, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    ("bounds", "code", "words"),
    [
        (("--starts-at", "2024-12-24T00:00:00Z"), 4, "go together"),
        (("--starts-at", "2024-12-24", "--ends-at", "2024-12-27T00:00:00Z"), 4, "no UTC offset"),
        (("--starts-at", "yule", "--ends-at", "2024-12-27T00:00:00Z"), 4, "'yule'"),
        (("--starts-at", "2024-12-27T00:00:00Z", "--ends-at", "2024-12-24T00:00:00Z"), 4, "does not end after"),
        (("--starts-at", "2024-12-24T00:00:00Z", "--ends-at", "2124-12-27T00:00:00Z"), 6, "has not ended"),
    ],
)
def test_bounds_that_cannot_be_are_refused(cup: World, bounds: tuple[str, ...], code: int, words: str) -> None:
    before = cup.picture()
    finale(*ADOPT[:-1], "xmas", *bounds).refused(code, words)
    assert differing(before, cup.picture()) == []


def test_bounds_never_block_the_season_that_runs(cup: World) -> None:
    """A trial up to now would overlap the calendar's present season, which could then not be opened: refused."""
    now = datetime.now(UTC).replace(microsecond=0)
    month = now.replace(day=1, hour=0, minute=0, second=0)
    if now == month:
        now += timedelta(seconds=1)
    bounds = ("--starts-at", (month - timedelta(days=3)).isoformat(), "--ends-at", now.isoformat())
    finale(*ADOPT[:-1], "trial", *bounds).refused(4, f"s{now.year}m{now.month:02d}", "do not overlap")
    finale(*ADOPT[:-1], f"s{now.year}m{now.month:02d}").refused(6, "has not ended")


def test_seasons_that_overlap_one_of_the_ledger_are_refused(cup: World) -> None:
    finale(*ADOPT).ok()
    cup.redis.zadd("other", {"x": 1})
    bounds = ("--starts-at", "2025-01-31T00:00:00Z", "--ends-at", "2025-02-02T00:00:00Z")
    finale("archive", "adopt", "other", "--board", "cup", "--season", "xmas", *bounds).refused(
        3, "overlaps", "s2025m01"
    )
    finale("archive", "adopt", "other", "--board", "cup", "--season", "s2025m01").refused(23, "adopted already", KEY)


def test_what_cannot_be_adopted_is_a_clear_error_and_leaves_nothing(cup: World) -> None:
    """A key that is not there, of another type, untaggable, a helper, another season's by its name; unknown names."""
    cup.redis.set("text", "x")
    cup.redis.zadd("a}b{", {"x": 1})
    cup.redis.zadd("{a}:finale:expiring", {"x": 1})
    cup.redis.zadd("leaderboard:counted:s2025m03", {"x": 1})
    before = cup.picture()

    def refused(key: str, code: int, *words: str, board: str = "cup", season: str = "s2025m01") -> None:
        finale("archive", "adopt", key, "--board", board, "--season", season).refused(code, *words)

    refused("nowhere", 5, "no key 'nowhere'")
    refused("text", 4, "is a string, not a sorted set")
    refused("a}b{", 4, "same cluster slot")
    refused("{a}:finale:expiring", 4, "helper key")
    refused("leaderboard:counted:s2025m03", 4, "counted/s2025m03", "--board counted --season s2025m03")
    refused("leaderboard:counted:s2025m03", 4, "not of counted/s2025m01", board="counted")
    refused(KEY, 5, "'cupp'", board="cupp")
    refused(KEY, 5, "'winter'", season="winter")
    assert differing(before, cup.picture()) == []


def test_a_season_or_key_that_finale_has_already_is_not_adopted(cup: World) -> None:
    cup.played("counted", "m1,ann,5,2025-01-02T00:00:00Z")
    before = cup.picture()
    finale("archive", "adopt", KEY, "--board", "counted", "--season", "s2025m01").refused(
        23, "exists already", "finale close counted s2025m01"
    )
    key = "leaderboard:counted:s2025m01"
    finale("archive", "adopt", key, "--board", "counted", "--season", "s2025m01").refused(23, "exists already")
    assert differing(before, cup.picture()) == []


PACKED = """
[board.cup]
ledger = "none"
calendar = { every = "month" }
"""


def test_plain_points_under_a_packed_board_are_refused_instead_of_sealed_as_nonsense(cup: World) -> None:
    """C02: 7 points read as packed are 0 points reached long after the season; nothing of it is created."""
    cup.configure(PACKED)
    before = cup.picture()
    finale(*ADOPT).refused(4, "does not read as board cup writes it", 'ties = "shared"')
    assert differing(before, cup.picture()) == []


def test_packed_scores_are_read_by_the_boards_codec(cup: World) -> None:
    """Points and times are those that the writer packed, by the season's own start."""
    cup.configure(PACKED)
    starts_at, at = datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 20, 10, tzinfo=UTC)
    bounds = Bounds(starts_at, datetime(2025, 2, 1, tzinfo=UTC), "s2025m01")
    board = Board.model_validate({"name": "cup", "calendar": {"every": "month"}})
    cup.redis.delete(KEY)
    cup.redis.zadd(KEY, {"ann": codec_for(board, bounds).encode(41, to_microseconds(at))})
    finale(*ADOPT).ok()
    (row,) = finale("standings", "cup", "s2025m01", "--json").ok().json
    assert (row["points"], row["reached_at"]) == (41, "2025-01-20T10:00:00Z")


def test_i8_an_adoption_that_was_killed_goes_on(cup: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """I8: cut off after its season was created, the same command takes it up; with another board it begins anew."""

    def cut_off(*_: Any, **__: Any) -> None:
        raise UnavailableError("cut off")

    with monkeypatch.context() as patch:
        patch.setattr(runner, "run", cut_off)
        finale(*ADOPT).refused(10, "cut off")
    assert cup.state("cup", "s2025m01") == "frozen"
    cup.configure(CONFIG.replace('ties = "shared"\nledger = "none"', 'ties = "member"\nledger = "none"'), cup=TABLE)
    finale(*ADOPT).ok()
    assert seal_of(cup)[0].board["ties"]["by"] == "member"
    (part,) = (cup.store / "standings/board=cup/season=s2025m01").iterdir()
    assert pq.read_table(part, partitioning=None)["rank"].to_pylist() == [1, 2, 3]


def test_c24_a_missing_key_says_whether_it_may_have_been_evicted(cup: World) -> None:
    """C24: an alarm, not an empty archive; the policy that can drop boards is named, at the close too."""
    before = cup.redis.config_get("maxmemory-policy")["maxmemory-policy"]
    cup.played("counted", "m1,ann,5,2025-01-02T00:00:00Z")
    try:
        cup.redis.config_set("maxmemory-policy", "allkeys-lru")
        cup.redis.delete("leaderboard:counted:s2025m01")
        answer = finale("close", "counted", "s2025m01")
        answer.refused(22, "missing while the ledger has 1 player", "it may have been evicted", "allkeys-lru")
        assert '"step.warns"' in answer.err
        assert "Redis drops boards" in answer.err
        (close,) = [detail for event, _, detail in cup.journal("counted", "s2025m01") if "warnings" in detail]
        assert "allkeys-lru" in close["warnings"][0]
        cup.redis.config_set("maxmemory-policy", "noeviction")
        finale("season", "release", "counted", "s2025m01", "--as", "ana").ok()
        answer = finale("close", "counted", "s2025m01")
        answer.refused(22, "was not evicted")
    finally:
        cup.redis.config_set("maxmemory-policy", before)


def test_c24_a_time_to_live_on_the_live_key_is_told_at_the_close(cup: World) -> None:
    """C24: somebody's job let an open board expire: the warning says when, and how to take it off."""
    cup.played("counted", "m1,ann,5,2025-01-02T00:00:00Z")
    cup.redis.expire("leaderboard:counted:s2025m01", 5_000)
    answer = finale("close", "counted", "s2025m01").ok()
    assert "expires in" in answer.err
    assert "PERSIST" in answer.err


@pytest.mark.parametrize(
    ("key", "members", "words"),
    [
        ("k", {"ann": 1.5}, ("1.5 is not a whole number", 'points = "fraction"')),
        ("k", {"ann": float("inf")}, ("inf is not a finite number", "ZRANGE k")),
        ("k", {b"\xff": 1}, ("'\\xff' at position 1, which is not UTF-8", 'member = "binary"', "begins anew")),
        ("", {}, ("no key is named",)),
        ("{k}:finale:fence", {"ann": 1}, ("a helper key", "adopt the live key itself")),
        ("a\x07b", {"ann": 1}, ("not printable", "COPY")),
    ],
)
def test_what_cannot_be_adopted_is_told_with_its_remedy(
    cup: World, key: str, members: dict[Any, float], words: tuple[str, ...]
) -> None:
    """Exit 4 names the value and the remedy, and no season is made."""
    if members:
        cup.redis.zadd(key, members)
    finale("archive", "adopt", key, *ADOPT[3:]).refused(4, *words)
    assert cup.sql("select count(*) from finale.season where definition ->> 'name' = 'cup'") == [(0,)]


@pytest.mark.parametrize("season", ["../evil", "", "S1", "epoch"])
def test_a_season_of_an_impossible_name_is_an_argument_that_is_wrong(cup: World, season: str) -> None:
    """Exit 4 with the value and the rule, with bounds of its own or without, dry or not; nothing is made."""
    before = cup.picture()
    asked = ("archive", "adopt", KEY, "--board", "cup", "--season", season)
    given = ("--starts-at", "2024-12-24T00:00:00Z", "--ends-at", "2024-12-27T00:00:00Z")
    for more in ((), given, (*given, "--dry-run")):
        finale(*asked, *more).refused(4, f"--season {season!r} cannot name a season", "hint:")
    assert differing(before, cup.picture()) == []
