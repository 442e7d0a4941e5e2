"""Named queries: SQL as data, in ``queries/<module>.sql``, each under a line ``-- name: <query>``."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: ([a-z_]+)$", re.MULTILINE)


@cache
def _module(name: str) -> dict[str, bytes]:
    pieces = _NAME.split(files("ledger").joinpath("queries", f"{name}.sql").read_text("utf-8"))
    return {key: text.strip().encode() for key, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def query(name: str) -> bytes:
    """Return the text of the query ``module.name``; KeyError if there is none."""
    module, _, key = name.partition(".")
    return _module(module)[key]
