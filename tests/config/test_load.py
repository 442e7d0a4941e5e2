"""Loading: where the file is found, what the environment overrides, and that every fault is told and no secret is."""

from datetime import timedelta
from pathlib import Path

import pytest

from config.load import load
from leaderboard.errors import ConfigError, UnknownNameError

WEEKLY = 'calendar = { every = "week" }\n'
SECRET = "s3cr3t-of-mine"


def write(folder: Path, text: str, **tables: str) -> Path:
    for name, table in tables.items():
        (folder / f"{name}.toml").write_text(table)
    path = folder / "finale.toml"
    path.write_text(text)
    return path


def refused(path: Path, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(path, environ)
    message = str(caught.value)
    assert SECRET not in message
    assert caught.value.__cause__ is None
    return message


def test_the_least_file(tmp_path):
    """One board and nothing else: embedded servers, the archive in the home, every default."""
    path = write(tmp_path, f"[board.goals]\n{WEEKLY}")
    settings = load(path, {"FINALE_HOME": str(tmp_path / "home")})
    assert settings.servers.embedded
    assert settings.store == (tmp_path / "home/archive").as_uri()
    assert settings.board("goals").source == "goals"
    assert settings.reward_table("goals") is None
    assert settings.runner.lease == timedelta(seconds=30)
    assert settings.path == path


def test_the_file_is_named_by_argument_then_environment_then_folder(tmp_path, monkeypatch):
    """--config wins over FINALE_CONFIG, and that over ./finale.toml."""
    for name in ("here", "variable", "argument"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, f"[board.{name}]\n{WEEKLY}")
    monkeypatch.chdir(tmp_path / "here")
    variable = {"FINALE_CONFIG": str(tmp_path / "variable/finale.toml")}
    assert load(None, {}).boards.keys() == {"here"}
    assert load(None, variable).boards.keys() == {"variable"}
    assert load(tmp_path / "argument/finale.toml", variable).boards.keys() == {"argument"}


def test_only_the_unnamed_file_may_be_absent(tmp_path, monkeypatch):
    """Commands that need no boards work without ./finale.toml; a file that was named must be there all the same."""
    monkeypatch.chdir(tmp_path)
    settings = load(None, {"FINALE_HOME": str(tmp_path), "FINALE_STORE": "file:///srv/archive"}, optional=True)
    assert (settings.path, settings.boards, settings.store) == (None, {}, "file:///srv/archive")
    for path, environ in ((tmp_path / "named.toml", {}), (None, {"FINALE_CONFIG": "named.toml"})):
        with pytest.raises(ConfigError, match=r"named\.toml"):
            load(path, environ, optional=True)


def test_home_has_a_place_for_each_user(tmp_path, monkeypatch):
    """Without FINALE_HOME root's data lies in /var/lib/finale, another user's under XDG_DATA_HOME or ~/.local/share."""
    path = write(tmp_path, "")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert load(path, {}).home == Path("/var/lib/finale")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert load(path, {"HOME": "/h/ann"}).home == Path("/h/ann/.local/share/finale")
    assert load(path, {"HOME": "/h/ann", "XDG_DATA_HOME": "/data"}).home == Path("/data/finale")
    monkeypatch.chdir(tmp_path)
    assert load(path, {"FINALE_HOME": "relative"}).home == tmp_path / "relative"


def test_environment_wins_over_the_file(tmp_path):
    """FINALE_REDIS, FINALE_POSTGRES and FINALE_STORE replace what [servers] says; an empty one counts as not set."""
    path = write(
        tmp_path,
        '[servers]\nredis = "redis://file:1"\npostgres = "postgresql://file/db"\nstore = "s3://file-bucket"\n',
    )
    settings = load(
        path, {"FINALE_REDIS": "rediss://env:2/3", "FINALE_STORE": "s3://env-bucket/p", "FINALE_POSTGRES": ""}
    )
    assert settings.servers.redis.get_secret_value() == "rediss://env:2/3"
    assert settings.servers.postgres.get_secret_value() == "postgresql://file/db"
    assert settings.store == "s3://env-bucket/p"
    assert not settings.servers.embedded


def test_secrets_may_stand_in_files(tmp_path):
    """FINALE_…_FILE names a file that holds the URL, with or without a line end."""
    (tmp_path / "redis").write_text("redis://:pw@r:1/0\n")
    (tmp_path / "postgres").write_text("postgresql://u:pw@p/db")
    environ = {"FINALE_REDIS_FILE": str(tmp_path / "redis"), "FINALE_POSTGRES_FILE": str(tmp_path / "postgres")}
    settings = load(write(tmp_path, ""), environ)
    assert settings.servers.redis.get_secret_value() == "redis://:pw@r:1/0"
    assert settings.servers.postgres.get_secret_value() == "postgresql://u:pw@p/db"


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"FINALE_REDIS_FILE": "/nowhere/at/all"}, ["FINALE_REDIS_FILE", "/nowhere/at/all", "No such file"]),
        ({"FINALE_STORE_FILE": "{tmp}/empty"}, ["FINALE_STORE_FILE", "empty file"]),
        ({"FINALE_REDIS": f"redis://:{SECRET}@h", "FINALE_REDIS_FILE": "{tmp}/empty"}, ["both set"]),
        ({"FINALE_REDIS": f"redis://:{SECRET}@h"}, ["together", "FINALE_POSTGRES"]),
        ({"FINALE_POSTGRES": f"postgresql://u:{SECRET}@h/d"}, ["together", "FINALE_REDIS"]),
        ({"FINALE_REDIS": f"redis+sentinel://:{SECRET}@h"}, ["FINALE_REDIS", "must name the service"]),
        ({"FINALE_REDIS": f"redis+cluster://:{SECRET}@h/0/more"}, ["FINALE_REDIS"]),
        ({"FINALE_REDIS": f"http://:{SECRET}@h"}, ["http:// is not spoken"]),
        ({"FINALE_REDIS": f"redis://:{SECRET}#@h"}, ["percent-encode"]),
        ({"FINALE_REDIS": f"redis://:{SECRET}/@h:1"}, ["percent-encode"]),
        ({"FINALE_REDIS": f"{SECRET}"}, ["must be a URL like redis://"]),
        ({"FINALE_POSTGRES": f"mysql://u:{SECRET}@h/d"}, ["mysql:// is not spoken", "postgresql://"]),
        ({"FINALE_STORE": "gs://"}, ["FINALE_STORE", "gs://"]),
        ({"FINALE_STORE": f"s3://key:{SECRET}@bucket"}, ["credentials"]),
    ],
)
def test_refuses_bad_servers_without_their_secrets(tmp_path, environ, words):
    """A server that cannot be used is refused with its variable and the remedy; the URL never shows."""
    (tmp_path / "empty").write_text("\n")
    message = refused(
        write(tmp_path, ""), **{name: value.replace("{tmp}", str(tmp_path)) for name, value in environ.items()}
    )
    assert all(word in message for word in words), message


def test_secrets_in_the_file_do_not_show_either(tmp_path):
    """Wrong keys, wrong types and wrong URLs in [servers] are refused without their values."""
    text = (
        f'redis = "{SECRET}"\n[servers]\nredis = "redis://:{SECRET}@h:x"\n'
        f'postgres = ["{SECRET}"]\npassword = "{SECRET}"\n'
    )
    message = refused(write(tmp_path, text))
    assert "4 faults" in message
    assert "servers.password is an unknown key" in message
    assert "servers" in refused(write(tmp_path, f'servers = "redis://:{SECRET}@h"\n'))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f'[board.goals]\nagregate = "sum"\n{WEEKLY}',
            ["board.goals.agregate", "unknown key", "did you mean aggregate?"],
        ),
        ('[board.goals]\ncalendar = { evry = "year" }', ["board.goals.calendar.evry", "did you mean every?"]),
        (f'[board.goals]\nties = {{ buy = "shared" }}\n{WEEKLY}', ["board.goals.ties.buy", "did you mean by?"]),
        (f"[boards.goals]\n{WEEKLY}", ["boards is an unknown key", "did you mean board?"]),
        ('[runner]\nleese = "30s"', ["runner.leese", "did you mean lease?"]),
        ('[servers]\nredsi = "x"', ["servers.redsi", "did you mean redis?"]),
        (f'[board.goals]\nname = "x"\n{WEEKLY}', ["board.goals.name is an unknown key"]),
        (f"[board.Goals]\n{WEEKLY}", ["board.Goals", "lower-case letter"]),
        (f"[board.epoch]\n{WEEKLY}", ["board.epoch", "take it for something else"]),
        (f'[board.goals]\norder = "hihg"\n{WEEKLY}', ['board.goals.order = "hihg"', "did you mean high?"]),
        (f"[board.goals]\ngrace = 15\n{WEEKLY}", ["board.goals.grace = 15", "15m"]),
        (
            f'[board.goals]\nwhere = {{ region = ["eu"] }}\n{WEEKLY}',
            ["board.goals.where.region: must be text, a number"],
        ),
        ("[board.goals]", ["board.goals.calendar is missing"]),
        ("board.goals = 3", ["board.goals = 3: must be a table"]),
        ("board = 3", ["board = 3: must be a table"]),
        ('[runner]\nlease = "0s"', ['runner.lease = "0s"', "at least 1s"]),
        ('[runner]\npage_budget = "2s"', ["runner.page_budget", "from 1ms to 1s"]),
        ("[runner]\npage_budget = 2", ["runner.page_budget"]),
        ("[runner]\npage_rows = 0", ["runner.page_rows = 0", "greater than or equal to 10"]),
        (
            "[[board.goals.calendar.seasons]]\nid = 'a'\nstarts_at = 2026-01-01",
            ["board.goals.calendar.seasons[1].ends_at is missing"],
        ),
        (
            "[board.goals]\ncalendar = { seasons = [{ id = 'a', starts_at = 2026-01-01, ends_at = 2026-03-01 },"
            " { id = 'b', starts_at = 2026-02-01, ends_at = 2026-04-01 }] }",
            ["board.goals.calendar", "overlap", "a [2026-01-01", "b [2026-02-01"],
        ),
    ],
)
def test_refuses_with_place_value_and_remedy(tmp_path, text, words):
    """Every fault names the file, the key with its full place, the value where it is plain, and what is right."""
    path = write(tmp_path, text)
    message = refused(path)
    assert str(path) in message
    assert all(word in message for word in words), message


def test_tells_every_fault_at_once(tmp_path):
    """Three faults in three tables are told together."""
    message = refused(write(tmp_path, f"[runner]\nleese = 1\n[board.a]\norder = 1\n{WEEKLY}[board.b]\n"))
    assert "3 faults" in message
    assert all(place in message for place in ("runner.leese", "board.a.order", "board.b.calendar"))


@pytest.mark.parametrize("text", ["[board.goals\n", "a = \n", "a = 1\na = 2\n", 'a = "\n'])
def test_broken_toml_names_file_line_and_column(tmp_path, text):
    """What is no TOML is refused with file, line and column."""
    path = write(tmp_path, text)
    assert f"{path}, line " in (message := refused(path))
    assert ", column " in message


@pytest.mark.parametrize("made", ["missing", "folder", "binary"])
def test_a_file_that_cannot_be_read_hints_at_init(tmp_path, made):
    """A configuration that is not there, or no text, is refused with the way to a working one."""
    path = tmp_path / "finale.toml"
    if made == "folder":
        path.mkdir()
    if made == "binary":
        path.write_bytes(b"a = '\xff'")
    message = refused(path)
    assert str(path) in message
    assert "finale init" in message


def test_a_reward_table_whose_path_cannot_be_one_is_told(tmp_path):
    """A null byte in a path is a fault of the configuration and no traceback."""
    path = write(tmp_path, f'[board.goals]\nrewards = "a\\u0000b"\n{WEEKLY}')
    assert "board.goals.rewards" in (message := refused(path))
    assert "null byte" in message


def test_a_byte_order_mark_is_no_fault(tmp_path):
    """Some editors put a byte order mark first."""
    path = tmp_path / "finale.toml"
    path.write_bytes(b"\xef\xbb\xbf[board.goals]\n" + WEEKLY.encode())
    assert load(path, {}).board("goals").name == "goals"


TABLE = "version = 1\n[[rule]]\nname = 'all'\nall = true\ngrant = { gems = 1 }\n"


def test_reward_tables_are_found_beside_the_file(tmp_path, monkeypatch):
    """The path of a reward table counts from the configuration file, not from the working folder."""
    path = write(tmp_path, f'[board.goals]\nrewards = "goals.toml"\n{WEEKLY}[board.plain]\n{WEEKLY}', goals=TABLE)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    settings = load(path, {})
    assert settings.reward_table("goals").rule[0].name == "all"
    assert settings.reward_table("plain") is None
    with pytest.raises(UnknownNameError):
        settings.reward_table("other")


def test_reward_table_faults_name_their_file(tmp_path):
    """The faults of several tables come together, each with file, place and reason; a missing file is one."""
    text = "".join(f'[board.{name}]\nrewards = "{name}.toml"\n{WEEKLY}' for name in ("good", "bad", "gone"))
    message = refused(write(tmp_path, text, good=TABLE, bad=TABLE.replace("gems = 1", "gems = 0")))
    assert f"{tmp_path / 'bad.toml'}: rule 1 ('all'), line 5, grant: gems = 0" in message
    assert "board.gone.rewards = 'gone.toml' cannot be read" in message
    assert "good.toml" not in message


def test_unknown_board_lists_the_known_ones(tmp_path):
    """A board that does not exist is answered with those that do, and the nearest."""
    settings = load(write(tmp_path, f"[board.goals]\n{WEEKLY}[board.arena]\n{WEEKLY}"), {})
    with pytest.raises(UnknownNameError, match=r"'gaols'\. boards: arena, goals\. did you mean goals\?"):
        settings.board("gaols")
    with pytest.raises(UnknownNameError, match="boards: arena, goals"):
        settings.board("xyz")
