"""The command as a process of its own: closed streams, a reader that goes away, what stands on stdout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import INSTALLED, World, shell, started

CONFIG = """
[board.cup]
ties = "shared"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""


@pytest.fixture
def cup(world: World) -> World:
    world.configure(CONFIG)
    world.played("cup", *(f"m1,p{number},{number},2026-01-02T00:00:00Z" for number in range(5_000)))
    return world


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    with process:
        out, err = process.communicate(timeout=60)
    return process.returncode, (out or b"").decode(), (err or b"").decode()


def test_only_the_result_stands_on_stdout(cup: World) -> None:
    """With --json stdout is one document; the log is lines of JSON on stderr; no colours where no terminal is."""
    code, out, err = ended(started("close", "cup", "one", "--json"))
    assert code == 0, err
    assert json.loads(out)["state"] == "delivered"
    assert {json.loads(line)["event"] for line in err.splitlines()} == {"step.started", "step.done", "step.waits"}
    assert "\x1b" not in out + err


def test_a_closed_stdin_is_no_terminal(cup: World) -> None:
    """Started with stdin closed, a lever without a name is refused as without a terminal, and with one it works."""
    code, _, err = ended(shell("finale close cup one --now <&-"))
    assert code == 4, err
    assert "--as NAME" in err
    assert "Traceback" not in err
    code, _, err = ended(shell("finale close cup one --now --as cron <&-"))
    assert code == 0, err
    assert cup.state("cup", "one") == "delivered"


@pytest.mark.parametrize("streams", [">&-", "<&- >&- 2>&-"])
def test_closed_output_streams_do_not_stop_a_close(cup: World, streams: str) -> None:
    """Started without stdout, or with no stream at all, the work is done all the same; no socket takes their place.
    That the result could not be written is told as on a full disk."""
    code, _, err = ended(shell(f"finale close cup one {streams}"))
    assert code == 11, err
    assert err == "" or ("the output could not be" in err and "Traceback" not in err)
    assert cup.state("cup", "one") == "delivered"


@pytest.mark.parametrize("options", ["--json", ""])
def test_a_reader_that_goes_away_gets_no_traceback(cup: World, options: str) -> None:
    """`finale standings … | head -1` ends quietly, however much is left to be written."""
    code, out, err = ended(shell(f"finale standings cup one --top 5000 {options} | head -1; exit ${{PIPESTATUS[0]}}"))
    assert err == ""
    assert out
    assert code == 141


def test_an_output_that_takes_nothing_is_told(cup: World) -> None:
    """Metrics to a closed stdout or a full disk were written nowhere: exit code 11 both times."""
    for place in ("-", "/dev/full"):
        code, _, err = ended(shell(f"finale metrics {'>&-' if place == '-' else f'>{place}'}"))
        assert code == 11, err
        assert "the output could not be" in err and "hint:" in err


def test_an_interrupt_is_told_and_leaves_the_season_to_the_next_run(cup: World) -> None:
    """Ctrl-C during a close ends it with 130 and without a traceback; the next close goes on."""
    ready, written = os.pipe()
    # The child says when it is in its first step, and then waits for the signal, which a background job would ignore.
    code = (
        "import os, signal, time; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from jobs.steps.snapshot import Snapshot; "
        f"Snapshot.look = lambda self, work: (os.write({written}, b'in'), time.sleep(60)); "
        "from jobs.cli import main; main()"
    )
    process = started("close", "cup", "one", code=code, pass_fds=(written,))
    os.close(written)
    with os.fdopen(ready, "rb") as pipe:
        assert pipe.read(2) == b"in"
    process.send_signal(signal.SIGINT)
    returned, _, err = ended(process)
    assert (returned, "Traceback" in err) == (130, False), err
    assert ended(started("close", "cup", "one"))[0] == 0


def test_the_installed_command_is_there(tmp_path: Path) -> None:
    """The distribution's command `finale` runs outside the repository."""
    done = subprocess.run([str(INSTALLED), "--version"], cwd=tmp_path, capture_output=True, check=True, timeout=60)
    assert done.stdout.startswith(b"finale ")
