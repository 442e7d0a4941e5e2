"""The facts that decide grants, from files, tables and SQL: used as they are, sealed, or a hold that names them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256

import pytest

from archive.parts import encode
from rewards.facts import KINDS
from tests.jobs.test_cli_rewards import NAME, RULES, granted, played
from tests.support.cli import World, differing, finale


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


def test_every_kind_of_fact_has_a_file_that_strangers_can_read() -> None:
    """I10: the kinds are those that docs/archive-format.md tells of, and each can be encoded without rows."""
    from rewards.facts import schema

    for kind in KINDS:
        assert encode(schema(kind).empty_table())
