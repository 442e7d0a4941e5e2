"""Who acts: the process that holds a lease, and the person or job in whose name it works."""

from __future__ import annotations

import getpass
import os
import re
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from leaderboard.errors import InputError

_HOLDER = re.compile(
    r"(?:.* )?process (?P<pid>\d+) on (?P<host>\S+) #(?P<started>\d+):(?P<world>[0-9a-f-]*):(?P<once>[0-9a-f]{8})"
)


def holder(who: str = "") -> str:
    """Return a name for this process that no other process, on this machine or another, ever has.

    What stands before the ``#`` is for people; ``who`` is in whose name the process works.
    """
    pid = os.getpid()
    told = f"{who}, process {pid} on {socket.gethostname()}".removeprefix(", ")
    return f"{told} #{_started(pid) or 0}:{_world()}:{uuid4().hex[:8]}"


def has_ended(name: str) -> bool:
    """Return whether the holder was a process of this very machine and boot that no longer runs.

    Only a shortcut past the lease's end: were it ever wrong, the fence would still shut the old holder out.
    """
    match = _HOLDER.fullmatch(name)
    if not match or match["host"] != socket.gethostname() or not match["world"] or match["world"] != _world():
        return False
    return _started(int(match["pid"])) != int(match["started"])


def _started(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot; None if it does not run."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
        return None if fields[0] in ("Z", "X") else int(fields[19])
    return None


def _world() -> str:
    """Return what tells this boot and process namespace from any other; empty where it cannot be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}-{Path('/proc/self/ns/pid').stat().st_ino:x}"
    except OSError:
        return ""


def at_terminal() -> bool:
    """Return whether a person can be asked, and sees what is asked."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def operator(given: str | None, environ: Mapping[str, str], *, lever: bool) -> str:
    """Return in whose name a command acts: ``--as``, FINALE_OPERATOR, else the login name.

    Raises InputError for a lever without a name when there is no terminal to have asked a person at.
    """
    name = given or environ.get("FINALE_OPERATOR")
    if name:
        if not name.isprintable() or len(name) > 100:
            raise InputError(f"{name!r} is no operator's name", hint="use up to 100 printable characters")
        return name
    if lever and not at_terminal():
        raise InputError(
            "this changes a season and needs the name of whoever decides it",
            hint="add --as NAME, or set FINALE_OPERATOR",
        )
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"
