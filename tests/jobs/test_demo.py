"""The demonstration: everything it says is measured, and it leaves nothing behind, not even when it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from jobs.demo import leftovers
from jobs.embedded import servers
from jobs.embedded.home import EmbeddedHome


def test_a_killed_demonstration_is_swept_and_a_living_one_is_not(
    private_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed demo holds no lock any more: its servers are stopped and its folder goes; what lives is left alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(private_dir))
    dead, alive = private_dir / f"{leftovers.PREFIX}dead", private_dir / f"{leftovers.PREFIX}alive"
    for folder in (dead, alive):
        folder.mkdir()
        folder.chmod(0o755)
    user = "from jobs.embedded import session; from jobs.embedded.home import EmbeddedHome; from pathlib import Path\n"
    user += f"with session(EmbeddedHome(Path({str(dead / 'home')!r}), durable=False)): print('up', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", user], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        os.kill(process.pid, signal.SIGKILL)
    home = EmbeddedHome(dead / "home", durable=False)
    assert servers.status(home).redis.state == "running"
    with servers.session(EmbeddedHome(alive / "home", durable=False)):
        assert leftovers.sweep() == [dead]
        assert alive.is_dir()
    assert not dead.exists()
    assert leftovers.sweep() == [alive]
