"""Values of a seal, checked while they are read: whatever is wrong becomes one error that says where."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from archive.layout import part_name
from archive.parts import Part
from leaderboard.errors import ArchiveMismatchError, FinaleError

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Nonsense:
    """Turns whatever goes wrong inside, while reading a foreign value, into an ArchiveMismatchError that says where."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ArchiveMismatchError):
            return
        if isinstance(error, FinaleError | LookupError | TypeError | ValueError | AttributeError):
            raise ArchiveMismatchError(f"this is no seal: {self._what}", detail=str(error)) from None


def agree(sound: bool, what: str) -> None:
    if not sound:
        raise ValueError(what)


def parts_of(values: Sequence[Any], rows: Any) -> tuple[Part, ...]:
    parts = tuple(Part.from_json(value) for value in values)
    agree(bool(parts), "no parts")
    agree([part.name for part in parts] == [part_name(number) for number in range(len(parts))], "names of the parts")
    agree(type(rows) is int and sum(part.rows for part in parts) == rows, "the parts' rows are not the season's")
    return parts


def sha256_text(value: Any) -> str:
    agree(isinstance(value, str) and _SHA256.fullmatch(value) is not None, f"{value!r} is no SHA-256")
    return str(value)


def score_of(value: Any) -> float | None:
    if value is None:
        return None
    agree(type(value) in (int, float) and math.isfinite(value), f"{value!r} is no score")
    return float(value)
