"""Local wall time to UTC, in any IANA zone: what a clock on the wall shows, and when it first does."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

# Files that zoneinfo opens, but that follow the machine or count leap seconds, so that bounds would depend on the host.
_NOT_PORTABLE = ("localtime", "posixrules", "posix/", "right/", "Factory")
_SECOND = timedelta(seconds=1)


@cache
def zone_called(name: str) -> ZoneInfo:
    """Return the zone; each is read once, of which zoneinfo itself keeps only eight. Raises what ZoneInfo raises."""
    return ZoneInfo(name)


def check_zone(name: str) -> str:
    """Return ``name`` if it is an IANA time zone that is known here; raise ValueError otherwise."""
    try:
        zone_called(name)
        known = not name.startswith(_NOT_PORTABLE)
    except (ValueError, OSError, KeyError):
        known = False
    if not known:
        raise ValueError(f"{name!r} is no IANA time zone; write one like UTC or Europe/Berlin")
    return name


def to_utc(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the first UTC instant at which clocks in ``zone`` show the naive time ``local``, or have jumped past it.

    So a time that occurs twice takes the first, and one that does not exist the next instant that does. Raises
    OverflowError where that lies outside the years 1 to 9999.
    """
    wall = local.replace(fold=0)
    # PEP 495: fold=0 reads the wall with the offset from before a change, fold=1 with the one after it.
    instant = wall.replace(tzinfo=zone).astimezone(UTC)
    if shown(instant, zone) == wall:
        return instant
    return _change(wall.replace(tzinfo=zone, fold=1).astimezone(UTC), instant, wall, zone)


def shown(instant: datetime, zone: ZoneInfo) -> datetime:
    """Return the naive time that clocks in ``zone`` show at ``instant``."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def _change(before: datetime, after: datetime, wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the second in ``(before, after]`` at which the clocks jump past ``wall``; it is a whole one."""
    start = before.replace(microsecond=0)
    low, high = 0, -((start - after) // _SECOND)
    while high - low > 1:
        middle = (low + high) // 2
        if shown(start + middle * _SECOND, zone) >= wall:
            high = middle
        else:
            low = middle
    return start + high * _SECOND


def zone_data_version() -> str:
    """Return which zone data is in use: the version of the system's files, else of the tzdata package."""
    for folder in TZPATH:
        for name in ("tzdata.zi", "+VERSION"):
            with suppress(OSError), Path(folder, name).open(encoding="ascii") as file:
                return f"system {file.readline().removeprefix('# version').strip()}"
    with suppress(PackageNotFoundError):
        return f"package {version('tzdata')}"
    return "unknown"
