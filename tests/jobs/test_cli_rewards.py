"""finale rewards check, preview and approve, as an operator meets them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import REPOSITORY, World, differing, finale

CONFIG = """
[board.cup]
ties = "shared"
grace = "0s"
rewards = "cup.toml"
[board.cup.calendar]
seasons = [
  { id = "s1", starts_at = 2021-01-01T00:00:00, ends_at = 2021-07-01T00:00:00 },
  { id = "s2", starts_at = 2022-01-01T00:00:00, ends_at = 2022-07-01T00:00:00 },
  { id = "s3", starts_at = 2023-01-01T00:00:00, ends_at = 2050-07-01T00:00:00 },
]
"""
RULES = """
[[rule]]
name  = "first"
rank  = "1"
grant = { gems = 100 }
[[rule]]
name  = "rest"
all   = true
grant = { gems = 10 }
"""
NAME = ("--as", "ana", "--because", "agreed")


def played(world: World, head: str = "", season: int = 1, rules: str = RULES) -> None:
    """Six players, a with 6 points in 3 matches, b with 5 in one, … f with 1; the season is over, but for s3."""
    world.configure(CONFIG, cup=f"version = 1\n{head}\n{rules}")
    day = f"{2020 + season}-02-0"
    rows = [
        f"s{season}-{name},{name},{points},{day}1T00:00:00Z"
        for name, points in zip("bcdef", (5, 4, 3, 2, 1), strict=True)
    ]
    rows += [f"s{season}-a{match},a,2,{day}{match}T00:00:00Z" for match in (1, 2, 3)]
    world.played("cup", *rows)


def granted(world: World, season: str = "s1") -> dict[str, list[int]]:
    """Return the gems of each player, by id."""
    rows = world.sql(
        "select convert_from(player_id, 'UTF8'), array_agg(amount order by amount) from finale.grants"
        " join finale.season using (season_id) where season = %s group by 1 order by 1",
        season,
    )
    return dict(rows)


def test_preview_is_what_is_paid(world: World) -> None:
    """C78: who, how many, the cost and the lines before anyone is paid; the close then pays exactly that hash."""
    played(world)
    finale("close", "cup", "s1", "--until", "seal").ok()
    before = world.picture()
    told = finale("rewards", "preview", "cup", "s1", "--json").ok().json
    assert not told["live"]
    assert (told["players"], told["grants"], told["paid_players"]) == (6, 6, 6)
    assert [(one["rule"], one["players"], one["items"]) for one in told["rules"]] == [
        ("first", 1, {"gems": 100}),
        ("rest", 5, {"gems": 50}),
    ]
    assert [who["player_id"] for who in told["rules"][1]["who"]] == ["b", "c", "d", "e", "f"]
    assert told["cost"] == [
        {"item": "gems", "cost": 150, "budget": None, "over_budget": False, "before": None, "difference": None}
    ]
    (line,) = told["lines"]
    assert (line["rule"], line["last_in"]["player_id"], line["first_out"]["player_id"]) == ("first", "a", "b")
    assert (line["last_in"]["points"], line["first_out"]["points"]) == (6, 5)
    assert differing(before, world.picture()) == [f"file {told['report']}"]
    assert json.loads((world.store / told["report"]).read_text())["hash"] == told["hash"]
    assert finale("rewards", "preview", "cup", "s1", "--json").ok().json["report"] == told["report"]
    finale("close", "cup", "s1").ok()
    assert finale("archive", "show", "cup", "s1", "--kind", "grants", "--json").ok().json["digest"] == told["hash"]
    shown = finale("rewards", "preview", "cup", "s1").ok().out
    assert "6 players; 6 grants to 6" in shown and told["hash"] in shown


def test_preview_of_a_live_season_says_so(world: World) -> None:
    """A season that is still played is shown as if it closed now; its hash cannot be approved."""
    played(world, season=3)
    told = finale("rewards", "preview", "cup", "s3", "--json").ok().json
    assert told["live"] and told["grants"] == 6
    assert told["rules"][0]["who"] == [{"position": 1, "rank": 1, "player_id": "a", "items": {"gems": 100}}]
    assert "as if the season closed now" in finale("rewards", "preview", "cup", "s3").ok().out
    finale("rewards", "approve", "cup", "s3", told["hash"], *NAME).refused(23, "made before the season was sealed")


def test_a_preview_says_what_can_still_change(world: World) -> None:
    """Frozen: no result counts any more; with a snapshot it is read from that, not from Redis; sealed: nothing can.

    A hash from before the seal is refused for what it is, until the same grants are previewed after it.
    """
    played(world)
    shown = {}
    for step in ("freeze", "snapshot", "reconcile", "seal"):
        finale("close", "cup", "s1", "--until", step).ok()
        told = finale("rewards", "preview", "cup", "s1", "--json").ok().json
        assert (told["grants"], told["live"], told["sealed"]) == (6, step == "freeze", step == "seal")
        shown[step] = finale("rewards", "preview", "cup", "s1").ok().out.splitlines()[0]
        if step == "reconcile":
            world.redis.delete("leaderboard:cup:s1")
            assert finale("rewards", "preview", "cup", "s1", "--json").ok().json["hash"] == told["hash"]
            early = told["hash"]
            words = ("before the season was sealed", "is reconciled now", "preview it again")
            finale("rewards", "approve", "cup", "s1", early, *NAME).refused(23, *words)
    assert shown["freeze"].startswith("from Redis as it stands: no result counts any more")
    assert "still to be compared with the ledger" in shown["snapshot"]
    assert "was compared with the ledger; it is still to be sealed" in shown["reconcile"]
    assert shown["seal"].startswith("cup/s1: 6 players")
    finale("rewards", "approve", "cup", "s1", early, *NAME).ok()


def test_preview_of_a_live_board_with_shards(world: World) -> None:
    """The places are those of the whole board, over however many sorted sets it is spread."""
    shards = '[board.cup]\nshards = { by = "player", count = 3 }'
    world.configure(CONFIG.replace("[board.cup]", shards, 1), cup=f"version = 1\n{RULES}")
    world.played("cup", *(f"m{at},p{at},{at},2023-02-01T00:00:00Z" for at in range(1, 30)))
    told = finale("rewards", "preview", "cup", "s3", "--json").ok().json
    assert (told["live"], told["players"]) == (True, 29)
    assert [who["player_id"] for who in told["rules"][0]["who"]] == ["p29"]
    assert [who["player_id"] for who in told["rules"][1]["who"]] == [f"p{at}" for at in range(28, 0, -1)]


def test_a_rehearsal_with_a_new_table_on_a_past_season(world: World) -> None:
    """Any past season can be shown with a new table, with the difference to the season before; nothing is paid."""
    played(world)
    finale("close", "cup", "s1").ok()
    played(world, season=2)
    finale("close", "cup", "s2").ok()
    (world.folder / "next.toml").write_text('version = 1\n[[rule]]\nname="half"\npercentile="50"\ngrant={gems=30}\n')
    paid = world.sql("select * from finale.grants order by grant_id")
    told = finale("rewards", "preview", "cup", "s2", "--table", str(world.folder / "next.toml"), "--json").ok().json
    assert [(one["rule"], one["players"]) for one in told["rules"]] == [("half", 3)]
    assert told["before"]["season"] == "s1"
    assert (told["cost"][0]["cost"], told["cost"][0]["before"], told["cost"][0]["difference"]) == (90, 150, -60)
    assert world.sql("select * from finale.grants order by grant_id") == paid


def test_manual_approval_waits_and_pays_what_was_previewed(world: World) -> None:
    """The season holds, with the commands; approved by the first characters of the hash, it goes on and pays that."""
    played(world, 'approval = "manual"')
    held = finale("close", "cup", "s1").refused(22, "the grants wait for an approval", "finale rewards approve cup s1")
    assert "season release" not in held.err
    hint = held.err[held.err.index("hint:") :]
    assert hint.index("finale rewards preview cup s1") < hint.index("finale rewards approve cup s1 HASH")
    assert granted(world) == {} and world.files("staging") == []
    digest = finale("rewards", "preview", "cup", "s1", "--json").ok().json["hash"]
    finale("rewards", "approve", "cup", "s1", digest[:12], "--because", "fine").refused(4, "--as")
    finale("rewards", "approve", "cup", "s1", digest[:11], *NAME).refused(4, "12 characters")
    finale("rewards", "approve", "cup", "s1", "0" * 64, *NAME).refused(5, "no preview")
    finale("rewards", "approve", "cup", "s1", digest[:12], *NAME).ok()
    finale("close", "cup", "s1").ok()
    assert granted(world) == {"a": [100], **{name: [10] for name in "bcdef"}}
    approved = [
        (who, detail["because"]) for event, who, detail in world.journal("cup", "s1") if event == "rewards approved"
    ]
    assert approved == [("ana", "agreed")]
    finale("rewards", "approve", "cup", "s1", digest, *NAME).refused(23, "only what is to be paid next")


def test_what_differs_from_what_was_approved_holds(world: World) -> None:
    """Somebody is excluded after the approval: other grants than were seen, so nobody is paid until they are."""
    played(world, 'approval = "manual"\nexclude = [{ file = "bans.csv" }]')
    (world.folder / "bans.csv").write_text("player_id\n")
    finale("close", "cup", "s1", "--until", "seal").ok()
    digest = finale("rewards", "preview", "cup", "s1", "--json").ok().json["hash"]
    finale("rewards", "approve", "cup", "s1", digest, *NAME).ok()
    (world.folder / "bans.csv").write_text("player_id\na\n")
    finale("close", "cup", "s1").refused(22, "are not those that were approved", digest)
    assert granted(world) == {}
    again = finale("rewards", "preview", "cup", "s1", "--json").ok().json
    finale("rewards", "approve", "cup", "s1", again["hash"], *NAME).ok()
    finale("close", "cup", "s1").ok()
    assert granted(world) == {"b": [100], **{name: [10] for name in "cdef"}}


def test_a_budget_holds_until_a_cheaper_table_is_approved(world: World) -> None:
    """Caps of the table hold the season; another table is previewed, approved, and pays, and is what is sealed."""
    played(world, "budget = { gems = 149 }")
    finale("close", "cup", "s1").refused(22, "pass the budget", "gems: 150, the budget has 149")
    cheaper = world.folder / "cheaper.toml"
    cheaper.write_text("version = 1\nbudget = { gems = 149 }\n" + RULES.replace("100", "99"))
    told = finale("rewards", "preview", "cup", "s1", "--table", str(cheaper), "--json").ok().json
    assert not told["cost"][0]["over_budget"]
    finale("rewards", "approve", "cup", "s1", told["hash"], *NAME).ok()
    finale("close", "cup", "s1").ok()
    assert granted(world)["a"] == [99]
    sealed = finale("archive", "show", "cup", "s1", "--kind", "grants", "--json").ok().json
    assert sealed["reward_table"]["rule"][0]["grant"] == [{"item": "gems", "amount": 99}]


def test_check_finds_what_is_doubtful(world: World) -> None:
    """Gaps, overlaps, unreachable rules and a percentile that pays nobody, with exit code 3; a good table with 0."""
    table = world.folder / "table.toml"
    table.write_text(
        'version = 1\n[[rule]]\nname="a"\nrank="1-3"\ngrant={gems=1}\n[[rule]]\nname="b"\nrank="2-3"\ngrant={gems=1}\n'
        '[[rule]]\nname="c"\nrank="6-9"\ngrant={gems=1}\n[[rule]]\nname="d"\npercentile="0.29"\ngrant={gems=1}\n'
    )
    told = finale("rewards", "check", str(table), "--players", "300", "--json")
    assert told.code == 3
    assert [(one["kind"], one["rules"]) for one in told.json["findings"]] == [
        ("pays nobody", ["d"]),
        ("unreachable", ["b"]),
        ("gap", []),
    ]
    assert "it takes 345" in told.json["findings"][0]["what"]
    table.write_text(f"version = 1\n{RULES}")
    assert "nothing doubtful" in finale("rewards", "check", str(table)).ok().out
    played(world)
    assert finale("rewards", "check", "--board", "cup", "--json").ok().json == {"ok": True, "findings": []}
    finale("rewards", "check").refused(4, "--board")


def test_check_tells_what_to_do_about_a_file_that_it_cannot_read(tmp_path: Path) -> None:
    """A folder lists the tables in it, UTF-16 says how to save it; with and without a byte order mark."""
    table = tmp_path / "goals.toml"
    table.write_text(f"version = 1\n{RULES}", encoding="utf-16")
    finale("rewards", "check", str(table)).refused(4, "it is UTF-16", "hint: save it as UTF-8")
    finale("rewards", "check", str(tmp_path)).refused(4, "it is a folder", "hint: name a file in it: goals.toml")
    table.write_text(f"version = 1\n{RULES}", encoding="utf-16-le")
    finale("rewards", "check", str(table)).refused(4, "null bytes", "hint: save it as UTF-8")
    finale("rewards", "check", str(tmp_path / "none.toml")).refused(4, "No such file")


@pytest.mark.parametrize(
    "module", ["jobs.payout.previews", "jobs.payout.rewarding", "jobs.payout.facts", "jobs.commands.granting"]
)
def test_whatever_a_command_imports_first_can_be(module: str) -> None:
    """A process of its own, in which nothing was imported before, as an operator's command is."""
    subprocess.run([sys.executable, "-c", f"import {module}"], cwd=REPOSITORY, check=True, timeout=100)
