"""What a person is shown: ids and keys exactly as they are, one fault a line, and nothing that drives a terminal."""

from __future__ import annotations

import pytest

from jobs import output
from leaderboard.errors import InputError


def told(capsys: pytest.CaptureFixture[str], message: str, detail: str = "", hint: str = "") -> str:
    output.print_error(InputError(message, detail=detail, hint=hint))
    return capsys.readouterr().err


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
