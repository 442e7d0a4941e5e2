"""What is shown of the settings, and the schema of the file."""

import json
import tomllib

import pytest
from pydantic import ValidationError

from config.example import write_example
from config.load import load
from config.settings import File, Settings
from config.show import json_schema, show
from leaderboard.board import Board

SECRET = "hunter2hunter2"


@pytest.fixture
def settings(tmp_path):
    write_example(tmp_path)
    servers = {"FINALE_REDIS": f"redis://u:{SECRET}@r:1/2", "FINALE_POSTGRES": f"postgresql://u:{SECRET}@p:5/db"}
    return load(tmp_path / "finale.toml", {**servers, "FINALE_HOME": str(tmp_path / "home")})


def test_show_masks_secrets(settings):
    """Host, port and database of a server show, its user and password do not."""
    shown = json.loads(show(settings))
    assert shown["servers"]["redis"] == "redis://***:***@r:1/2"
    assert shown["servers"]["postgres"] == "postgresql://***:***@p:5/db"
    assert SECRET not in show(settings)
    assert SECRET in show(settings, masked=False)


def test_no_repr_or_dump_shows_a_secret(settings):
    """Settings that land in a log or a traceback give nothing away."""
    assert (
        SECRET
        not in f"{settings!r} {settings} {settings.servers!r} {settings.model_dump()} {settings.model_dump_json()}"
    )


def test_show_tells_every_value_in_force(settings):
    """Defaults are shown too: a board shown can be read back and is the same board."""
    shown = json.loads(show(settings))
    for name, board in settings.boards.items():
        assert Board.model_validate({"name": name, **shown["board"][name]}) == board
    assert shown["runner"]["lease"] == "30s"
    assert shown["rewards"]["goals"] == settings.reward_table("goals").definition()


def test_show_says_embedded(tmp_path):
    """Where no server is configured, it says so."""
    write_example(tmp_path)
    shown = json.loads(show(load(tmp_path / "finale.toml", {"FINALE_HOME": str(tmp_path)})))
    assert shown["servers"] == {"redis": "embedded", "postgres": "embedded", "store": (tmp_path / "archive").as_uri()}


def test_settings_need_the_table_of_every_board_that_names_one(tmp_path):
    """Settings without the reward table that a board names are refused: nobody would be rewarded, silently."""
    board = Board.model_validate({"name": "a", "calendar": {"every": "day"}, "rewards": "a.toml"})
    with pytest.raises(ValidationError, match="name one"):
        Settings(boards={"a": board}, home=tmp_path)


def test_schema_knows_the_keys_of_the_file():
    """The schema is JSON and has every table and key; a board's name is the header of its table, no key."""
    schema = json.loads(json.dumps(json_schema()))
    assert schema["properties"].keys() == {"servers", "runner", "board"}
    board = schema["$defs"]["Board"]
    assert board["properties"].keys() == (Board.model_fields.keys() - {"name"}) | {"segments", "segment_by"}
    assert board["required"] == ["calendar"]
    assert board["properties"]["grace"]["default"] == "15m"
    assert board["additionalProperties"] is False


def test_schema_defaults_are_what_the_file_would_take():
    """A default copied from the schema into the file is valid and changes nothing."""
    runner = json_schema()["$defs"]["Runner"]["properties"]
    text = "[runner]\n" + "".join(f"{name} = {json.dumps(each['default'])}\n" for name, each in runner.items())
    assert File.model_validate(tomllib.loads(text)) == File()
