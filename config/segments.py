"""Segments: one table ``[board.<name>]`` that stands for several boards, each counting one value of an attribute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEYS = ("segments", "segment_by")


def expanded(boards: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables ``[board.<name>]`` with each that has segments replaced by its boards, ``<name>-<segment>``.

    Raises ValueError, naming the place, for segments that are none, or a board that there is already.
    """
    found: dict[str, Any] = {}
    for name, board in boards.items():
        if not isinstance(board, dict) or not any(key in board for key in KEYS):
            found[name] = board
            continue
        for called, one in _boards(name, board).items():
            if called in boards:
                raise ValueError(f"board.{name}.segments: there is a board {called} already")
            found[called] = one
    return found


def of(boards: Any) -> dict[str, tuple[str, ...]]:
    """Return, of each table that has segments, the names of its boards."""
    if not isinstance(boards, dict):
        return {}
    return {
        name: tuple(f"{name}-{segment}" for segment in board["segments"])
        for name, board in boards.items()
        if isinstance(board, dict) and isinstance(board.get("segments"), list | dict)
    }


def schema() -> dict[str, Any]:
    """Return what JSON Schema says of the keys that only this module reads."""
    values = {"type": "object", "additionalProperties": {"type": ["string", "integer", "number", "boolean"]}}
    return {
        "segments": {"title": "Segments", "anyOf": [{"type": "array", "items": {"type": "string"}}, values]},
        "segment_by": {"title": "Segment By", "type": "string"},
    }


def _boards(name: str, board: Mapping[str, Any]) -> dict[str, Any]:
    attribute, values = board.get("segment_by"), _values(name, board.get("segments"))
    where = board.get("where", {})
    if not isinstance(attribute, str) or not attribute:
        raise ValueError(f"board.{name}.segment_by is missing; it names the attribute that tells segments apart")
    if isinstance(where, dict) and attribute in where:
        raise ValueError(f"board.{name}.where has {attribute!r} too, by which the segments are told apart")
    shared = {key: value for key, value in board.items() if key not in KEYS}
    return {
        f"{name}-{segment}": {
            **shared,
            "source": board.get("source") or name,
            "where": {**where, attribute: value} if isinstance(where, dict) else where,
        }
        for segment, value in values.items()
    }


def _values(name: str, segments: Any) -> dict[str, Any]:
    """Return the attribute's value of each segment; a list names both alike."""
    if isinstance(segments, dict) and segments:
        return segments
    if not isinstance(segments, list) or not segments or not all(isinstance(one, str) for one in segments):
        raise ValueError(
            f'board.{name}.segments must be a list like ["eu", "na"], or a table {{ eu = "EU" }} of names and values'
        )
    if len(set(segments)) < len(segments):
        raise ValueError(f"board.{name}.segments names a segment twice")
    return {one: one for one in segments}
