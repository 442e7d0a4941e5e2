"""The command line at a terminal: stdin and stderr are a pseudo-terminal, and a person types into it."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

from jobs import cli


def at_terminal(typed: str, *arguments: str) -> tuple[int, str]:
    """Run ``finale`` with these arguments in this process at a terminal into which ``typed`` was typed.

    Returns the exit code and what the terminal shows, results not included.
    """
    person, terminal = pty.openpty()
    try:
        os.write(person, typed.encode())
        with (
            os.fdopen(os.dup(terminal), encoding="utf-8") as stdin,
            os.fdopen(os.dup(terminal), "w", encoding="utf-8") as stderr,
            Path(os.devnull).open("w", encoding="utf-8") as stdout,
            pytest.MonkeyPatch.context() as patch,
        ):
            for name, stream in (("stdin", stdin), ("stderr", stderr), ("stdout", stdout)):
                patch.setattr(sys, name, stream)
            patch.setattr(sys, "argv", ["finale", *arguments])
            patch.delenv("FINALE_OPERATOR", raising=False)
            with pytest.raises(SystemExit) as ended:
                cli.main()
        os.write(terminal, b"\x00")  # so that there is an end to read to
        shown = b""
        while b"\x00" not in shown:
            shown += os.read(person, 65_536)
    finally:
        os.close(person)
        os.close(terminal)
    code = ended.value.code
    assert code is None or isinstance(code, int)
    return code or 0, shown.decode(errors="replace")
