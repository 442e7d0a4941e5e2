"""What a person is shown: ids and keys exactly as they are, one fault a line, and nothing that drives a terminal."""

from __future__ import annotations

import pytest

from jobs import output
from leaderboard.errors import InputError
from tests.support.cli import World, finale


def told(capsys: pytest.CaptureFixture[str], message: str, detail: str = "", hint: str = "") -> str:
    output.print_error(InputError(message, detail=detail, hint=hint))
    return capsys.readouterr().err


def test_with_json_the_error_is_on_stdout_too(world: World) -> None:
    """Every class of error is one object on stdout, its words on stderr; a result that stands there stays alone."""
    refused = finale("season", "list", "nothing", "--json").refused(3, "no configuration")
    assert refused.json["error"]["code"] == 3 and refused.json["error"]["hint"]
    world.configure('[board.cup]\nties = "shared"\ncalendar = { every = "year" }\n')
    refused = finale("close", "cup", "s1999", "--json").refused(5, "s1999")
    assert refused.json == {
        "error": {key: refused.json["error"][key] for key in ("message", "detail", "hint")} | {"code": 5}
    }
    assert refused.json["error"]["message"] in refused.err
    assert finale("close", "cup", "s1999").refused(5, "s1999").out == ""
    assert isinstance(finale("doctor", "--json", "cup").json, list | dict)
    assert finale("season", "list", "--json").ok().json == []


def test_names_that_read_like_emoji_or_markup_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """A board may be called "one", and its key is then lb:one:s2025; an operator copies keys out of errors."""
    shown = told(capsys, "lb:one:s2025 differs", "player ':fire:' and '[red]x[/]'", "look at lb:100:s1")
    assert shown == "error: lb:one:s2025 differs\n  player ':fire:' and '[red]x[/]'\n  hint: look at lb:100:s1\n"
    output.print_table(["key"], [["lb:one:s2025"], [":fire:"]])
    assert capsys.readouterr().out.split() == ["key", "lb:one:s2025", ":fire:"]


def test_several_faults_are_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    """A detail of several lines stays that; other control characters are written out."""
    assert told(capsys, "two\nfaults", "line 4: a\nline 5: \x1b[31mb") == (
        "error: two\\x0afaults\n  line 4: a\n  line 5: \\x1b[31mb\n"
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\u202eb", "a\\u202eb"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("a\u200db", "a\\u200db"),
        ("👩\u200d🚀 می\u200cخ", "👩\u200d🚀 می\u200cخ"),
        (b"\xffz".decode("utf-8", "surrogateescape"), "\\xffz"),
        (b"\xffz".decode(errors="backslashreplace"), "\\xffz"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_turns_the_writing_round_or_hides_is_written_out(name: str, shown: str) -> None:
    """A player's id must not rearrange an operator's screen; joiners inside emoji and scripts stay as they are."""
    assert output.shown(name) == shown


def test_a_failed_step_is_logged_with_detail_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """As docs/operations.md says, also where close and clean log it."""
    assert output.told_of(InputError("m", detail="d", hint="h")) == {
        "error": "InputError",
        "message": "m",
        "detail": "d",
        "hint": "h",
    }
