"""Parts: Arrow rows in a fixed schema, encoded to Parquet in memory, deterministically."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from archive.layout import part_name, part_number
from leaderboard.errors import ArchiveMismatchError, InputError

FORMAT = "1"  #: the version of the files' format, in every part and every seal
PART_ROWS = 1_048_576
PART_BYTES = 256 * 2**20  #: of text and bytes before compression, far below Arrow's 2 GiB to a column
ROW_GROUP_ROWS = 1_048_576

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
    table = table.combine_chunks().replace_schema_metadata({"finale.format": FORMAT})
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InputError("these rows cannot be archived", detail=str(error)) from None
    for field in table.schema:
        if not field.nullable and table[field.name].null_count:
            raise InputError(f"these rows cannot be archived: {field.name} is empty in one of them")
    file = BytesIO()
    pq.write_table(table, file, row_group_size=ROW_GROUP_ROWS, **writer_options(table.schema, table.num_rows))
    return file.getvalue()


def writer_options(schema: Any, rows: int) -> dict[str, Any]:
    """Return how a file of ``rows`` rows is written, as keywords of pyarrow's Parquet writers."""
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


class Cut:
    """The rows of one part, not encoded yet."""

    def __init__(self, name: str, batches: list[Any], schema: Any) -> None:
        self._name = name
        self._batches = batches
        self._schema = schema

    def encoded(self) -> tuple[Part, bytes]:
        """Return the part and its bytes, once: the rows are let go. May run in another thread than the one that cuts.

        Raises what :func:`encode` raises.
        """
        table, self._batches = pa.Table.from_batches(self._batches, schema=self._schema), []
        data = encode(table)
        return Part(self._name, table.num_rows, len(data), hashlib.sha256(data).hexdigest()), data


class PartCutter:
    """Gathers batches of one schema and cuts them into parts, at the same rows however the batches came.

    A part ends after ``part_rows`` rows, or before the row with which its text would pass ``part_bytes``. A season
    without rows is one part with none.
    """

    def __init__(self, schema: Any, part_rows: int = PART_ROWS, part_bytes: int = PART_BYTES) -> None:
        self._schema = schema
        self._text = [index for index, field in enumerate(schema) if _is_text(field.type)]
        self._part_rows = part_rows
        self._part_bytes = part_bytes
        self._batches: list[Any] = []
        self._rows = 0
        self._bytes = 0
        self._parts = 0

    def add(self, batch: Any) -> list[Cut]:
        """Take a record batch; return the parts that it completes, in order.

        Raises ValueError if the batch does not have the writer's schema.
        """
        if not batch.schema.equals(self._schema):
            raise ValueError(f"a batch of another schema: {batch.schema} instead of {self._schema}")
        done = []
        while batch.num_rows:
            taken = self._room_for(batch)
            if taken:
                self._take(batch.slice(0, taken))
                batch = batch.slice(taken)
            if batch.num_rows or self._rows == self._part_rows:
                done.append(self._cut())
        return done

    def finish(self) -> list[Cut]:
        """Return the last part; nothing if all rows have been given out already."""
        return [self._cut()] if self._rows or not self._parts else []

    def _room_for(self, batch: Any) -> int:
        rows: int = min(batch.num_rows, self._part_rows - self._rows)
        if self._bytes + self._text_bytes(batch.slice(0, rows)) <= self._part_bytes:
            return rows
        widths = self._widths(batch.slice(0, rows))
        fitting = int(np.searchsorted(self._bytes + np.cumsum(widths), self._part_bytes, side="right"))
        return fitting if self._rows else max(fitting, 1)

    def _text_bytes(self, batch: Any) -> int:
        return sum(pc.sum(pc.binary_length(batch.column(index))).as_py() or 0 for index in self._text)

    def _widths(self, batch: Any) -> NDArray[np.int64]:
        widths = np.zeros(batch.num_rows, np.int64)
        for index in self._text:
            widths += pc.fill_null(pc.binary_length(batch.column(index)), 0).to_numpy(zero_copy_only=False)
        return widths

    def _take(self, batch: Any) -> None:
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += self._text_bytes(batch)

    def _cut(self) -> Cut:
        cut = Cut(part_name(self._parts), self._batches, self._schema)
        self._batches, self._rows, self._bytes = [], 0, 0
        self._parts += 1
        return cut


class PartWriter:
    """Gathers batches of one schema and gives out encoded parts, cut as :class:`PartCutter` cuts them.

    Nothing here touches a store: a part exists only when it is whole.
    """

    def __init__(self, schema: Any, part_rows: int = PART_ROWS, part_bytes: int = PART_BYTES) -> None:
        self._cutter = PartCutter(schema, part_rows, part_bytes)

    def add(self, batch: Any) -> list[tuple[Part, bytes]]:
        """Take a record batch; return the parts that it completes, each with its bytes, in order.

        Raises ValueError if the batch does not have the writer's schema.
        """
        return [cut.encoded() for cut in self._cutter.add(batch)]

    def finish(self) -> list[tuple[Part, bytes]]:
        """Return the last part, with its bytes; nothing if all rows have been given out already."""
        return [cut.encoded() for cut in self._cutter.finish()]
