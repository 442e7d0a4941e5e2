"""The alphabet of board and season names, which become keys, paths and partition values; and members as shown."""

from __future__ import annotations

import re

from leaderboard.errors import ConfigError

NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")

# Words that some reader takes for a number, a date or a missing value when it guesses the type of a partition value.
RESERVED = frozenset(
    (
        *("allballs", "epoch", "false", "inf", "infinity", "nan", "nat", "none", "now", "null"),
        *("today", "tomorrow", "true", "undefined", "yesterday"),
    )
)


def check_name(value: str, what: str) -> str:
    """Return ``value`` if it may name a board, season, source or item; raise ConfigError that shows it otherwise."""
    if not NAME.fullmatch(value):
        raise ConfigError(
            f"{value!r} cannot name a {what}",
            hint="use a lower-case letter, then up to 62 of a-z, 0-9, _ and -",
        )
    if value in RESERVED:
        raise ConfigError(f"{value!r} cannot name a {what}: readers of the archive would take it for something else")
    return value


def in_one_line(member: bytes) -> str:
    """Return a member as an error or a log line shows it: bytes that are no text, and line breaks, as escapes."""
    text = member.decode(errors="backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
