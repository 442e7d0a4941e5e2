"""finale rewards check, preview and approve, and the facts that decide grants, as an operator meets them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from archive.parts import encode
from rewards.facts import KINDS
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


@pytest.fixture
def game(world: World) -> Iterator[World]:
    """Tables of the game's own beside the ledger: bans, who may win, and leagues."""
    world.sql("create schema game")
    world.sql("create table game.bans (player_id text, reason text, banned_at timestamptz)")
    world.sql("insert into game.bans values ('a', 'bot', '2021-06-30'), ('b', 'late ban', '2021-07-02')")
    world.sql(
        "create table game.leagues as select * from (values ('a', 'gold'), ('b', 'gold'), ('c', 'tin'), ('d', 'tin'))"
        " as t(player_id, league)"
    )
    yield world
    world.sql("drop schema game cascade")


def test_exclusions_by_sql_are_bound_to_the_season(game: World) -> None:
    """The user's SQL is given the season's bounds; who was banned after its end is not excluded."""
    played(game, 'exclude = [{ sql = "select player_id, reason from game.bans where banned_at < %(ends_at)s" }]')
    finale("close", "cup", "s1").ok()
    assert granted(game) == {"b": [100], **{name: [10] for name in "cdef"}}


def test_exclusions_from_a_table_and_minimum_matches_and_points(game: World) -> None:
    """Both banned players, who has fewer points than two, and all who played less than two matches but a, are out."""
    played(game, 'exclude = [{ table = "game.bans" }]\neligible = { min_points = 2 }')
    finale("close", "cup", "s1").ok()
    assert granted(game) == {"c": [100], "d": [10], "e": [10]}
    played(game, "eligible = { min_matches = 2 }", season=2)
    finale("close", "cup", "s2").ok()
    assert granted(game, "s2") == {"a": [100]}
    facts = finale("archive", "show", "cup", "s2", "--kind", "grants", "--json").ok().json["facts"]
    assert [(file["kind"], file["rows"], file["told"]) for file in facts] == [("matches", 6, "the ledger")]


def test_a_player_of_the_ledger_whom_the_board_cannot_name_holds(world: World) -> None:
    """Matches of a player whose id is no text: told by its bytes, and nobody is paid."""
    played(world, "eligible = { min_matches = 2 }")
    finale("close", "cup", "s1", "--until", "seal").ok()
    world.sql("update finale.player_total set player_id = '\\xff' where player_id = 'f'")
    finale("close", "cup", "s1").refused(22, "so nobody is paid", "the fact matches", "b'\\xff'")


def test_leagues_have_places_of_their_own(game: World) -> None:
    """Whoever is first of a league is first there, wherever on the board; players of none have the board's rules."""
    rules = (
        '[[rule]]\nname="best"\nleague="*"\nrank="1"\ngrant={gems=7}\n[[rule]]\nname="rest"\nall=true\ngrant={gems=1}\n'
    )
    played(game, 'leagues = { table = "game.leagues" }', rules=rules)
    finale("close", "cup", "s1", "--until", "seal").ok()
    told = finale("rewards", "preview", "cup", "s1", "--json").ok().json
    assert [(one["league"], one["last_in"]["player_id"]) for one in told["lines"]] == [("gold", "a"), ("tin", "c")]
    finale("close", "cup", "s1").ok()
    assert granted(game) == {"a": [7], "b": [1], "c": [7], "d": [1], "e": [1], "f": [1]}


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ('exclude = [{ file = "nowhere.csv" }]', ["nowhere.csv cannot be read"]),
        ('exclude = [{ table = "game.nothing" }]', ["game.nothing"]),
        (
            'exclude = [{ sql = "select reason from game.bans" }]',
            ["exclude 1 of cup.toml: facts", "lack the column player_id"],
        ),
        (
            'exclude = [{ sql = "select null::text as player_id" }]',
            ["exclude 1 of cup.toml: facts", "a player_id that is null"],
        ),
        (
            'exclude = [{ table = "game.bans" }, { sql = "select 1.5 as player_id" }]',
            ["exclude 2 of cup.toml: facts", "a player_id that is no id: 1.5 (Decimal)", "player_id::text"],
        ),
        (
            'eligible = { sql = "delete from game.bans returning player_id" }',
            ["eligible of cup.toml: ", "so nobody is paid"],
        ),
        ('eligible = { sql = "select player_id from game.bans; drop table game.bans" }', ["so nobody is paid"]),
        (
            "leagues = { sql = \"select player_id, reason as league from game.bans union all select 'a', 'x'\" }",
            ["league"],
        ),
        (
            "leagues = { sql = \"select 'a' as player_id, 7 as league\" }",
            ["leagues of cup.toml: ", "league", "7", "::text"],
        ),
        ("exclude = [{ sql = \"select 'a' as player_id, 3 as reason\" }]", ["excluded", "reason", "3"]),
        ("eligible = { sql = \"select decode('ff', 'hex') as player_id\" }", ["eligible", "player_id", "xff"]),
        (
            'leagues = { sql = "select n as player_id, n::text as league from generate_series(1, 1001) n" }',
            ["1,001 leagues"],
        ),
    ],
)
def test_facts_that_cannot_be_used_hold_the_season(game: World, head: str, words: list[str]) -> None:
    """I4: what is wrong with a file, a table or SQL is told, and nobody is paid; SQL can change nothing."""
    rules = RULES.replace("all   = true", 'all   = true\nleague = "*"') if "leagues" in head else RULES
    played(game, head, rules=rules)
    finale("close", "cup", "s1").refused(22, "so nobody is paid", *words)
    assert granted(game) == {}
    assert game.sql("select count(*) from game.bans") == [(2,)]


def test_a_preview_names_the_rule_and_the_table_of_facts_that_cannot_be_used(world: World) -> None:
    """Of the table that would pay, and of another one that is tried."""
    played(world, 'eligible = { file = "no.csv" }')
    finale("rewards", "preview", "cup", "s1").refused(4, "eligible of cup.toml", "no.csv cannot be read")
    other = world.folder / "other.toml"
    other.write_text(f"version = 1\nexclude = [{{ sql = 'select true as player_id' }}]\n{RULES}")
    found = finale("rewards", "preview", "cup", "s1", "--table", str(other))
    found.refused(4, "exclude 1 of ", "other.toml: facts", "no id: True (bool)")


def test_a_file_with_a_quote_that_is_not_closed_holds_the_season(world: World) -> None:
    """I4: players on the lines after the quote would be paid; mended and released, they are not."""
    played(world, 'exclude = [{ file = "q.csv" }]')
    (world.folder / "q.csv").write_text('player_id,reason\nc,"cheater\nb,bot\na,bot\n')
    finale("close", "cup", "s1").refused(22, "so nobody is paid", "q.csv, line 2", "unexpected end of data")
    assert granted(world) == {}
    (world.folder / "q.csv").write_text('player_id,reason\nc,"cheater"\nb,bot\na,bot\n')
    finale("season", "release", "cup", "s1", *NAME).ok()
    finale("close", "cup", "s1").ok()
    assert granted(world) == {"d": [100], "e": [10], "f": [10]}


def test_exclusions_that_match_nobody_are_told(game: World) -> None:
    """A stray space or quote in an id would pay who was meant: preview and close name such ids, quoted.

    Players of a table who are not on the board are told in the preview, and warned of if it has no others.
    """
    game.sql("insert into game.bans values ('elsewhere', 'bot', '2021-06-30')")
    played(game, 'exclude = [{ file = "x.csv" }, { table = "game.bans" }, { sql = "select 7 as player_id" }]')
    (game.folder / "x.csv").write_text('player_id,reason\n b,x\nc ,x\na"1,x\nd,x\n')
    finale("close", "cup", "s1", "--until", "seal").ok()
    told = finale("rewards", "preview", "cup", "s1", "--json").ok().json
    assert (told["removed"], told["not_on_board"]) == (
        3,
        [
            {"source": "file x.csv", "players": 3, "of": 4, "first": [" b", "c ", 'a"1']},
            {"source": "table game.bans", "players": 1, "of": 3, "first": ["elsewhere"]},
            {"source": "sql", "players": 1, "of": 1, "first": ["7"]},
        ],
    )
    file, table, sql = (
        """file x.csv excludes 3 players not on the board: ' b', 'c ', 'a"1'""",
        "table game.bans excludes 1 player not on the board: 'elsewhere'",
        "sql excludes 1 player not on the board: '7'",
    )
    assert all(one in finale("rewards", "preview", "cup", "s1").ok().out for one in (file, table, sql))
    log = [json.loads(line) for line in finale("close", "cup", "s1").ok().err.splitlines()]
    assert [line["warning"] for line in log if "warning" in line] == [file, sql]


def test_facts_that_are_sealed_do_not_change_with_their_source(game: World) -> None:
    """I2, I10: the source changes after the seal; closing again and verifying still see what was used."""
    played(game, 'exclude = [{ table = "game.bans" }]')
    finale("close", "cup", "s1").ok()
    game.sql("delete from game.bans")
    before = game.picture()
    finale("close", "cup", "s1").ok()
    assert differing(before, game.picture()) == []
    (path,) = game.files("facts")
    assert path.rpartition("excluded-")[2][:16] == sha256((game.store / path).read_bytes()).hexdigest()[:16]
    finale("archive", "verify", "cup", "s1").ok()
    (game.store / path).write_bytes(b"other")
    finale("archive", "verify", "cup", "s1").refused(30, "facts")


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


def test_every_kind_of_fact_has_a_file_that_strangers_can_read() -> None:
    """I10: the kinds are those that docs/archive-format.md tells of, and each can be encoded without rows."""
    from rewards.facts import schema

    for kind in KINDS:
        assert encode(schema(kind).empty_table())
