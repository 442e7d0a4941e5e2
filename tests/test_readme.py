"""README.md: every command that it shows runs, and the session in it is what a terminal shows."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.support.cli import REPOSITORY, finale
from tests.support.servers import end_survivors

README = (REPOSITORY / "README.md").read_text("utf-8")
#: What differs from run to run: times of day, hashes, sizes that follow from the versions of libraries, seconds.
VOLATILE = (
    (r"20(?!2[12]-)\d\d-\d\d-\d\d \d\d:\d\d:\d\d", "TIME"),
    (r"[0-9a-f]{12}…", "HASH…"),
    (r"\b[\d,]+ bytes", "SIZE bytes"),
    (r"^((?:standings|grants) +[\d,]+ +\d+) +[\d,]+ +\d+\.\d\d", r"\1 SIZE SECONDS"),
    (r"^(\w+) +\d+\.\d\d ", r"\1 SECONDS "),
)


def session() -> list[tuple[str, str]]:
    """Return the commands of the recorded session, each with the lines that follow it."""
    (block,) = (one for one in re.findall(r"```console\n(.*?)```", README, re.DOTALL) if "finale init" in one)
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
    return list(zip(parts[0::2], parts[1::2], strict=True))


def plain(text: str) -> list[str]:
    """Return the lines without what differs from run to run, and without the spaces that align columns."""
    for pattern, word in VOLATILE:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return [re.sub(r" {2,}", "  ", line).rstrip() for line in text.strip().splitlines()]


def test_the_session_is_what_a_terminal_shows(private_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line is run, in order, on embedded servers of its own; what it prints is what the page says."""
    for name in [name for name in os.environ if name.startswith("FINALE_") and name != "FINALE_EMBEDDED_USER"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FINALE_HOME", str(private_dir / "home"))
    (private_dir / "tests").symlink_to(REPOSITORY / "tests")
    monkeypatch.chdir(private_dir)
    ran = 0
    try:
        for command, shown in session():
            words = shlex.split(command, comments=True)
            if words[0] == "mkdir":
                folder = private_dir / words[1]
                folder.mkdir()
                monkeypatch.chdir(folder)
            if words[0] != "finale":
                continue
            arguments, _, file = shlex.join(words[1:]).partition(" '>' ")
            answer = finale(*shlex.split(arguments)).ok()
            assert plain("" if file else answer.out) == plain(shown), command
            ran += 1
    finally:
        finale("down")
        monkeypatch.chdir(REPOSITORY)  # this process is none of those that are looked for
        assert end_survivors(private_dir) == {}
    assert ran >= 10


def test_the_other_commands_are_there() -> None:
    """make knows the targets, and finale the commands, that the rest of the page names."""
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^\$ make (\S+)", README, re.MULTILINE))
    assert targets == {"demo", "test"} and all(re.search(rf"^{one}:", makefile, re.MULTILINE) for one in targets)
    named = set(re.findall(r"`finale ((?:[a-z]+ ?)+)", README))
    assert len(named) >= 6
    for words in named:
        answer = (
            finale(*words.split()[:2], "--help") if words.split()[0] in GROUPS else finale(words.split()[0], "--help")
        )
        assert answer.code == 0, words


GROUPS = ("season", "results", "rewards", "archive", "config", "db", "ledger")


def test_every_file_that_is_linked_is_there() -> None:
    """No link of the page leads nowhere."""
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert len(links) > 10
    assert not [link for link in links if not (REPOSITORY / link).exists()]
