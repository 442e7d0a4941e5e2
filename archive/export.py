"""A sealed season as one file for other programs: CSV or Parquet, whole or not at all, over nothing by accident."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from archive.appearing import appearing, place_of
from archive.fetch import load_seal, sealed_file
from archive.layout import Kind
from archive.objects import Store
from archive.parts import ROW_GROUP_ROWS, writer_options
from archive.seal import Seal
from leaderboard.errors import InputError


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: where, how many rows, how many bytes."""

    path: Path
    rows: int
    size: int


def export(
    store: Store, board: str, season: str, target: Path, *, kind: Kind = "standings", force: bool = False
) -> Exported:
    """Write a sealed season's rows to ``target``, a ``.csv`` or ``.parquet`` file, and return what was written.

    CSV has a header; ids of binary boards are lower-case hex, times are UTC with a Z, what is not known is empty. The
    file appears whole, under its name only when it is done, and replaces another only with ``force``.

    Raises InputError for another suffix, a folder that is not there and a file that exists, AccessError if the file
    system refuses, UnknownNameError if the season is not sealed, ArchiveMismatchError if a part is not as sealed.
    """
    write = _WRITERS.get(target.suffix.lower())
    if write is None:
        raise InputError(f"{target} ends in neither .csv nor .parquet", hint="name the file after what it shall be")
    place_of(target, force=force)
    seal = load_seal(store, board, season, kind)
    with appearing(target, force) as file:
        write(file, store, seal)
        size = file.tell()
    return Exported(target, seal.facts.rows, size)


def _write_csv(file: BinaryIO, store: Store, seal: Seal) -> None:
    with ExitStack() as stack:
        writer: Any = None
        for part in seal.facts.parts:
            opened = sealed_file(store, seal, part)
            if writer is None:
                schema = _textual(opened.schema_arrow.empty_table()).schema
                writer = stack.enter_context(csv.CSVWriter(file, schema))
            for batch in opened.iter_batches():
                writer.write(_textual(pa.Table.from_batches([batch])))


def _write_parquet(file: BinaryIO, store: Store, seal: Seal) -> None:
    with ExitStack() as stack:
        writer: Any = None
        for part in seal.facts.parts:
            opened = sealed_file(store, seal, part)
            if writer is None:
                schema = opened.schema_arrow
                options = writer_options(schema, seal.facts.rows)
                writer = stack.enter_context(pq.ParquetWriter(file, schema, **options))
            # A part is read and written at once: writing its batches one by one would make tiny row groups.
            writer.write_table(opened.read(), row_group_size=ROW_GROUP_ROWS)


_WRITERS: dict[str, Callable[[BinaryIO, Store, Seal], None]] = {".csv": _write_csv, ".parquet": _write_parquet}


def _textual(table: Any) -> Any:
    """Return ``table`` with bytes as hex, since CSV is text."""
    for at, field in enumerate(table.schema):
        if pa.types.is_binary(field.type):
            hexed = pa.array([value.hex() for value in table[field.name].to_pylist()], pa.string())
            table = table.set_column(at, field.name, hexed)
    return table
