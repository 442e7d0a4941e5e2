"""What a command imports: the light ones start without what only the heavy ones need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.cli import World, finale

HEAVY = (
    "adbc_driver_manager",
    "apscheduler",
    "duckdb",
    "httpx",
    "numpy",
    "obstore",
    "opentelemetry",
    "pandas",
    "prometheus_client",
    "pyarrow",
)
#: Not even these are needed to say what there is to be said without any server.
DRIVERS = ("psycopg", "redis", "rich.progress", "structlog")
PROGRAM = """
import sys
from jobs.cli import main
sys.argv = ["finale", *{arguments!r}]
try:
    main()
except SystemExit:
    pass
print("IMPORTED", *sorted(set(sys.modules) & set({names!r})))
"""


def imported(*arguments: str, names: tuple[str, ...]) -> list[str]:
    """Return which of ``names`` a process has imported once it has run ``finale`` with these arguments."""
    program = PROGRAM.format(arguments=arguments, names=names)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("IMPORTED"))
    return line.split()[1:]


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("season", "--help"), ("run", "--help")])
def test_help_imports_no_driver(arguments: tuple[str, ...]) -> None:
    """Help is a matter of the command line alone: no driver, no configuration, no log."""
    assert imported(*arguments, names=(*HEAVY, *DRIVERS)) == []


@pytest.mark.parametrize("arguments", [("season", "list"), ("season", "show", "cup", "one"), ("journal",)])
def test_telling_what_the_ledger_has_imports_the_ledger_alone(world: World, arguments: tuple[str, ...]) -> None:
    """To list seasons takes PostgreSQL's driver and the configuration: no Redis, no store, no Arrow."""
    season = '{ id = "one", starts_at = 2020-01-01T00:00:00Z, ends_at = 2050-01-01T00:00:00Z }'
    world.configure(f'[board.cup]\nties = "shared"\ncalendar = {{ seasons = [{season}] }}')
    finale("tick").ok()
    assert imported(*arguments, names=(*HEAVY, "redis")) == []
