"""CSV files of ids that people write: every row is taken whole, or the file is refused with the line."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from config.texts import LOOK, read_lines
from leaderboard.errors import InputError


def csv_rows(
    path: Path, columns: Sequence[str], optional: Sequence[str] = (), otherwise: str = LOOK
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and cells of each row of a CSV file with a header; empty lines are passed over.

    Raises InputError that names the line for whatever could hide a row, or part of one: a header without one of
    ``columns`` or with a column twice, a quote that is not closed, a row over several lines, of more or fewer cells
    than the header, or with nothing in one of ``columns``. ``otherwise`` is the remedy for a file that cannot be read.
    """
    reader = csv.reader(read_lines(path, otherwise), strict=True)
    line = 1
    try:
        header = next(reader, [])
        _check_header(path, header, columns, optional)
        line = reader.line_num + 1
        for cells in reader:
            if cells:
                _check_row(path, line, reader.line_num, cells, header)
                row = dict(zip(header, cells, strict=True))
                if empty := next((name for name in columns if not row[name]), None):
                    raise InputError(f"{path}, line {line}: {empty} is empty", hint="give each line a value of it")
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}, line {line} cannot be read: {error}", hint=_QUOTES) from None


_QUOTES = 'look at its quotes: one that opens must close on the same line, before the comma; a quote itself is ""'


def _check_header(path: Path, header: Sequence[str], columns: Sequence[str], optional: Sequence[str]) -> None:
    known = (*columns, *optional)
    names = f"the first line names the columns: {','.join(known)}"
    if missing := [name for name in columns if name not in header]:
        raise InputError(f"{path}: the header lacks {', '.join(missing)}", hint=names)
    if doubled := [name for name in known if header.count(name) > 1]:
        raise InputError(f"{path}: the header has {doubled[0]} twice", hint="rename one of them, or leave it out")


def _check_row(path: Path, first: int, last: int, cells: Sequence[str], header: Sequence[str]) -> None:
    if last != first:  # a quote that is closed too late takes the rows between as its text
        raise InputError(f"{path}, line {first}: the row goes on to line {last}, within quotes", hint=_QUOTES)
    if len(cells) != len(header):
        raise InputError(
            f"{path}, line {first}: {len(cells)} cells where the header names {len(header)}",
            hint="give each line as many as the header; what has a comma in it stands in quotes",
        )
