"""A folder for what a comparison spills to disk, under Finale's home; what a killed process left there is removed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leaderboard.errors import UnavailableError


@contextmanager
def workspace(home: Path, name: str) -> Iterator[Path]:
    """Yield an empty folder of this process for the season ``board/season``, gone after the block."""
    root = home / "work"
    folder = root / f"{name.replace('/', '.')}.{os.getpid()}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        _sweep(root)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise UnavailableError(
            f"the folder {folder}, to which a large comparison spills, cannot be made",
            detail=error.strerror or type(error).__name__,
            hint="set FINALE_HOME to a folder that this user may write",
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(root: Path) -> None:
    """Remove the folders of processes that no longer run on this machine."""
    for folder in root.iterdir():
        pid = folder.name.rpartition(".")[2]
        if pid.isdecimal() and int(pid) != os.getpid() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(folder, ignore_errors=True)
