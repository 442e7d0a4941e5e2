"""Where in the text of a reward table a fault stands: rules by number, line and name, other keys by their line."""

from __future__ import annotations

import re
from typing import Any

from leaderboard.faults import Place, Placer, dotted

_HEADER = re.compile(r"^[ \t]*(\[{1,2})[ \t]*([a-z_]+)[ \t]*\]{1,2}", re.MULTILINE)
_KEY = re.compile(r"^[ \t]*\"?([A-Za-z0-9_.-]+)\"?[ \t]*=", re.MULTILINE)
Sections = dict[Place, tuple[int, dict[str, int]]]


def placer(text: str, values: dict[str, Any]) -> Placer:
    """Return how to name a place in ``text``, which was read as ``values``."""
    sections = _sections(text)

    def place(at: Place) -> str:
        if not at or not isinstance(at[0], str):
            return dotted(at)
        listed = len(at) > 1 and isinstance(at[1], int)
        header = at[:2] if listed else at[:1]
        keys = at[len(header) :]
        line = _line(sections, header, keys, values)
        if not listed:
            return f"{f'line {line}, ' if line else ''}{dotted(at)}"
        named = f"{at[0]} {int(at[1]) + 1}{_title(values, at)}"
        return ", ".join(part for part in (named, f"line {line}" if line else "", dotted(keys) if keys else "") if part)

    return place


def _title(values: dict[str, Any], at: Place) -> str:
    """Return `` ('name')`` of a rule that has one."""
    try:
        named = values[str(at[0])][at[1]].get("name")
    except (AttributeError, IndexError, KeyError, TypeError):
        return ""
    return f" ({named!r})" if isinstance(named, str) else ""


def _sections(text: str) -> Sections:
    """Return the line of each header and of each key below it, the top of the text being the section ``()``."""
    found: Sections = {}
    counted: dict[str, int] = {}
    current: Place = ()
    found[current] = (0, {})
    for number, line in enumerate(text.split("\n"), 1):
        if match := _HEADER.match(line):
            name = match[2]
            current = (name, counted.setdefault(name, 0)) if match[1] == "[[" else (name,)
            counted[name] = counted.get(name, 0) + 1
            found[current] = (number, {})
        elif match := _KEY.match(line):
            found[current][1].setdefault(match[1], number)
    return found


def _line(sections: Sections, header: Place, keys: Place, values: dict[str, Any]) -> int | None:
    """Return the line of a key, or of its header; None where the text is not written plainly enough to tell."""
    name = str(header[0])
    listed = sum(1 for known in sections if len(known) == 2 and known[0] == name)
    if header in sections and (len(header) == 1 or listed == len(values[name])):
        number, of_keys = sections[header]
        return of_keys.get(str(keys[0]), number) if keys else number
    return sections[()][1].get(name) if len(header) == 1 else None
