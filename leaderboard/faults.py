"""What is wrong in a TOML text that a person wrote: the place, the value, what is right. Never a traceback."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from leaderboard.errors import ConfigError

Place = tuple[int | str, ...]
Placer = Callable[[Place], str]
_POSITION = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_SHOWN = 60
_TYPES = {
    "model_type": "a table",
    "dict_type": "a table",
    "list_type": "a list",
    "tuple_type": "a list",
    "string_type": "text",
    "bool_type": "true or false",
}


class FaultAt(ValueError):  # noqa: N818 - raised in validators, where pydantic makes the error of it
    """A fault of the whole that stands at a place of its own: ``at``, from what is being validated on."""

    def __init__(self, at: Place, said: str) -> None:
        super().__init__(said)
        self.at = at


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    """Return the TOML ``text`` as plain values; raise ConfigError with ``origin``, line and column otherwise."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason = str(error)
    match = _POSITION.search(reason)
    lines = text.split("\n")
    line, column = (match[1], match[2]) if match and match[1] else (len(lines), len(lines[-1]) + 1)
    reason = _POSITION.sub("", reason)
    raise ConfigError(
        f"{origin}, line {line}, column {column}: this is no TOML",
        detail=reason,
        hint='mend it there: text stands in quotes, a key once in its table; "finale init" writes examples',
    )


def dotted(place: Place) -> str:
    """Return a place as a person writes it: ``board.goals.calendar.seasons[2].id``, the first element being 1."""
    text = ""
    for part in place:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".") or "the file"


def describe(
    error: ValidationError,
    model: type[BaseModel],
    *,
    place: Placer = dotted,
    hidden: frozenset[str] = frozenset(),
) -> list[str]:
    """Return each fault that ``model`` found as one line: the place, the value if it may be shown, and what is right.

    Values below the top-level keys in ``hidden``, and whatever looks like a URL, may hold a secret and are not shown.
    """
    lines = [_line(item, model, place, hidden) for item in error.errors(include_url=False)]
    return list(dict.fromkeys(lines))  # a value that is none of several types is one fault


def refuse(origin: str, faults: list[str], hint: str = "") -> ConfigError:
    """Return the one error that tells all ``faults`` found in ``origin``; there is at least one."""
    if len(faults) == 1:
        return ConfigError(f"{origin}: {faults[0]}", hint=hint)
    return ConfigError(f"{origin} has {len(faults)} faults", detail="\n".join(faults), hint=hint)


def nearest(word: str, known: list[str]) -> str:
    """Return ``; did you mean …?`` for the nearest known word, else the known ones."""
    if close := get_close_matches(word, known, n=1, cutoff=0.6):
        return f"; did you mean {close[0]}?"
    return f"; known here: {', '.join(known)}" if known else ""


def _line(item: Mapping[str, Any], model: type[BaseModel], place: Placer, hidden: frozenset[str]) -> str:
    at: Place = (*item["loc"], *getattr(item.get("ctx", {}).get("error"), "at", ()))
    kind: str = item["type"]
    if kind == "extra_forbidden":
        return (
            f"{place(at)} is an unknown key{_belongs(model, at, place) or nearest(str(at[-1]), _known(model, at[:-1]))}"
        )
    if kind == "missing":
        return f"{place(at)} is missing"
    reason = _reason(item, kind)
    if at and get_origin(_kind(model, at[:-1])) in (Union, UnionType):
        at, reason = at[:-1], "must be text, a number, true or false"
    shown = "" if at and at[0] in hidden else _shown(item["input"])
    return f"{place(at)}{shown}: {reason}"


def _reason(item: Mapping[str, Any], kind: str) -> str:
    context = item.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind in _TYPES:
        return f"must be {_TYPES[kind]}"
    if kind == "too_short" and context["min_length"] == 1:
        return "must not be empty"
    reason = str(item["msg"]).replace("Input should", "must", 1)
    if kind == "literal_error" and isinstance(item["input"], str):
        close = get_close_matches(item["input"], re.findall(r"'([^']*)'", context["expected"]), n=1)
        return reason + "".join(f"; did you mean {word}?" for word in close)
    return reason


def _shown(value: Any) -> str:
    """Return `` = value`` for a plain value, nothing for a table or what looks like a URL."""
    if isinstance(value, dict | list | tuple | BaseModel) or "://" in str(value):
        return ""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
    return f" = {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"


def _belongs(model: type[BaseModel], at: Place, place: Placer) -> str:
    """Return ``; it belongs into …`` where a table beside the misplaced key has a key of that name, else nothing."""
    name = str(at[-1])
    tables = [key for key in _known(model, at[:-1]) if name in _known(model, (*at[:-1], key))]
    if not tables:
        return ""
    written = " or ".join(f"{place((*at[:-1], table))} = {{ {name} = … }}" for table in tables)
    return f"; it belongs into {written}"


def _known(model: type[BaseModel], place: Place) -> list[str]:
    """Return the keys that the table at ``place`` may have."""
    fields = getattr(_kind(model, place), "model_fields", {})
    return [field.alias or name for name, field in fields.items()]


def _kind(model: type[BaseModel], place: Place) -> Any:
    """Return the type of what stands at ``place``, None if the model says nothing of it."""
    kind: Any = model
    for part in place:
        kind = _below(kind, part)
    return kind


def _below(kind: Any, part: int | str) -> Any:
    """Return the type of what ``part`` names in ``kind``: a field of a model, a value of a table, an item of a list."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        named = {field.alias or name: field for name, field in kind.model_fields.items()}
        return _bare(named[str(part)].annotation) if part in named else None
    inner = [argument for argument in get_args(kind) if argument is not ...]
    return _bare(inner[-1]) if inner and get_origin(kind) in (dict, list, tuple) else None


def _bare(kind: Any) -> Any:
    """Return ``kind`` without ``Annotated`` and ``| None``."""
    if hasattr(kind, "__metadata__"):
        return _bare(kind.__origin__)
    inner = [argument for argument in get_args(kind) if argument is not type(None)]
    return _bare(inner[0]) if type(None) in get_args(kind) and len(inner) == 1 else kind
