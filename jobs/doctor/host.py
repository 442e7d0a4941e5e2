"""This machine: Python, time-zone data, room at FINALE_HOME."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from archive.disk import free_at
from config.settings import Settings
from jobs.doctor.checks import Check, Checks
from jobs.version import VERSION
from leaderboard.walltime import zone_data_version


def look(settings: Settings) -> list[Check]:
    """Return what is found of this machine."""
    checks = Checks("host")
    checks.add("version", "ok", f"finale {VERSION}, Python {platform.python_version()}, {platform.system()}")
    boards = ", ".join(sorted(settings.boards)) or "none"
    checks.add(
        "configuration", "ok" if settings.boards else "warn", f"boards: {boards}", "finale init writes an example"
    )
    _zones(checks)
    checks.room("room", free_at(settings.home), f"FINALE_HOME, {settings.home}")
    return checks.found


def _zones(checks: Checks) -> None:
    used = zone_data_version()
    try:
        packed = version("tzdata")  # 2025.2 is what the system calls 2025b
    except PackageNotFoundError:
        packed = ""
    remedy = "install the newest tzdata (the system's package wins); finale calendar BOARD --check tells what changed"
    if used == "unknown":
        checks.add("time zones", "unknown", "which zone data is in use cannot be told", remedy)
        return
    source, _, name = used.partition(" ")
    older = source == "system" and bool(packed) and comparable(name) < comparable(packed)
    told = f"zone data {used}" + (f", package tzdata {packed}" if source == "system" and packed else "")
    checks.add("time zones", "warn" if older else "ok", told, remedy)


def comparable(name: str) -> tuple[int, int]:
    """Return a version of the zone data, ``2025b`` or ``2025.2``, as year and number."""
    year, letter = name[:4], name[4:].strip(".")
    number = int(letter) if letter.isdecimal() else ord(letter[0]) - ord("a") + 1 if letter else 0
    return (int(year) if year.isdecimal() else 0, number)
