"""finale init, config and calendar, and the commands that need no configuration file."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import psycopg
import pytest
import redis

from tests.support.cli import World, differing, finale
from tests.support.servers import survivors

YEARLY = '[board.goals]\nties = "shared"\ncalendar = { every = "year" }\n'


@pytest.fixture
def bare(private_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and nothing configured."""
    for name in ("CONFIG", "REDIS", "POSTGRES", "STORE", "OPERATOR", "DEBUG"):
        monkeypatch.delenv(f"FINALE_{name}", raising=False)
    monkeypatch.setenv("FINALE_HOME", str(private_dir / "home"))
    (private_dir / "work").mkdir()
    monkeypatch.chdir(private_dir / "work")
    return private_dir / "work"


def test_init_writes_an_example_that_works_at_once(bare: Path) -> None:
    """init, config check, show, schema and calendar go through in an empty folder; a second init writes nothing."""
    finale("init").ok()
    assert sorted(path.name for path in bare.rglob("*.toml")) == ["arena.toml", "finale.toml", "goals.toml"]
    assert finale("config", "check", "--json").ok().json["boards"] == ["arena", "goals"]
    assert "good, boards: goals, arena" in finale("config", "check").ok().out
    assert json.loads(finale("config", "show").ok().out)["servers"]["redis"] == "embedded"
    assert json.loads(finale("config", "schema").ok().out)["title"] == "finale.toml"
    assert len(finale("calendar", "goals", "--next", "3", "--json").ok().json) == 3
    finale("init").refused(4, "nothing was written")


def test_config_show_masks_secrets(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No password of a URL is shown, wherever it came from."""
    world.configure(YEARLY)
    monkeypatch.setenv("FINALE_REDIS", "redis://me:hunter2@cache:6379/0")
    monkeypatch.setenv("FINALE_POSTGRES", "postgresql://me:hunter2@db/finale")
    shown = finale("config", "show").ok().out
    assert "hunter2" not in shown
    assert "cache:6379" in shown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[board.goals\n", ("line 1", "no TOML")),
        (YEARLY + 'aggregat = "sum"\n', ("board.goals.aggregat", "unknown key", "did you mean aggregate?")),
        (YEARLY + 'rewards = "absent.toml"\n', ("board.goals.rewards", "cannot be read")),
        (YEARLY.replace("goals", "Goals"), ("'Goals' cannot name a board",)),
        (
            '[board.b]\ncalendar = { seasons = [{ id = "one", starts_at = 2026-01-01, ends_at = 2026-03-01 },'
            ' { id = "two", starts_at = 2026-02-01, ends_at = 2026-04-01 }] }\n',
            ("one", "two", "overlap"),
        ),
        (YEARLY.replace('"year"', '"year", timezone = "Mars/Olympus"'), ("Mars/Olympus",)),
    ],
)
def test_a_faulty_configuration_is_refused_with_file_and_place(world: World, text: str, words: tuple[str, ...]) -> None:
    """Broken TOML, unknown keys, overlapping seasons: exit 3 from every command, and nothing was touched."""
    world.configure(text)
    before = world.picture()
    for command in (("config", "check"), ("tick",), ("close", "goals", "s2026")):
        finale(*command).refused(3, str(world.config), *words)
    assert differing(before, world.picture()) == []


def test_a_key_of_a_table_beside_is_told_where_it_belongs(world: World) -> None:
    """Seasons written on the board itself: the error names the table that they belong into."""
    world.configure("[board.goals]\nseasons = []\nmultiplier = 3\n")
    refused = finale("config", "check").refused(3, "board.goals.calendar = { seasons = … }")
    assert "board.goals.ties = { multiplier = … }" in refused.err


def test_calendar_shows_local_and_utc_bounds(world: World) -> None:
    """Ids with the local wall time and UTC, also across a change of the clocks; --from takes an instant."""
    world.configure('[board.b]\nties = "shared"\ncalendar = { every = "week", timezone = "Europe/Berlin" }\n')
    asked = ("calendar", "b", "--next", "2", "--from", "2026-03-24T00:00:00Z")
    first, second = finale(*asked, "--json").ok().json
    assert (first["season"], second["season"]) == ("s2026w13", "s2026w14")
    assert first["ends_at"] == second["starts_at"] == "2026-03-29T22:00:00Z"
    assert second["starts_local"] == "2026-03-30T00:00:00+02:00"
    assert first["starts_local"] == "2026-03-23T00:00:00+01:00"
    plain = finale(*asked).ok().out
    assert "2026-03-30 00:00:00 +0200" in plain
    assert "Europe/Berlin" in plain
    assert len(plain.splitlines()) == 3


@pytest.mark.parametrize("instant", ["yesterday", "2026-01-01T00:00:00", "0001-01-01T00:00:00+14:00"])
def test_calendar_takes_only_instants(world: World, instant: str) -> None:
    """--from without an offset, or no time at all, is exit 4."""
    world.configure(YEARLY)
    finale("calendar", "goals", "--from", instant).refused(4, "--from", "2026-01-31T00:00:00Z")
    finale("calendar", "goal").refused(5, "did you mean goals?")


def test_without_a_configuration_file_boards_are_asked_for(bare: Path) -> None:
    """A command that needs boards says where the file is missing, and how to get one."""
    for command in (("tick",), ("close", "goals", "s2026"), ("config", "check")):
        finale(*command).refused(3, "there is no configuration", "finale init")
    finale("--config", "elsewhere.toml", "up").refused(3, "elsewhere.toml")


def test_up_status_and_down_need_no_configuration_file(bare: Path, private_root: Path) -> None:
    """The embedded servers start, are found, are told where they live, and stop; nothing is left running."""
    assert finale("status", "--json").ok().json["redis"] == {"state": "stopped", "pid": None}
    assert finale("down").ok().out == "nothing was running\n"
    (bare / "finale.toml").write_text("[board.goals]\ncalendar = 3\n")  # a fault that no server is concerned with
    finale("config", "check").refused(3)
    running = set(survivors(private_root))
    try:
        urls = finale("up", "--json").ok().json
        assert finale("up", "--json").ok().json == urls
        status = finale("status", "--json").ok().json
        assert (status["redis"]["state"], status["postgres"]["state"], status["kept"]) == ("running", "running", True)
        assert "running" in finale("status").ok().out
        with redis.Redis.from_url(urls["redis"]) as client:
            assert client.ping()
        with psycopg.connect(urls["postgres"]) as connection:
            assert connection.execute("select count(*) from finale.season").fetchone() == (0,)
        assert finale("db", "migrate").ok().out == "the schema is up to date\n"
    finally:
        stopped = finale("down")
    assert stopped.ok().out == "stopped\n"
    assert set(survivors(private_root)) == running


def test_up_is_refused_where_servers_are_configured(world: World) -> None:
    """With servers of one's own there are none to start, stop or tell of."""
    world.configure(YEARLY)
    for command in ("up", "down", "status"):
        finale(command).refused(4, "the servers are configured")


def test_demo_needs_nothing_and_leaves_nothing(bare: Path, private_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A season from the first result to the forgotten key, every step told; folder and servers are gone afterwards."""
    scratch = bare / "tmp"
    scratch.mkdir(mode=0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    running = set(survivors(private_root))
    told = finale("demo", "--players", "300", "--seed", "7").ok().out
    for step in ("close", "freeze", "snapshot", "reconcile", "seal", "reward", "deliver", "clean"):
        assert f"   {step} " in told
    assert "900 results counted" in told
    assert "20 results came after the freeze" in told
    assert "0 of 300 players" in told
    assert "read_parquet(" in told
    assert list(scratch.iterdir()) == []
    assert set(survivors(private_root)) == running


def test_version_and_help_need_nothing(bare: Path) -> None:
    """--version tells the version; every command has help with an example."""
    assert finale("--version").ok().out.startswith("finale ")
    for command in (("close",), ("tick",), ("season", "show"), ("results", "import"), ("standings",), ("calendar",)):
        assert "Example: finale" in finale(*command, "--help").ok().out
