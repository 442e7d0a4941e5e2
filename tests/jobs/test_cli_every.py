"""What holds for every command, whatever is added: an example that works, ``--json``, a way to say yes, no terminal."""

from __future__ import annotations

import getpass
import re
import shlex
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer

from jobs.cli import app
from tests.support.cli import World, differing, finale
from tests.support.terminal import at_terminal

NOW = datetime.now(UTC).replace(microsecond=0)
HOUR = timedelta(hours=1)
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
#: What stays, starts or stops something, writes a file, or prints what is TOML, JSON or Prometheus's text already.
WITHOUT_JSON = {
    *("run", "metrics", "demo", "init", "up", "down", "db migrate", "archive export"),
    *("config show", "config schema"),
}
#: What acts in somebody's name and is no lever: it does what is due by the stored bounds.
BY_THE_CLOCK = {"run", "tick"}
#: Examples that stay, start servers, or work on files beside them.
NOT_RUN = {"run", "demo", "init", "up", "down"}


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if not (commands := getattr(group, "commands", None)):
        yield " ".join(path), group
        return
    for name, command in commands.items():
        yield from _commands(command, (*path, name))


COMMANDS = dict(_commands(typer.main.get_command(app)))


def options(command: Any) -> set[str]:
    return {name for one in command.params for name in one.opts}


def examples(command: Any) -> list[list[str]]:
    found = re.findall(r"^Example: finale (.+)$", command.help or "", re.MULTILINE)
    return [shlex.split(line.partition(" > ")[0]) for line in found]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_an_example_and_the_options_of_all(name: str) -> None:
    """Its help has an example of itself; it prints JSON if told so; who acts in a name is asked, or says yes."""
    command = COMMANDS[name]
    found = examples(command)
    assert found, f"finale {name} has no example in its help"
    assert all(" ".join(words).startswith(name) for words in found)
    assert name in WITHOUT_JSON or "--json" in options(command)
    if "--as" in options(command) and name not in BY_THE_CLOCK:
        assert "--yes" in options(command)


@pytest.fixture
def running(world: World) -> World:
    """A season that is played, with a result, and one to come."""
    spans = ((-HOUR, HOUR, "s2026"), (HOUR, 2 * HOUR, "s2027"))
    seasons = ", ".join(
        f'{{ id = "{one}", starts_at = {(NOW + begins).isoformat()}, ends_at = {(NOW + ends).isoformat()} }}'
        for begins, ends, one in spans
    )
    world.configure(
        f'[board.goals]\nties = "shared"\nrewards = "goals.toml"\ncalendar = {{ seasons = [{seasons}] }}', goals=TABLE
    )
    finale("tick").ok()
    world.played("goals", f"m-4711,ann,5,{NOW.isoformat()}")
    return world


def test_every_example_runs_with_stdin_closed(running: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each example is a command line that is right; what comes of it is told with its exit code; nobody is asked."""
    monkeypatch.chdir(tmp_path)
    for name, command in COMMANDS.items():
        for words in [] if name in NOT_RUN else examples(command):
            monkeypatch.setattr(sys, "stdin", None)
            answer = finale(*words)
            sys.stdin.close()
            told = f"finale {' '.join(words)}\n{answer.err}"
            assert answer.code not in (1, 2), told
            assert "Traceback" not in answer.err + answer.out, told
            assert answer.code == 0 or "error" in answer.err or answer.out, told


WHY = ("--because", "a reason")
#: Commands that change something, as far as a season that is played or held allows.
ASKING = {
    "close": ("close", "goals", "s2026", "--now"),
    "extend": ("season", "extend", "goals", "s2026", "--until", (NOW + 90 * HOUR / 60).isoformat(), *WHY),
    "hold": ("season", "hold", "goals", "s2026", *WHY),
    "cancel": ("season", "cancel", "goals", "s2027", *WHY),
    "pause": ("pause", *WHY),
    "rebuild": ("rebuild", "goals", "s2026"),
    "void": ("results", "void", "m-4711", "--board", "goals", *WHY),
    "repair": ("reconcile", "goals", "s2026", "--repair", "--player", "ann"),
    "prune": ("ledger", "prune"),
}


@pytest.mark.parametrize("name", ASKING)
def test_a_lever_asks_at_a_terminal_and_no_changes_nothing(running: World, name: str) -> None:
    """No, or the end of the input, changes nothing and ends with 130; --yes asks nothing."""
    before = running.picture()
    for typed in ("n\n", "\x04"):
        code, shown = at_terminal(typed, *ASKING[name])
        assert (code, "[y/N]" in shown, "nothing was changed" in shown) == (130, True, True), shown
        assert differing(before, running.picture()) == []
    code, shown = at_terminal("", *ASKING[name], "--yes")
    assert (code, "[y/N]" in shown) == (0, False), shown


def test_a_held_season_is_released_and_cleaned_by_whoever_says_yes(running: World) -> None:
    """Release, approval, retries and the early clean ask in the one way; yes does it, in the login's name."""
    running.configure(running.config.read_text(), goals=f'approval = "manual"\n{TABLE}')
    finale("close", "goals", "s2026", "--now", "--as", "ana").refused(22, "approval")
    digest = finale("rewards", "preview", "goals", "s2026", "--json").ok().json["hash"]
    for *command, typed, code, state in (
        ("rewards", "approve", "goals", "s2026", digest, *WHY, "n\n", 130, "sealed"),
        ("season", "release", "goals", "s2026", *WHY, "n\n", 130, "sealed"),
        ("rewards", "approve", "goals", "s2026", digest, *WHY, "y\n", 0, "sealed"),
        ("close", "goals", "s2026", "", 0, "delivered"),
        ("rewards", "retry", "goals", "s2026", "n\n", 130, "delivered"),
        ("rewards", "correct", "goals", "s2026", "--exclude", "ann", *WHY, "n\n", 130, "delivered"),
        ("clean", "goals", "s2026", "--now", "n\n", 130, "delivered"),
        ("clean", "goals", "s2026", "--now", "y\n", 0, "cleaned"),
    ):
        found, shown = at_terminal(str(typed), *map(str, command))
        assert (found, running.state("goals", "s2026")) == (code, state), (command, shown)
    assert {who for event, who, _ in running.journal("goals", "s2026") if "approve" in event} == {getpass.getuser()}


@pytest.fixture
def ready(running: World, request: pytest.FixtureRequest) -> World:
    """The running season, brought to where the lever ``request.param`` may be pulled."""
    match request.param:
        case "resume":
            finale("pause", *WHY, "--as", "ana").ok()
        case "reopen":
            finale("close", "goals", "s2026", "--now", "--until", "snapshot", "--as", "ana").ok()
        case "retry":
            running.sql("update finale.season set attempts = 2, last_error = 'x', retry_at = now() + interval '5m'")
        case "adopt":
            running.redis.zadd("old:board", {"ben": 3})
        case "rebalance":
            spread = running.config.read_text().replace("[board.goals]", SPREAD + "[board.goals]")
            running.configure(spread, goals=TABLE)
            finale("tick").ok()
            running.played("spread", f"m1,ann,5,{NOW.isoformat()}", f"m2,ben,50,{NOW.isoformat()}")
    return running


SPREAD = (
    '[board.spread]\nties = "shared"\nshards = { by = "score", cuts = [10] }\ncalendar = { seasons = [{ id = "s1", '
    f"starts_at = {(NOW - HOUR).isoformat()}, ends_at = {(NOW + HOUR).isoformat()} }}] }}\n"
)
#: Levers that can only be pulled in some state.
ASKING_THEN = {
    "resume": ("resume",),
    "reopen": ("season", "reopen", "goals", "s2026", "--grace", "1h", *WHY),
    "retry": ("season", "retry", "goals", "s2026"),
    "adopt": (
        *("archive", "adopt", "old:board", "--board", "goals", "--season", "s2020", "--no-ledger"),
        *("--starts-at", "2020-01-01T00:00:00Z", "--ends-at", "2021-01-01T00:00:00Z"),
    ),
    "rebalance": ("rebalance", "spread", "s1", "--cuts", "30"),
}


@pytest.mark.parametrize(("ready", "name"), [(name, name) for name in ASKING_THEN], indirect=["ready"])
def test_a_lever_of_a_state_asks_at_a_terminal_too(ready: World, name: str) -> None:
    """No changes nothing and ends with 130; yes does it, in the login's name."""
    before = ready.picture()
    code, shown = at_terminal("n\n", *ASKING_THEN[name])
    assert (code, "[y/N]" in shown, "nothing was changed" in shown) == (130, True, True), shown
    assert differing(before, ready.picture()) == []
    code, shown = at_terminal("y\n", *ASKING_THEN[name])
    assert (code, "[y/N]" in shown) == (0, True), shown
    assert differing(before, ready.picture())
    names = [who for (who,) in ready.sql("select who from finale.journal order by journal_id")]
    assert name == "rebalance" or names[-1] == getpass.getuser()


def test_releasing_tells_what_it_would_come_to(running: World) -> None:
    """--dry-run needs no name, names the hold and the step that comes next, and changes nothing."""
    finale("season", "hold", "goals", "s2026", *WHY, "--as", "ana").ok()
    before = running.picture()
    told = finale("season", "release", "goals", "s2026", "--dry-run", "--json").ok().json
    assert (told["step"], told["dry_run"]) == ("close", True) and "a reason" in told["held"]
    assert differing(before, running.picture()) == []
