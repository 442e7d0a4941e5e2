"""Match results from CSV and Parquet files, line by line, each row taken or refused with its reason."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from leaderboard.codec import LIMIT
from leaderboard.encoding import SAVE_AS_UTF_8, wrong_encoding
from leaderboard.errors import InputError
from leaderboard.files import check_file

REQUIRED = ("match_id", "player_id", "points", "played_at")
_COLUMNS = f"the columns are {', '.join(REQUIRED)}; further ones become attributes"
#: Of ``finale results export``; an import passes over them: when it was received, what became of it, and why.
OWN_COLUMNS = ("finale_received", "finale_state", "finale_reason")
EARLIEST = 1800  #: no game is older; what claims to be has a time that nobody set
ID_BYTES = 1_024  #: longer ids do not fit the ledger's index
_HEAD = 16  #: bytes that tell an encoding; further in, a null byte is the fault of its row or column
_WHOLE = re.compile(r"[+-]?[0-9]+")


class Result(NamedTuple):
    """One player's result of one match. ``line`` is where it stood; ``attributes`` are whatever else was said."""

    line: int
    match_id: str
    player_id: bytes
    points: int
    played_at: datetime
    attributes: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that is no result, as it was given, and why."""

    line: int
    reason: str
    given: dict[str, str]


@dataclass(slots=True)
class Chunk:
    """Some rows of a file in order."""

    results: list[Result] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return len(self.results) + len(self.unreadable)


class _Row(NamedTuple):
    """The cells of a row by column, and what is wrong with the row as a whole."""

    cells: Mapping[str, Any]
    fault: str = ""


class _Fault(NamedTuple):
    """What stands in place of a value that Python cannot have, and why."""

    error: Exception


def read_file(path: Path, rows: int) -> Iterator[Chunk]:
    """Yield the file's rows in chunks of up to ``rows``.

    Raises InputError for a file that cannot be read, is neither CSV nor Parquet, or lacks a column.
    """
    try:
        if path.is_dir():  # so is what stands for no name at all
            raise InputError(f"{path} is a folder, no file", hint="name a .csv or .parquet file")
        if path.suffix.lower() in (".parquet", ".pq"):
            yield from _chunks(_parquet_rows(path), rows)
        elif path.suffix.lower() == ".csv":
            yield from _chunks(_csv_rows(path), rows)
        else:
            raise InputError(f"{path} is neither .csv nor .parquet", hint="name the file for what it is")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}", hint="look at the path and at who may read it"
        ) from error


def _chunks(given: Iterator[tuple[int, _Row]], rows: int) -> Iterator[Chunk]:
    chunk = Chunk()
    for line, row in given:
        try:
            if row.fault:
                raise ValueError(row.fault)
            chunk.results.append(_result(line, row.cells))
        except ValueError as error:
            shown = {key: str(value) for key, value in row.cells.items() if value is not None}
            chunk.unreadable.append(Unreadable(line, str(error), shown))
        if chunk.rows >= rows:
            yield chunk
            chunk = Chunk()
    if chunk.rows:
        yield chunk


def _csv_rows(path: Path) -> Iterator[tuple[int, _Row]]:
    with path.open("rb") as start:
        head = start.read(_HEAD)
    if wrong := wrong_encoding(head):
        raise InputError(f"{path} is no UTF-8 text", detail=wrong, hint=SAVE_AS_UTF_8)
    # Bytes that are no UTF-8 survive as surrogates, so that the fault can be told with its line.
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, None)
            if header is None:
                raise InputError(f"{path} is an empty file", hint=_COLUMNS)
            _check_columns(path, header)
            line = reader.line_num + 1
            for cells in reader:
                if cells:
                    row: dict[str, Any] = dict(zip(header, cells, strict=False))
                    ragged = len(cells) != len(header)
                    yield line, _Row(row, f"{len(cells)} cells where the header names {len(header)}" if ragged else "")
                line = reader.line_num + 1
        except csv.Error as error:
            raise InputError(
                f"{path}, line {reader.line_num}: {error}",
                hint="mend it and import the file again; rows taken before it are not taken twice",
            ) from None


def _parquet_rows(path: Path) -> Iterator[tuple[int, _Row]]:
    import pyarrow as pa  # heavy, and few who count results read Parquet
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(check_file(path)) as file:
            _check_columns(path, file.schema_arrow.names)
            line = 1
            for batch in file.iter_batches(batch_size=10_000):
                columns = [_values(column) for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    yield line, _Row(dict(zip(batch.schema.names, cells, strict=True)))
                    line += 1
    except pa.ArrowException as error:
        raise InputError(
            f"{path} is no readable Parquet file: {str(error).splitlines()[0]}",
            hint="write or copy it again; was it cut off, or is it another format under this name?",
        ) from None


def _values(column: Any) -> list[Any]:
    """Return a column's values; aware times in UTC, finer than microseconds cut off, and faults as ``_Fault``."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", "UTC" if column.type.tz else None), safe=False)
    try:
        found: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        return [_value(scalar) for scalar in column]
    return found


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return scalar.as_buffer().to_pybytes().decode("utf-8", "surrogateescape")
    except (ValueError, OverflowError) as error:
        return _Fault(error)


def _check_columns(path: Path, header: list[str]) -> None:
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        raise InputError(
            f"{path} lacks the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}",
            detail=f"it has {', '.join(map(repr, header)) or 'no header'}",
            hint=_COLUMNS,
        )
    if doubled := sorted({name for name in header if header.count(name) > 1}):
        raise InputError(f"{path} has the column {doubled[0]!r} twice", hint="rename one of them, or leave it out")
    if unclean := [name for name in header if not name or not _clean(name)]:
        raise InputError(f"{path}: {unclean[0]!r} cannot name column {header.index(unclean[0]) + 1}", hint=_COLUMNS)


def _result(line: int, row: Mapping[str, Any]) -> Result:
    extra = {
        key: _attribute(key, value)
        for key, value in row.items()
        if key not in REQUIRED and key not in OWN_COLUMNS and value not in (None, "")
    }
    return Result(
        line,
        _identifier(row["match_id"], "match_id").decode(),
        _identifier(row["player_id"], "player_id"),
        _points(row["points"]),
        _instant(row["played_at"]),
        extra or None,
    )


def _attribute(key: str, value: Any) -> Any:
    if isinstance(value, _Fault | bytes) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"{key} {value!r} cannot be an attribute")
    text = str(value)
    if not _clean(text):
        raise ValueError(f"{key} {text!r} is not clean UTF-8 text")
    return value if isinstance(value, str | bool | int | float) else text


def _clean(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _identifier(value: Any, column: str) -> bytes:
    raw = value if isinstance(value, bytes) else str("" if value is None else value).encode("utf-8", "surrogateescape")
    if not raw:
        raise ValueError(f"{column} is empty")
    if len(raw) > ID_BYTES:
        raise ValueError(f"{column} has {len(raw):,} bytes; the ledger takes {ID_BYTES:,}")
    if column == "match_id" or not isinstance(value, bytes):
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{column} {raw!r} is not UTF-8") from None
        if column == "match_id" and "\x00" in text:
            raise ValueError(f"{column} {text!r} contains a NUL")
    return raw


def _points(value: Any) -> int:
    if isinstance(value, str):
        whole = int(value) if len(value) <= 40 and _WHOLE.fullmatch(value.strip()) else None
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool) and math.isfinite(value):
        whole = int(value) if value == int(value) else None
    else:
        whole = None
    if whole is None:
        raise ValueError(f"points {value!r} is no whole number")
    if abs(whole) >= LIMIT:
        raise ValueError(f"points {whole} is past 2^53 - 1, beyond which scores are not exact")
    return whole


def _instant(value: Any) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(f"played_at {value!r} is no ISO 8601 time") from None
    if not isinstance(value, datetime):
        raise ValueError(f"played_at {value!r} is no time")
    if value.utcoffset() is None:
        raise ValueError(f"played_at {value.isoformat()} has no UTC offset; write it like 2026-01-31T18:00:00Z")
    if value.year < EARLIEST:
        raise ValueError(f"played_at {value.isoformat()} is before {EARLIEST}: a time that was never set?")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"played_at {value.isoformat()} is out of range") from None


def as_text(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Return attributes as a CSV file would say them, so that every file, and every filter, means the same.

    ``true`` and ``false`` for truth, and no ``.0`` after a whole number.
    """
    return {key: _text(value) for key, value in attributes.items()}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def attributes_json(attributes: Mapping[str, Any] | None) -> str | None:
    """Return attributes as JSON text for COPY, None if there are none."""
    return json.dumps(as_text(attributes), ensure_ascii=False, sort_keys=True) if attributes else None


def as_csv(results: list[Result]) -> str:
    """Return results as the CSV that ``read_file`` takes; attributes are left out."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(REQUIRED)
    for result in results:
        writer.writerow((result.match_id, result.player_id.decode(), result.points, result.played_at.isoformat()))
    return out.getvalue()
