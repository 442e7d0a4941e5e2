"""finale results void, late, conflicts, refused and voided, as an operator uses them."""

from __future__ import annotations

import pytest

from tests.support.cli import World, differing, finale

AT = "2026-01-02T00:00:00Z"
CONFIG = """
[board.cup]
ties = "shared"
grace = "0s"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
KEY = "leaderboard:cup:one"
VOID = ("results", "void", "m1", "--source", "cup", "--because", "overtime crash")


@pytest.fixture
def cup(world: World) -> World:
    world.configure(CONFIG)
    world.played("cup", f"m1,ann,5,{AT}", f"m1,bob,3,{AT}", f"m2,ann,2,{AT}")
    return world


def test_a_voided_match_leaves_ledger_board_and_journal_right(cup: World) -> None:
    """The live board follows at once; who is left without a match is off it; who and why are in the journal."""
    answer = finale(*VOID, "--as", "eve", "--json").ok().json
    assert (answer["results"], answer["applied"], answer["before"], answer["unapplied"]) == (2, 2, None, None)
    assert answer["seasons"] == [{"board": "cup", "season": "one", "players": 2, "effect": "recounted"}]
    assert cup.redis.zrange(KEY, 0, -1, withscores=True) == [(b"ann", 2.0)]
    event, who, detail = cup.journal("cup", "one")[-1]
    assert (event, who, detail["because"], detail["match"]) == ("voided", "eve", "overtime crash", "m1")
    [row, other] = finale("results", "voided", "cup", "one", "--json").ok().json
    assert (row["match_id"], row["player_id"], row["points"]) == ("m1", "ann", 5)
    assert row["reason"] == "voided by eve: overtime crash" and other["player_id"] == "bob"


def test_a_void_is_a_lever_with_a_dry_run(cup: World) -> None:
    """Without a terminal it wants a name; a dry run needs none, tells the same, and changes nothing at all."""
    before = cup.picture()
    finale(*VOID).refused(4, "--as NAME")
    told = finale(*VOID, "--dry-run").ok()
    assert "2 results would be voided" in told.out and "recounted" in told.out
    assert differing(before, cup.picture()) == []
    assert "2 results voided" in finale(*VOID, "--as", "eve").ok().out


def test_voiding_twice_is_harmless_and_tells_the_first(cup: World) -> None:
    finale(*VOID, "--as", "eve").ok()
    before = cup.picture()
    assert "voided already by eve" in finale(*VOID, "--as", "mallory").ok().out
    assert differing(before, cup.picture()) == []


def test_what_is_not_there_cannot_be_voided(cup: World) -> None:
    """Exit 5 for an unknown match, player or source; exit 4 without a source; nothing changes."""
    before = cup.picture()
    finale("results", "void", "m9", "--source", "cup", "--because", "x", "--as", "eve").refused(5, "m9", "cup")
    finale(*VOID, "--player", "zoe", "--as", "eve").refused(5, "zoe")
    finale("results", "void", "m1", "--source", "cupp", "--because", "x", "--as", "eve").refused(5, "cupp")
    finale("results", "void", "m1", "--because", "x", "--as", "eve").refused(4, "--source")
    assert differing(before, cup.picture()) == []


def test_one_players_result_is_voided_alone(cup: World) -> None:
    finale(*VOID, "--player", "bob", "--as", "eve").ok()
    assert cup.redis.zrange(KEY, 0, -1, withscores=True) == [(b"ann", 7.0)]


def test_after_the_freeze_a_void_waits_for_corrections(cup: World) -> None:
    """The sealed season stays as it is, in ledger, Redis and store; the void is listed, and said to be late."""
    finale("close", "cup", "one", "--until", "seal").ok()
    before = cup.picture("void", "late_void", "match_result", "journal")
    answer = finale(*VOID, "--as", "eve", "--json").ok().json
    assert answer["seasons"][0]["effect"] == "kept for corrections"
    assert differing(before, cup.picture("void", "late_void", "match_result", "journal")) == []
    [row, _] = finale("results", "voided", "cup", "one", "--json").ok().json
    assert "after the freeze" in row["reason"]


def test_redis_away_the_void_stands_and_the_next_apply_writes_it(cup: World) -> None:
    """I6: the ledger is first: exit code tells that the board waits, and results apply brings it up."""
    cup.redis.set("elsewhere", 1)
    cup.redis.rename(KEY, "kept")
    cup.redis.set(KEY, "precious")
    answer = finale(*VOID, "--as", "eve", "--json")
    answer.refused(4, "the void is in the ledger", "is a string")
    assert answer.json["results"] == 2
    cup.redis.delete(KEY)
    cup.redis.rename("kept", KEY)
    finale("results", "apply", "cup", "one").ok()
    assert cup.redis.zrange(KEY, 0, -1, withscores=True) == [(b"ann", 2.0)]


def test_refused_conflicting_and_late_results_are_listed(cup: World) -> None:
    """Each with its reason, its place and its player; a row without a readable time is in every season's list."""
    path = cup.results(f"m1,ann,6,{AT}", f"m3,Zoë,x,{AT}", "m4,bob,1,2020-01-01T00:00:00Z", name="more.csv")
    assert finale("results", "import", str(path), "--board", "cup").code == 4
    [conflict] = finale("results", "conflicts", "cup", "one", "--json").ok().json
    assert (conflict["match_id"], conflict["player_id"], conflict["points"], conflict["line"]) == ("m1", "ann", "6", 2)
    assert "5 points" in conflict["reason"] and conflict["origin"] == "more.csv"
    [unread] = finale("results", "refused", "cup", "one", "--json").ok().json
    assert (unread["player_id"], unread["line"], unread["played_at"]) == ("Zoë", 3, None)
    assert len(finale("results", "refused", "cup", "--json").ok().json) == 2
    assert [row["match_id"] for row in finale("results", "refused", "cup", "--player", "bob", "--json").json] == ["m4"]
    assert finale("results", "late", "cup", "one").ok().out == "none\n"
    finale("close", "cup", "one", "--until", "freeze").ok()
    cup.played("cup", f"m5,ann,9,{AT}", f"m5,bob,9,{AT}")
    [late] = finale("results", "late", "cup", "one", "--player", "ann", "--json").ok().json
    assert (late["match_id"], late["points"]) == ("m5", 9) and "frozen" in late["reason"]
    shown = finale("results", "late", "cup", "one", "--limit", "1").ok().out
    assert "m5" in shown and "1 more; --limit" in shown
    finale("results", "late", "cup", "nine").refused(5, "nine")


@pytest.mark.parametrize(
    "command",
    [
        VOID[:-1],
        ("season", "hold", "cup", "one", "--because"),
        ("season", "release", "cup", "one", "--because"),
        ("pause", "--because"),
        ("resume", "--because"),
        ("rewards", "correct", "cup", "one", "--exclude", "ann", "--because"),
    ],
)
def test_a_reason_says_something_wherever_one_is_taken(cup: World, command: tuple[str, ...]) -> None:
    """--because with nothing in it is refused in one place for every command, and nothing is changed."""
    before = cup.picture()
    finale(*command, " ", "--as", "eve").refused(4, "--because is empty")
    assert differing(before, cup.picture()) == []
