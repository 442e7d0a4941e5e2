"""Durations as a person writes them: ``15m``, ``7d``, ``1h30m``."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_WHOLE = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?", re.ASCII)


def parse_duration(text: str) -> timedelta:
    """Return the length that ``text`` says, in weeks to milliseconds, largest first; raise ValueError otherwise."""
    match = _WHOLE.fullmatch(text.strip())
    if not match or not any(match.groups()):
        if text.strip() == "0":
            return timedelta(0)
        raise ValueError(f"{text!r} is no duration; write it like 15m, 36h, 7d or 1h30m")
    try:
        return timedelta(
            milliseconds=sum(
                int(count or 0) * size for count, size in zip(match.groups(), _UNITS.values(), strict=True)
            )
        )
    except OverflowError:
        raise ValueError(f"{text!r} is longer than any season; the most is 36525d") from None


def format_duration(length: timedelta) -> str:
    """Return ``length`` in the largest units that say it exactly, whole milliseconds; ``0s`` for none."""
    rest = length // timedelta(milliseconds=1)
    parts = []
    for letter, size in _UNITS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{letter}")
    return "".join(parts) or "0s"
