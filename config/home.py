"""Where Finale keeps what is its own on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def default_home(environ: Mapping[str, str]) -> Path:
    """Return a folder: ``FINALE_HOME``; without it /var/lib/finale for root, else finale in the user's data."""
    if chosen := environ.get("FINALE_HOME"):
        return Path(chosen).expanduser().absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/finale")
    if data := environ.get("XDG_DATA_HOME"):
        return Path(data).absolute() / "finale"
    return Path(environ.get("HOME") or Path.home()).absolute() / ".local/share/finale"
