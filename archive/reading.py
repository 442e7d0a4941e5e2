"""Reading sealed standings back: all of them, the top, one player, the players around one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from archive.fetch import load_seal, sealed_file
from archive.objects import Store
from archive.parts import FORMAT, Part, standings_schema
from archive.pieces import row_of
from archive.seal import Seal


def read(store: Store, board: str, season: str) -> Any:
    """Return a sealed season's standings as one Arrow table in board order; its ``to_pandas()`` gives a frame.

    Only parts that the seal names are read, and each is compared with its SHA-256. Raises UnknownNameError if the
    season is not sealed, ArchiveMismatchError if a part is missing or differs.
    """
    seal = load_seal(store, board, season)
    return _rows(store, seal, 1, seal.facts.rows)


def top(store: Store, board: str, season: str, k: int) -> Any:
    """Return positions 1..k as an Arrow table, reading only the parts that hold them; errors as ``read``."""
    return _rows(store, load_seal(store, board, season), 1, k)


def count(store: Store, board: str, season: str) -> int:
    """Return how many players a sealed season has; errors as ``read``."""
    return load_seal(store, board, season).facts.rows


def around(store: Store, board: str, season: str, position: int, n: int) -> Any:
    """Return the positions from ``position - n`` to ``position + n`` that exist, as ``top`` does."""
    return _rows(store, load_seal(store, board, season), position - n, position + n)


def player(store: Store, board: str, season: str, player_id: bytes) -> dict[str, Any] | None:
    """Return the player's row as a dictionary of its columns, or None; errors as ``read``.

    Parts are looked at in order until the player is found, each by the pieces that it takes (``archive.pieces``).
    """
    seal = load_seal(store, board, season)
    for part, before in _with_rows_before(seal):
        row = row_of(store, seal, part, player_id, before)
        if row is not None:
            return row
    return None


def _rows(store: Store, seal: Seal, first: int, last: int) -> Any:
    """Return positions ``first`` to ``last``, both included, as far as they exist."""
    tables: list[Any] = []
    for part, before in _with_rows_before(seal):
        start, end = max(first - 1 - before, 0), min(last - before, part.rows)
        if start < end:
            tables.append(sealed_file(store, seal, part).read().slice(start, end - start))
    if tables:
        return pa.concat_tables(tables)
    if not seal.facts.rows:
        return sealed_file(store, seal, seal.facts.parts[0]).read()  # that it is as sealed is part of the answer
    binary, fraction = seal.board.get("member") == "binary", seal.board.get("points") == "fraction"
    return standings_schema(binary, fraction).with_metadata({"finale.format": FORMAT}).empty_table()


def _with_rows_before(seal: Seal) -> Iterator[tuple[Part, int]]:
    before = 0
    for part in seal.facts.parts:
        yield part, before
        before += part.rows
