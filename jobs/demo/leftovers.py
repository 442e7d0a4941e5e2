"""What a demonstration that was killed left behind: its servers and its folder, found and removed by the next one."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from jobs.embedded import locks, servers
from jobs.embedded.home import EmbeddedHome
from leaderboard.errors import EmbeddedError

PREFIX = "finale-demo-"


def sweep() -> list[Path]:
    """Stop and remove the user's dead demonstrations in the temporary folder; return the folders that are gone.

    One that still runs holds its home's lock of users, which a killed one does not.
    """
    swept = []
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
        home = EmbeddedHome.from_environ({**os.environ, "FINALE_HOME": str(folder / "home")})
        if not _is_own(folder) or not home.users_lock.exists() or locks.is_held(home.users_lock):
            continue
        with suppress(EmbeddedError, OSError):
            servers.down(home)
            shutil.rmtree(folder)
            swept.append(folder)
    return swept


def _is_own(folder: Path) -> bool:
    try:
        return not folder.is_symlink() and folder.is_dir() and folder.stat().st_uid == os.geteuid()
    except OSError:
        return False
