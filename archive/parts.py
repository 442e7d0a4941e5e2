"""Parts: Arrow rows in a fixed schema, encoded to Parquet in memory, deterministically."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from archive.layout import part_name, part_number
from leaderboard.errors import ArchiveMismatchError, InputError

FORMAT = "1"  #: the version of the files' format, in every part and every seal
ROW_GROUP_ROWS = 300_000  #: as many as fill a Bloom filter of 256 KB at its rate of false positives
PART_ROWS = 4 * ROW_GROUP_ROWS
ROW_GROUP_BYTES = 32 * 2**20  #: of text, so that a few row groups of long ids fit into memory
PART_BYTES = 256 * 2**20  #: of text and bytes before compression, far below Arrow's 2 GiB to a column

_DICTIONARY_COLUMNS = frozenset({"rule", "item"})  # few distinct values, many rows
_BLOOM_COLUMN = "player_id"
_BLOOM_FALSE_POSITIVES = 0.05


def standings_schema(binary: bool = False, fraction: bool = False) -> Any:
    """Return the Arrow schema of standings, fixed for format version 1.

    ``binary``: player ids are bytes, not text. ``fraction``: points are doubles, not whole numbers.
    """
    return pa.schema(
        [
            pa.field("position", pa.int64(), nullable=False),
            pa.field("rank", pa.int64(), nullable=False),
            pa.field("player_id", pa.binary() if binary else pa.string(), nullable=False),
            pa.field("points", pa.float64() if fraction else pa.int64(), nullable=False),
            pa.field("reached_at", pa.timestamp("us", tz="UTC"), nullable=True),
            pa.field("score", pa.float64(), nullable=False),
        ]
    )


@dataclass(frozen=True, slots=True)
class Part:
    """One Parquet file of a season as its seal names it: ``size`` in bytes, ``sha256`` of the file in hexadecimal."""

    name: str
    rows: int
    size: int
    sha256: str

    def to_json(self) -> dict[str, Any]:
        """Return the part as plain JSON values."""
        return {"name": self.name, "rows": self.rows, "size": self.size, "sha256": self.sha256}

    @classmethod
    def from_json(cls, value: Any) -> Part:
        """Return the part that ``value`` holds; raise ArchiveMismatchError if it is not what ``to_json`` gives."""
        try:
            part = cls(**value)
            sound = (
                part_number(part.name) is not None
                and all(type(number) is int and number >= 0 for number in (part.rows, part.size))
                and len(bytes.fromhex(part.sha256)) == hashlib.sha256().digest_size
            )
        except (TypeError, ValueError):
            sound = False
        if not sound:
            raise ArchiveMismatchError(f"this describes no part of an archive: {value!r}")
        return part


def encode(table: Any) -> bytes:
    """Return ``table`` as one Parquet file: the same bytes for the same rows, however chunked, and library version.

    Encodings follow from the column's type (and, for the few repeated words of grants, its name). Raises InputError
    for text that is not UTF-8, and for a null in a column that has none.
    """
    file = _File(table.schema, table.num_rows)
    for start in range(0, table.num_rows, ROW_GROUP_ROWS):
        file.write(table.slice(start, ROW_GROUP_ROWS))
    return file.close()


class _File:
    """A Parquet file in memory, of row groups written one after the other."""

    def __init__(self, schema: Any, rows: int) -> None:
        schema = schema.with_metadata({"finale.format": FORMAT})
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, schema, **writer_options(schema, rows))
        self.rows = 0

    def write(self, table: Any) -> None:
        """Add ``table`` as one row group; raise InputError for what cannot be archived."""
        table = table.combine_chunks().replace_schema_metadata({"finale.format": FORMAT})
        try:
            table.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InputError("these rows cannot be archived", detail=str(error)) from None
        for field in table.schema:
            if not field.nullable and table[field.name].null_count:
                raise InputError(f"these rows cannot be archived: {field.name} is empty in one of them")
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
        self.rows += table.num_rows

    def close(self) -> bytes:
        self._writer.close()
        data: bytes = self._sink.getvalue().to_pybytes()
        return data


def writer_options(schema: Any, rows: int) -> dict[str, Any]:
    """Return how a file of ``rows`` rows is written, as keywords of pyarrow's Parquet writers.

    Where rows are not known beforehand, those of its first row group will do.
    """
    return {
        "compression": "zstd",
        "use_dictionary": [name for name in schema.names if name in _DICTIONARY_COLUMNS],
        "column_encoding": _encodings(schema),
        "bloom_filter_options": _bloom(schema, rows),
    }


def _encodings(schema: Any) -> dict[str, str]:
    encodings = {field.name: _encoding(field.type) for field in schema if field.name not in _DICTIONARY_COLUMNS}
    return {name: encoding for name, encoding in encodings.items() if encoding}


def _encoding(kind: Any) -> str:
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        return "DELTA_BINARY_PACKED"
    if pa.types.is_floating(kind):
        return "BYTE_STREAM_SPLIT"
    if _is_text(kind):
        return "DELTA_BYTE_ARRAY"
    return ""


def _is_text(kind: Any) -> bool:
    return kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def _bloom(schema: Any, rows: int) -> dict[str, Any] | None:
    if _BLOOM_COLUMN not in schema.names or not rows:
        return None
    distinct = min(rows, ROW_GROUP_ROWS)
    return {_BLOOM_COLUMN: {"ndv": distinct, "fpp": _BLOOM_FALSE_POSITIVES}}


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that stand together in a part, not encoded yet, and whether the part ends with them."""

    rows: Any
    ends: bool


class PartEncoder:
    """Encodes row groups as they come; may run in another thread than the one that cuts them.

    Nothing here touches a store: a part comes out whole or not at all.
    """

    def __init__(self) -> None:
        self._file: _File | None = None
        self._parts = 0

    def add(self, group: RowGroup) -> list[tuple[Part, bytes]]:
        """Encode ``group``; return the part that ends with it, with its bytes. Raises what :func:`encode` raises."""
        if self._file is None:
            self._file = _File(group.rows.schema, group.rows.num_rows)
        if group.rows.num_rows:
            self._file.write(group.rows)
        if not group.ends:
            return []
        file, self._file = self._file, None
        data = file.close()
        part = Part(part_name(self._parts), file.rows, len(data), hashlib.sha256(data).hexdigest())
        self._parts += 1
        return [(part, data)]


class PartCutter:
    """Gathers batches of one schema and cuts them into row groups of parts, at the same rows however they came.

    A part ends after ``part_rows`` rows, or before the row with which its text would pass ``part_bytes``. A season
    without rows is one part with none.
    """

    def __init__(self, schema: Any, part_rows: int = PART_ROWS, part_bytes: int = PART_BYTES) -> None:
        self._schema = schema
        self._text = [index for index, field in enumerate(schema) if _is_text(field.type)]
        self._part = _Room(part_rows, part_bytes)
        self._group = _Room(ROW_GROUP_ROWS, ROW_GROUP_BYTES)
        self._batches: list[Any] = []
        self._parts = 0

    def add(self, batch: Any) -> list[RowGroup]:
        """Take a record batch; return the row groups that it completes, in order.

        Raises ValueError if the batch does not have the cutter's schema.
        """
        if not batch.schema.equals(self._schema):
            raise ValueError(f"a batch of another schema: {batch.schema} instead of {self._schema}")
        done = []
        while batch.num_rows:
            widths = self._widths(batch)
            ended = self._part.taken(widths) == 0
            if ended or (taken := min(self._part.taken(widths), self._group.taken(widths))) == 0:
                done.append(self._cut(ends=ended))
                continue
            self._batches.append(batch.slice(0, taken))
            self._part.use(widths[:taken])
            self._group.use(widths[:taken])
            batch = batch.slice(taken)
        return done

    def finish(self) -> list[RowGroup]:
        """Return the end of the last part; without any rows it is one with none."""
        return [self._cut(ends=True)] if self._part.rows or not self._parts else []

    def _widths(self, batch: Any) -> NDArray[np.int64]:
        """Return the bytes of text in each row."""
        widths = np.zeros(batch.num_rows, np.int64)
        for index in self._text:
            lengths = pc.binary_length(batch.column(index))
            if lengths.null_count:
                lengths = pc.fill_null(lengths, 0)
            size = lengths.type.byte_width
            widths += np.frombuffer(lengths.buffers()[1], f"i{size}", len(lengths), lengths.offset * size)
        return widths

    def _cut(self, *, ends: bool) -> RowGroup:
        group = RowGroup(pa.Table.from_batches(self._batches, schema=self._schema), ends)
        self._batches = []
        self._group.clear()
        if ends:
            self._part.clear()
            self._parts += 1
        return group


class _Room:
    """What still goes into a part or a row group: rows, and bytes of text; one row always does."""

    def __init__(self, rows: int, size: int) -> None:
        self._most_rows, self._most_bytes = rows, size
        self.clear()

    def clear(self) -> None:
        self.rows = self._bytes = 0

    def taken(self, widths: NDArray[np.int64]) -> int:
        """Return how many of the next rows, with these ``widths``, go in."""
        widths = widths[: self._most_rows - self.rows]
        if self._bytes + int(widths.sum()) <= self._most_bytes:
            return widths.size
        fitting = int(np.searchsorted(self._bytes + np.cumsum(widths), self._most_bytes, side="right"))
        return fitting if self.rows else max(fitting, 1)

    def use(self, widths: NDArray[np.int64]) -> None:
        """Take note of rows that went in."""
        self.rows += widths.size
        self._bytes += int(widths.sum())


class PartWriter:
    """Gathers batches of one schema and gives out encoded parts, cut as :class:`PartCutter` cuts them.

    Nothing here touches a store: a part exists only when it is whole.
    """

    def __init__(self, schema: Any, part_rows: int = PART_ROWS, part_bytes: int = PART_BYTES) -> None:
        self._cutter = PartCutter(schema, part_rows, part_bytes)
        self._encoder = PartEncoder()

    def add(self, batch: Any) -> list[tuple[Part, bytes]]:
        """Take a record batch; return the parts that it completes, each with its bytes, in order.

        Raises ValueError if the batch does not have the writer's schema.
        """
        return self._encoded(self._cutter.add(batch))

    def finish(self) -> list[tuple[Part, bytes]]:
        """Return the last part, with its bytes; without any rows it is one with none."""
        return self._encoded(self._cutter.finish())

    def _encoded(self, groups: list[RowGroup]) -> list[tuple[Part, bytes]]:
        return [done for group in groups for done in self._encoder.add(group)]
