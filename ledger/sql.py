"""Named queries: SQL as data, in ``queries/<module>.sql``, each under a line ``-- name: <query>``.

In a query, a line ``-- use: <name>`` stands for the text of that name of the same module: what several have in common.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: ([a-z_]+)$", re.MULTILINE)
_USE = re.compile(rb"^ *-- use: ([a-z_]+)$", re.MULTILINE)


@cache
def _module(name: str) -> dict[str, bytes]:
    pieces = _NAME.split(files("ledger").joinpath("queries", f"{name}.sql").read_text("utf-8"))
    texts = {key: text.strip().encode() for key, text in zip(pieces[1::2], pieces[2::2], strict=True)}
    return {key: _USE.sub(lambda used: texts[used[1].decode()], text) for key, text in texts.items()}


def query(name: str) -> bytes:
    """Return the text of the query ``module.name``; KeyError if there is none."""
    module, _, key = name.partition(".")
    return _module(module)[key]
