"""The command line: assembles the commands and turns every error into words and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

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
        Path | None, typer.Option("--config", metavar="FILE", help="Else FINALE_CONFIG, else ./finale.toml.")
    ] = None,
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    common.choose(config)


def main() -> None:
    """Run the command line. No traceback reaches an operator, unless FINALE_DEBUG asks for one."""
    _open_standard_streams()
    output.set_up_logging()
    try:
        _run()
    except FinaleError as error:
        _debug()
        output.print_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        output.err.print("interrupted; whatever was begun goes on with the next run")
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _debug()
        reason = error.strerror or type(error).__name__
        output.err.print(f"[bold red]error:[/] {error.filename or 'the output'} could not be read or written: {reason}")
        sys.exit(AccessError.exit_code)
    except Exception as error:  # the last line of defence; what it hides, FINALE_DEBUG=1 shows
        _debug()
        output.err.print(f"[bold red]error:[/] this should not have happened: {type(error).__name__}")
        output.err.print("  [bold]hint:[/] nothing is lost; set FINALE_DEBUG=1, run it again, and report what it shows")
        sys.exit(1)


def _run() -> None:
    try:
        app()
    finally:
        sys.stdout.flush()  # a reader that has gone is noticed here, not while the interpreter ends


def _open_standard_streams() -> None:
    """Give a process that was started without a standard stream an empty one, so that no socket takes its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the locale cannot say is no reason to fail


def _debug() -> None:
    if os.environ.get("FINALE_DEBUG"):
        traceback.print_exc()
