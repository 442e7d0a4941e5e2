"""docs/operations.md: every command of the command line has its row, with options that it has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from jobs.cli import app
from tests.support.cli import REPOSITORY

PAGE = (REPOSITORY / "docs/operations.md").read_text("utf-8")
ROOT: Any = typer.main.get_command(app)


def leaves(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Return every command with its name, as ``season show``."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(leaves(ROOT))


def shown() -> list[tuple[str, str]]:
    """Return what the first column of the table of commands shows: the name of each command, and what follows it."""
    table = PAGE.partition("| command | what it is for |\n")[2].partition("\n\n")[0]
    found = []
    for row in table.splitlines()[1:]:
        group = ""
        for text in re.findall(r"`([^`]+)`", row.split(" | ")[0]):
            words = text.removeprefix("finale ").split()
            if words[0] not in ROOT.commands:  # of the group that the row began with
                words.insert(0, group)
            group = words[0]
            length = 2 if hasattr(ROOT.commands.get(words[0]), "commands") else 1
            found.append((" ".join(words[:length]), " ".join(words[length:])))
    return found


def test_every_command_has_its_row() -> None:
    """No command is forgotten, and none is shown that there is not."""
    assert {name for name, _ in shown()} == set(COMMANDS)


def test_what_is_shown_can_be_given() -> None:
    """Each option is one of the command's, and a command that must be told why is shown with --because."""
    for name, rest in shown():
        has = {option: one for one in COMMANDS[name].params for option in one.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= has.keys(), name
        needed = {option for option, one in has.items() if option.startswith("--") and one.required}
        told = {"--because", "--to"} & needed
        assert all(any(option in other for same, other in shown() if same == name) for option in told), name


def test_the_levers_that_need_a_reason_are_listed() -> None:
    """Each command that cannot do without --because is named in the paragraph about levers."""
    (listed,) = re.findall(r"`--because \"…\"` may be given to each lever, and must be to (.*?)\.\n", PAGE, re.DOTALL)
    needed = {
        name
        for name, command in COMMANDS.items()
        if any("--because" in one.opts and one.required for one in command.params)
    }
    named, group = set(), ""
    for text in (one for one in re.findall(r"`([^`]+)`", listed) if not one.startswith("--")):
        first, _, second = text.rpartition(" ")
        group = first or group
        named.add(next(name for name in (f"{group} {second}", second) if name in COMMANDS))
    assert named - {"season release"} == needed
