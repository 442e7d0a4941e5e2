"""Keys that look like a board's and belong to no season: templates turned into patterns, the ledger subtracted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from leaderboard import keys
from leaderboard.errors import ConfigError
from leaderboard.season import Season
from leaderboard.states import TERMINAL, State

_FIELD = re.compile(r"<([^<>]*)>")
_NAME = "[a-z][a-z0-9_-]{0,62}"
_DIGITS = {"Y": 4, "y": 2, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "j": 3, "G": 4, "V": 2, "u": 1, "w": 1}


@dataclass(frozen=True, slots=True)
class Shape:
    """What the live keys of one board look like."""

    board: str
    pattern: re.Pattern[str]

    def fits(self, key: str) -> bool:
        """Return whether ``key`` could be a live key of the board."""
        return self.pattern.fullmatch(key) is not None

    def season(self, key: str) -> str | None:
        """Return the season that a fitting ``key`` names; None where the template has bounds in place of ids."""
        match = self.pattern.fullmatch(key)
        return match.groupdict().get("season") if match else None


def shape_of(board: str, template: str, *, sharded: bool = False) -> Shape:
    """Return the shape of a checked key template: literal parts as they are, a name or digits for each field.

    A ``sharded`` board has its rows in several sorted sets, whose names have the number of the shard.
    """
    pieces = _FIELD.split(keys.with_shard(template) if sharded else template)
    seen: set[str] = set()
    pattern = "".join(
        _field(board, piece, seen) if index % 2 else re.escape(piece) for index, piece in enumerate(pieces)
    )
    return Shape(board, re.compile(pattern))


def _field(board: str, field: str, seen: set[str]) -> str:
    name, _, layout = field.partition(":")
    if name == "board":
        return re.escape(board)
    if name == "shard":
        return "(?:0|[1-9][0-9]{0,2})"
    if name == "season":
        again = "season" in seen
        seen.add("season")
        return "(?P=season)" if again else f"(?P<season>{_NAME})"
    literals = re.split(r"(%.)", layout)
    return "".join(_directive(piece[1]) if index % 2 else re.escape(piece) for index, piece in enumerate(literals))


def _directive(letter: str) -> str:
    return "%" if letter == "%" else f"[0-9]{{{_DIGITS[letter]}}}"


@dataclass(frozen=True, slots=True)
class Helper:
    """A helper key, the kind of it, and the live keys beside which it may stand: two, if one is the other in braces."""

    name: str
    kind: str
    beside: tuple[str, ...]


def helper(name: str) -> Helper | None:
    """Return the helper key called ``name``; None for any other key."""
    base, found, what = name.rpartition(":finale:")
    kind, _, season = what.partition(":")
    if not found or not _is_kind(kind, season):
        return None
    inner = base[1:-1] if base.startswith("{") and base.endswith("}") else ""
    beside = tuple(key for key in (inner, base) if key and _named(key, kind, season) == name)
    return Helper(name, kind, beside) if beside else None


def _is_kind(kind: str, season: str) -> bool:
    if kind == keys.BUILDING:
        return re.fullmatch(r"[0-9]+(:bands|:old)?", season) is not None
    return re.fullmatch(_NAME, season) is not None if kind == keys.FROZEN else kind in keys.KINDS and not season


def _named(key: str, kind: str, season: str) -> str | None:
    try:
        if kind == keys.BUILDING:
            fence, _, what = season.partition(":")
            return keys.building_keys(key, int(fence))[("", "bands", "old").index(what)]
        return keys.frozen_key(key, season) if kind == keys.FROZEN else keys.helper_key(key, kind)
    except ConfigError:
        return None


@dataclass(frozen=True, slots=True)
class Stray:
    """A sorted set that fits some boards' templates, each with the season it would be (None: not to be told)."""

    key: str
    fits: tuple[tuple[str, str | None], ...]


def stray_keys(sorted_sets: Iterable[str], shapes: Iterable[Shape], seasons: Iterable[Season]) -> list[Stray]:
    """Return the sorted sets that look like boards and are no season's live key, in order."""
    known = {key for season in seasons if season.state is not State.CANCELLED for key in season.live_keys}
    shapes = list(shapes)
    found = []
    for key in sorted(set(sorted_sets) - known):
        fits = tuple(sorted({(shape.board, shape.season(key)) for shape in shapes if shape.fits(key)}, key=str))
        if fits:
            found.append(Stray(key, fits))
    return found


def stray_helpers(helpers: Iterable[Helper], seasons: Iterable[Season]) -> list[Helper]:
    """Return the helper keys whose live key belongs to no season that has still to be cleaned, in order.

    What a season left under a private name is its own, not a helper of others: told where no season has that name.
    """
    known = [season for season in seasons if season.state is not State.CANCELLED]
    owned = {key for season in known for key in season.own_keys}
    needed = {key for season in known if season.state not in TERMINAL for key in season.own_keys}
    left = {
        one.name: one
        for one in helpers
        if (one.name not in owned if one.kind == keys.FROZEN else needed.isdisjoint(one.beside))
    }
    return [left[name] for name in sorted(left)]


def cleaned_keys(seasons: Iterable[Season]) -> Mapping[str, Season]:
    """Return the last cleaned season of each key that was proved and removed, if no season has it any more."""
    known = sorted(seasons, key=lambda season: season.bounds)
    needed = {key for season in known if season.state not in TERMINAL for key in (*season.live_keys, *season.own_keys)}
    return {
        key: season for season in known if season.state is State.CLEANED for key in season.own_keys if key not in needed
    }
