"""How much processor time the commands take that a person waits for, from nothing to the prompt.

    python -m bench.start_up --rounds 9

Each is a process of its own, on embedded servers that run already; user and system time of that process alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MAIN = "from jobs.cli import main; main()"
CONFIG = '[board.cup]\nties = "shared"\ncalendar = { every = "week" }\n'
#: The commands, and the aim for each in seconds; none for what is told beside them.
COMMANDS: tuple[tuple[tuple[str, ...], float | None], ...] = (
    (("--help",), 0.3),
    (("season", "list"), 0.6),
    (("journal",), None),
    (("tick",), None),
)


def main() -> None:
    """Run every command some times and print the median, the least and the most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="finale-bench-") as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "finale.toml").write_text(CONFIG)
        environ = {**os.environ, "FINALE_HOME": f"{folder}/home", "FINALE_CONFIG": f"{folder}/finale.toml"}
        _seconds(("up",), environ)
        try:
            _seconds(("tick",), environ)
            found = {" ".join(words): [_seconds(words, environ) for _ in range(given.rounds)] for words, _ in COMMANDS}
        finally:
            _seconds(("down",), environ)
    if given.json:
        sys.stdout.write(json.dumps(found) + "\n")
        return
    for words, aim in COMMANDS:
        took = found[" ".join(words)]
        told = f"{statistics.median(took):.2f} s ({min(took):.2f} to {max(took):.2f})"
        sys.stdout.write(f"finale {' '.join(words):<14} {told}{f'   aim {aim}' if aim else ''}\n")


def _seconds(words: tuple[str, ...], environ: dict[str, str]) -> float:
    """Run a command and return the seconds of processor time that it took."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *words], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
