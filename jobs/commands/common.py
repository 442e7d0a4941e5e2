"""What every command shares: its options, its settings, its way out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobs.output import ask_for_json
from leaderboard.errors import InputError
from leaderboard.states import Step

if TYPE_CHECKING:
    from config.settings import Settings
    from jobs.endpoints import Ledger
    from jobs.wiring import Outside

BoardName = Annotated[str, typer.Argument(metavar="BOARD", help="The board's name, as in \\[board.NAME].")]
SeasonName = Annotated[str, typer.Argument(metavar="SEASON", help="The season's id, such as s2026 or s2026w49.")]
AsJson = Annotated[
    bool, typer.Option("--json", callback=ask_for_json, help="Write the result, or the error, as JSON to stdout.")
]
As = Annotated[str | None, typer.Option("--as", metavar="NAME", help="In whose name; else FINALE_OPERATOR.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done, and why.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
#: The exit code of whoever did not go on, by Ctrl-C or by an answer.
NOT_CONFIRMED = 130


def _reason(ctx: typer.Context, param: typer.CallbackParam, value: str) -> str:
    """Return a reason that says something; raise InputError for an empty one, if one was given at all."""
    source = ctx.get_parameter_source(param.name or "")
    if source is not None and source.name == "COMMANDLINE" and not value.strip():
        raise InputError("--because is empty", hint='say why, as it is to stand in the journal: --because "…"')
    return value


Because = Annotated[
    str, typer.Option("--because", metavar="TEXT", help="Why; stands in the journal.", callback=_reason)
]


def settings(*, optional: bool = False, servers_only: bool = False) -> Settings:
    """Return the configuration; ``optional`` is for commands that need no boards. Raises ConfigError."""
    from config.load import load

    return load(_chosen, os.environ, optional=optional, servers_only=servers_only)


_chosen: Path | None = None


def choose(path: Path | None) -> None:
    """Remember the file given with ``--config``."""
    global _chosen  # noqa: PLW0603 - one process is one command
    _chosen = path


def named_path(text: str | Path) -> Path:
    """Return the path that a person names, a parser of arguments and options. Raises InputError for an empty text."""
    if not str(text).strip():
        raise InputError("an empty text names no file or folder", hint="is a variable of the script not set?")
    return Path(text)


@contextmanager
def wired() -> Iterator[Outside]:
    """Yield the clients of the configured servers, or of the embedded ones."""
    from jobs.wiring import outside

    with outside(settings(), os.environ) as found:
        yield found


@contextmanager
def wired_ledger() -> Iterator[Ledger]:
    """Yield the ledger alone, for commands that only tell what it has: they start in half the time."""
    from jobs.endpoints import ledger

    with ledger(settings(), os.environ) as found:
        yield found


def step_named(name: str | None, default: Step) -> Step:
    """Return the step called ``name``; raise InputError that lists them otherwise."""
    if name is None:
        return default
    try:
        return Step(name)
    except ValueError:
        raise InputError(f"there is no step {name!r}", hint=f"the steps are {', '.join(Step)}") from None


def who_acts(given: str | None, *, lever: bool) -> str:
    """Return in whose name a command acts. Raises InputError for a lever without a name where there is no terminal."""
    from jobs.identity import operator

    return operator(given, os.environ, lever=lever)


def check_why(because: str, lever: bool) -> None:
    """Raise InputError for a reason of what needs none, which nothing would keep."""
    if because and not lever:
        raise InputError("--because is for what a person decides", hint="leave it out, or add --now")


def confirm(question: str, yes: bool) -> None:
    """Ask a person at a terminal; elsewhere a lever's name is enough. Ends with NOT_CONFIRMED if the answer is no."""
    from jobs import output
    from jobs.identity import at_terminal

    if yes or not at_terminal():
        return
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:  # the end of the input is no yes
        agreed = False
    if not agreed:
        output.err.print("nothing was changed")
        raise typer.Exit(NOT_CONFIRMED)


def player_id(text: str, what: str = "--player", *, binary: bool) -> bytes:
    """Return a player's id as a person gives it, hex on ``binary`` boards.

    Raises InputError for what is no hex, naming the option or argument ``what``.
    """
    if not binary:
        return text.encode("utf-8", "surrogateescape")
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InputError(f"{what} {text!r} is not hex", hint="ids of binary boards are written in hex") from None


def instant(option: str, text: str) -> datetime:
    """Return a time given as ``option``, in UTC. Raises InputError for what is no ISO 8601 time with its offset."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(f"{option} {text!r} is no ISO 8601 time", hint="write it like 2026-01-31T00:00:00Z") from None
    raise InputError(f"{option} {text!r} has no UTC offset", hint=f"add Z for UTC: {text}Z")
