"""What a person and a script see: results on stdout, everything else on stderr, errors without a traceback."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from leaderboard.errors import FinaleError
from leaderboard.states import Step
from leaderboard.wording import more

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

    from jobs.seasons.verdicts import Wait
    from leaderboard.season import Season

# No emoji: ":one:" is a board's name in a key, or a player's.
out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]|(?<![^\x00-\x7f])[\u200c\u200d]"  # joiners are part of emoji and of some scripts
)
# In a file or a pipe each row of a table stays one line.
_unfolded = Console(highlight=False, width=10_000, emoji=False)


def log() -> Any:
    """Return the structured log, on stderr: one JSON object a line."""
    return _logger()


@lru_cache(maxsize=1)
def _logger() -> Any:
    import structlog

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    return structlog.get_logger("finale")


def heard(event: str, **values: Any) -> None:
    """Log an event where nobody watches a terminal."""
    if not err.is_terminal:
        log().info(event, **values)


def set_up() -> None:
    """Begin a command: structured log lines go to what stderr is now, and nothing is on stdout yet."""
    _logger.cache_clear()
    _document.asked = _document.begun = False


def told_of(error: FinaleError) -> dict[str, str]:
    """Return what a log line has of an error."""
    return {"error": type(error).__name__, "message": error.message, "detail": error.detail, "hint": error.hint}


def as_text(value: Any) -> str:
    """Return a value as JSON writes it: times in ISO 8601 with Z."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)


@dataclass
class _Document:
    """Whether stdout is to have one JSON document, and whether it has begun."""

    asked: bool = False
    begun: bool = False


_document = _Document()


def ask_for_json(asked: bool) -> bool:
    """Remember whether ``--json`` was given, and return it."""
    _document.asked = asked
    return asked


def begin_json() -> None:
    """Say that a JSON document is being written to stdout, so that an error begins no second one."""
    _document.begun = True


def print_json(value: Any) -> None:
    """Write one JSON document to stdout."""
    begin_json()
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=as_text) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: Sequence[str] = ()) -> None:
    """Write a table to stdout; the columns named in ``numbers`` are set to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        # Text, because a player may be called "[bold]".
        table.add_row(*(Text("" if cell is None else shown(str(cell))) for cell in row))
    if out.is_terminal:
        out.print(table)
        return
    with _unfolded.capture() as captured:
        _unfolded.print(table)
    # Each row is as wide as the longest: what pads it would be all that a pipe or a mail gets of the others.
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def print_more(left: int, where: str) -> None:
    """Say below a table that is cut how many rows are left out, and where they are; nothing if none are."""
    if left > 0:
        out.print(f"…{more(left)}; {where}", markup=False)


def print_failure(error: FinaleError, code: int | None = None) -> None:
    """Tell the error that ends a command: on stderr, and with ``--json`` on stdout too, unless the result stands there.

    ``code`` is the exit code, where it is not the error's own.
    """
    print_error(error)
    if _document.asked and not _document.begun:
        print_json({"error": error_json(error, code)})
        with suppress(OSError):  # what cannot be written now has been told on stderr
            sys.stdout.flush()


def error_json(error: FinaleError, code: int | None = None) -> dict[str, Any]:
    """Return an error as plain JSON values."""
    return {
        "message": error.message,
        "detail": error.detail,
        "hint": error.hint,
        "code": error.exit_code if code is None else code,
    }


def print_error(error: FinaleError) -> None:
    """Tell an error on stderr: what, the detail, a line for each of several, and the remedy."""
    err.print(f"[bold red]error:[/] {_escaped(error.message)}")
    for line in error.detail.split("\n") if error.detail else ():
        err.print(f"  {_escaped(line)}")
    if error.hint:
        err.print(f"  [bold]hint:[/] {_escaped(error.hint)}")


def _escaped(text: str) -> str:
    return shown(text).replace("[", r"\[")


def shown(text: str) -> str:
    """Return text with what could drive a terminal, break a line or turn the writing round written as ``\\x..``.

    Those are control, direction and invisible characters; above one byte they are written as ``\\u....``. A byte that
    was no UTF-8, which Python has as a lone surrogate, is written as the byte it was.
    """
    return _CONTROL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def utc(instant: datetime | None) -> str:
    """Return an instant to the second, in UTC, as tables show it."""
    return f"{instant:%Y-%m-%d %H:%M:%S}" if instant else ""


def progress_bar(*columns: ProgressColumn) -> Progress:
    """Return a progress bar on stderr that vanishes when it is done, and is silent where nobody watches."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    shown = (*columns, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*shown, console=err, transient=True, disable=not err.is_terminal)


@dataclass
class Watching:
    """Shows each step with its time and figures: live on a terminal, as log lines elsewhere."""

    quiet: bool = False  #: no lines on a terminal
    logs: bool = True
    _bar: Progress | None = None
    _task: TaskID | None = None

    @property
    def _logging(self) -> bool:
        return self.logs and not err.is_terminal

    def started(self, season: Season, step: Step) -> None:
        if self._logging:
            log().info("step.started", season=season.name, step=str(step))
        if not self.quiet:
            from rich.progress import SpinnerColumn, TextColumn

            self._bar = progress_bar(SpinnerColumn(), TextColumn("{task.description}"))
            self._bar.start()
            self._task = self._bar.add_task(f"{season.name} {step}", total=None)

    def progress(self, step: Step, done: int, expected: int) -> None:
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=done, total=expected)

    def finished(self, season: Season, step: Step, seconds: float, figures: str) -> None:
        self.stop_bar()
        if self._logging:
            log().info("step.done", season=season.name, step=str(step), seconds=round(seconds, 3), figures=figures)

    def warned(self, season: Season, step: Step, warning: str) -> None:
        self.stop_bar()
        if self._logging:
            log().warning("step.warns", season=season.name, step=str(step), warning=warning)
        else:
            err.print(f"[bold yellow]warning:[/] {_escaped(f'{season.name}: {warning}')}")

    def waiting(self, season: Season, step: Step, wait: Wait) -> None:
        self.stop_bar()
        if self._logging:
            until = as_text(wait.until) if wait.until else None
            log().info("step.waits", season=season.name, step=str(step), until=until, why=wait.why)

    def failed(self, season: Season, step: Step, error: FinaleError) -> None:
        self.stop_bar()
        if self._logging:
            log().error("step.failed", season=season.name, step=str(step), **told_of(error))

    def stop_bar(self) -> None:
        """Take the live bar away."""
        if self._bar:
            self._bar.stop()
            self._bar = self._task = None
