"""finale why: what support is asked, answered for players on the board, off it, excluded, corrected and unpaid."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cli import World, finale

TABLE = """
version = 1
[[rule]]
name = "first"
rank = "1"
grant = { "title.first" = 1, gems = 500 }
[[rule]]
name = "top three"
rank = "2-3"
grant = { gems = 100 }
[[rule]]
name = "top half"
percentile = "50"
grant = { gems = 50 }
[[rule]]
name = "scored"
at_least = 30
grant = { gems = 20 }
[[rule]]
name = "all"
all = true
grant = { gems = 10 }
"""
BOARD = """
[board.cup]
rewards = "cup.toml"
keep_live = "0s"
where = { region = "eu" }
ties = { by = "first_to_reach", unit = "minute" }
calendar = { seasons = [{ id = "s1", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
[board.asia]
source = "cup"
where = { region = "asia" }
calendar = { seasons = [{ id = "s1", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
CORRECT = ("rewards", "correct", "cup", "s1", "--as", "ana", "--because", "ticket 7")


@pytest.fixture
def played(world: World) -> World:
    """Ten players of Europe, p0 the last, p9 the first; one of Asia; a conflict, and a match that was voided."""
    world.configure(BOARD, cup=TABLE)
    rows = [f"m{n},p{n},{n * 10},2026-01-05T10:{n:02}:00Z,eu" for n in range(10)]
    rows += ["m20,twin,80,2026-01-05T12:08:00Z,eu", "m30,kim,99,2026-01-05T12:00:00Z,asia"]
    rows += ["m40,gone,70,2026-01-05T12:00:00Z,eu", "m5,p5,51,2026-01-05T10:05:00Z,eu"]
    path = world.folder / "results.csv"
    path.write_text("\n".join(["match_id,player_id,points,played_at,region", *rows, ""]))
    finale("results", "import", str(path), "--source", "cup").refused(4, "1 in conflict")
    finale("results", "void", "m40", "--source", "cup", "--because", "aimbot", "--as", "ana").ok()
    return world


@pytest.fixture
def closed(played: World) -> World:
    finale("close", "cup", "s1", "--as", "ops").ok()
    return played


def why(player: str, *words: str) -> Any:
    return finale("why", "cup", "s1", player, *words).ok()


def told(player: str) -> dict[str, Any]:
    found: dict[str, Any] = why(player, "--json").json
    return found


def taken(found: dict[str, Any]) -> list[str]:
    return [one["rule"] for one in found["rules"] if one["taken"]]


def test_a_player_who_just_missed_a_tier(closed: World) -> None:
    """Position, points, who is above and why, which rule was missed by how many places and points, and the grants."""
    found = told("p7")
    assert (found["standing"]["position"], found["standing"]["points"], found["players"]) == (4, 70, 11)
    assert found["standing"]["reached_at"] == "2026-01-05T10:07:00Z"
    assert found["above"]["player_id"] == "twin" and found["above"]["because"] == "10 more points"
    assert found["below"]["player_id"] == "p6"
    assert taken(found) == ["top half"]
    three = found["rules"][1]
    assert (three["places_short"], three["points_short"]) == (1, 10)
    assert three["why"] == "1 place below its last rank, 3"
    assert "only the first rule" in found["rules"][3]["why"]
    assert [(one["item"], one["amount"], one["delivery"]) for one in found["grants"]] == [("gems", 50, "readable")]
    page = why("p7").out
    for words in ("Rank 4, position 4 of 11: 70 points", "Just above: twin", "10 more points", "+50 gems (top half)"):
        assert words in page
    assert len(page.splitlines()) < 25


def test_ties_are_told_by_time(closed: World) -> None:
    """The same points, but the other was there first."""
    assert told("twin")["above"]["because"] == "the same points, reached 2 h earlier"
    assert told("p9")["above"] is None and "Nobody stands above." in why("p9").out


@pytest.mark.parametrize(
    ("player", "said"),
    [
        ("nobody", "never played, or another id"),
        ("gone", "all 1 results of this player in the season were voided"),
        ("kim", "are of another segment"),
    ],
)
def test_players_who_are_not_on_the_board(closed: World, player: str, said: str) -> None:
    """Never played, all voided, or in another segment, which is named with the points there."""
    found = told(player)
    assert found["standing"] is None and said in found["not_on_board"]["reason"]
    assert said in why(player).out
    if player == "kim":
        assert found["not_on_board"]["other_boards"] == [{"board": "asia", "season": "s1", "points": 99}]


def test_results_that_did_not_count(closed: World) -> None:
    """Voided and conflicting ones, and those that came late, each with its reason."""
    assert "aimbot" in told("gone")["did_not_count"]["voided"]["results"][0]["reason"]
    assert told("p5")["did_not_count"]["conflicting"]["total"] == 1
    path = closed.folder / "late.csv"
    path.write_text("match_id,player_id,points,played_at,region\nm99,p1,500,2026-01-06T10:00:00Z,eu\n")
    finale("results", "import", str(path), "--source", "cup").ok()
    found = told("p1")["did_not_count"]["late"]
    assert found["total"] == 1 and found["results"][0]["match_id"] == "m99"
    assert "Results that did not count, late: 1" in why("p1").out


def test_exclusions_and_corrections(closed: World) -> None:
    """Who was excluded and why, who moved up by it, what corrections brought, and voids after the freeze."""
    finale(*CORRECT, "--exclude", "p9").ok()
    out = told("p9")
    assert out["excluded"] == {"reason": "ticket 7", "source": "correction 1"} and taken(out) == []
    assert sum(one["amount"] for one in out["grants"] if one["item"] == "gems") == 0
    up = told("p7")
    assert up["moved"] == {"left_out_above": 1, "place": 3, "removed": "close_up"} and taken(up) == ["top three"]
    assert [(one["correction"], one["rule"], one["amount"]) for one in up["grants"]] == [
        (0, "top half", 50), (1, "top half", -50), (1, "top three", 100),
    ]  # fmt: skip  # a row a line
    assert "for the rules this is place 3" in why("p7").out
    finale("results", "void", "m8", "--source", "cup", "--because", "bug", "--as", "ana").ok()
    finale(*CORRECT, "--voided").ok()
    assert told("p8")["corrected"] == {"position": None}
    assert told("p7")["corrected"]["position"] == 3
    assert "(a correction): position 3" in why("p7").out


def test_a_season_that_is_being_played(played: World) -> None:
    """From the live board: place and neighbour; rules and grants come with the close."""
    finale("results", "apply", "cup", "s1").ok()
    found = told("p7")
    assert found["from"] == "the live board" and found["standing"]["position"] == 4
    assert found["above"]["because"] == "10 more points" and found["rules"] == found["grants"] == []
    assert "not on the board" in why("nobody").out.lower()


def test_no_part_is_read_that_cannot_hold_the_player(
    world: World, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Without outside facts the standings are never read whole: only rows by position, and the player by filters."""
    request.getfixturevalue("closed")

    def refuse(*_: object) -> Any:
        raise AssertionError("the standings were read whole")

    for module in ("jobs.payout.recomputing", "archive.fetch"):
        monkeypatch.setattr(f"{module}.read_parts_checked", refuse)
    assert taken(told("p7")) == ["top half"]


def test_who_is_not_eligible_is_told_what_is_missing(world: World) -> None:
    """Each condition of the table that is not met, by name, with what the player has and lacks; in text and JSON."""
    world.configure(
        BOARD, cup=TABLE.replace("version = 1", "version = 1\neligible = { min_matches = 3, min_points = 20 }")
    )
    rows = [f"m{n},ann,10,2026-01-05T10:0{n}:00Z,eu" for n in range(3)]
    rows += ["m8,bob,50,2026-01-05T10:00:00Z,eu", "m9,cid,5,2026-01-05T10:00:00Z,eu"]
    path = world.folder / "results.csv"
    path.write_text("\n".join(["match_id,player_id,points,played_at,region", *rows, ""]))
    finale("results", "import", str(path), "--source", "cup").ok()
    finale("close", "cup", "s1", "--as", "ops").ok()
    assert "Not eligible: 1 match, min_matches is 3, so 2 missing." in why("bob").out
    found = {player: told(player) for player in ("ann", "bob", "cid")}
    short = {
        player: {one["condition"]: (one["wanted"], one["has"], one["short"]) for one in each["not_eligible"]}
        for player, each in found.items()
    }
    assert short == {
        "ann": {},
        "bob": {"min_matches": (3, 1, 2)},
        "cid": {"min_matches": (3, 1, 2), "min_points": (20, 5, 15)},
    }
    assert {player: bool(each["grants"]) for player, each in found.items()} == {"ann": True, "bob": False, "cid": False}
