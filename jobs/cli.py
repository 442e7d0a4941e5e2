"""The command line: assembles the commands and turns every error into words and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from jobs import output
from jobs.commands import (
    archive,
    audit,
    boards,
    cleaning,
    common,
    configuration,
    demo,
    doctor,
    journal,
    ledger,
    levers,
    rebuild,
    reconcile,
    results,
    rewards,
    running,
    season,
    servers,
    why,
)
from leaderboard.errors import AccessError, FinaleError

#: Exit codes as a shell tells a signal: 128 and SIGINT, 128 and SIGPIPE.
INTERRUPTED, BROKEN_PIPE = 130, 141

app = typer.Typer(
    help="Ends leaderboard seasons: snapshot, prove, seal, reward, and only then forget.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command()(configuration.init)
app.command()(servers.up)
app.command()(servers.down)
app.command()(servers.status)
app.command()(demo.demo)
app.command()(doctor.doctor)
app.command()(configuration.calendar)
app.command()(running.run)
app.command()(running.metrics)
app.command()(season.tick)
app.command()(season.close)
app.command()(levers.pause)
app.command()(levers.resume)
app.command()(journal.journal)
app.command()(cleaning.clean)
app.command()(why.why)
app.command()(audit.audit)
app.command()(reconcile.reconcile)
app.command()(boards.standings)
app.command()(boards.top)
app.command()(boards.rank)
app.command()(boards.around)
app.command()(rebuild.rebuild)
app.command()(rebuild.rebalance)
app.add_typer(season.season, name="season")
app.add_typer(results.results, name="results")
app.add_typer(ledger.ledger, name="ledger")
app.add_typer(rewards.rewards, name="rewards")
app.add_typer(archive.archive, name="archive")
app.add_typer(configuration.config, name="config")
app.add_typer(servers.db, name="db")


def _version(asked: bool) -> None:
    if asked:
        from jobs.version import SOFTWARE

        typer.echo(SOFTWARE)
        raise typer.Exit


@app.callback()
def root(
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", parser=common.named_path, metavar="FILE", help="Else FINALE_CONFIG, else ./finale.toml."
        ),
    ] = None,
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    common.choose(config)


def main() -> None:
    """Run the command line. No traceback reaches an operator, unless FINALE_DEBUG asks for one."""
    try:
        _run_and_tell()
    except SystemExit as ended:
        if running.left_behind.is_set():
            with suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(ended.code if isinstance(ended.code, int) else int(ended.code is not None))
        raise


def _run_and_tell() -> NoReturn:
    _open_standard_streams()
    output.set_up()
    try:
        _run()
    except FinaleError as error:
        _fail(error, error.exit_code)
    except KeyboardInterrupt:
        output.print_failure(FinaleError("interrupted; whatever was begun goes on with the next run"), INTERRUPTED)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _give_output_up()
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        reason, place = error.strerror or type(error).__name__, error.filename or "the output"
        if error.filename is None:
            _give_output_up()
        told = AccessError(
            f"{place} could not be read or written",
            detail=reason,
            hint="make room, or choose another place; what was done is done, and running it again is safe",
        )
        _fail(told, told.exit_code)
    except Exception as error:  # the last line of defence; what it hides, FINALE_DEBUG=1 shows
        unforeseen = FinaleError(
            f"this should not have happened: {type(error).__name__}",
            hint="nothing is lost; set FINALE_DEBUG=1, run it again, and report what it shows",
        )
        _fail(unforeseen, unforeseen.exit_code)


def _fail(error: FinaleError, code: int) -> NoReturn:
    if os.environ.get("FINALE_DEBUG"):
        traceback.print_exc()
    output.print_failure(error, code)
    sys.exit(code)


def _give_output_up() -> None:
    """Let what stdout does not take go nowhere; else the interpreter tries again at its end, and sets its own code."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run() -> NoReturn:
    code: str | int | None = None
    try:
        _command()()
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # of which typer makes code 1
            raise ended.__context__ from None
        code = ended.code
    finally:
        sys.stdout.flush()  # a reader that has gone is noticed here, not while the interpreter ends
    if not code and isinstance(sys.stdout, _Closed) and sys.stdout.lost:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    sys.exit(code)


@cache
def _command() -> Callable[[], object]:
    """Return the whole command line as it is run. Making it takes longer than many a command."""
    command: Callable[[], object] = typer.main.get_command(app)
    return command


class _Closed(TextIOWrapper):
    """Stands for a standard stream that is closed: takes its number, and knows whether something was written to it."""

    lost = False

    def write(self, text: str) -> int:
        self.lost = self.lost or bool(text)
        return super().write(text)


def _open_standard_streams() -> None:
    """Give a process that was started without a standard stream an empty one, so that no socket takes its number."""
    for name, mode in (("stdin", "rb"), ("stdout", "wb"), ("stderr", "wb")):
        if getattr(sys, name) is None:
            setattr(sys, name, _Closed(Path(os.devnull).open(mode), encoding="utf-8"))  # noqa: SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the locale cannot say is no reason to fail
