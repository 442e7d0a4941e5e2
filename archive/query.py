"""An analyst's own SQL over the views, in a database that can reach the sealed parts and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from archive.catalog import Catalog
from archive.folder import FolderStore
from archive.layout import correction_number
from archive.objects import Store
from archive.ranges import RangeFile
from archive.seal import Seal
from archive.views import Group, definitions, groups
from leaderboard.errors import FinaleError, InputError

_ROWS = 10_000
#: What asks and changes nothing; a pivot whose columns are found first is several statements to DuckDB.
_QUERIES = (
    duckdb.StatementType.SELECT,
    duckdb.StatementType.EXPLAIN,
    duckdb.StatementType.PRAGMA,
    duckdb.StatementType.CALL,
    duckdb.StatementType.MULTI,
)
_VIEWS = "finale archive sql, without a query, shows the views"
_SETTINGS = (
    "timezone = 'UTC'",
    "autoinstall_known_extensions = false",
    "python_enable_replacements = false",
    "enable_external_access = false",
    "lock_configuration = true",
)


class Result:
    """The answer to a query: the ``columns``' names, and rows that can be read once."""

    def __init__(self, cursor: Any, failures: list[FinaleError]) -> None:
        self.columns: list[str] = [column[0] for column in cursor.description or ()]
        self._cursor = cursor
        self._failures = failures

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as Python values; raises what ``run`` raises."""
        while True:
            with _told(self._failures):
                rows = self._cursor.fetchmany(_ROWS)
            if not rows:
                return
            yield from rows


@contextmanager
def run(store: Store, catalog: Catalog, missing: dict[str, str], query: str) -> Iterator[Result]:
    """Yield the answer to ``query`` over the views of ``catalog`` without the seals in ``missing``.

    DuckDB is handed the parts as Arrow datasets, which fetch the columns that a query needs when it needs them; itself
    it may open no file and no connection, so that whatever is asked can neither read nor write anything else. The bytes
    are taken to be as sealed: their sizes were compared, ``verify`` compares the rest.

    Raises InputError for SQL that fails, is no query or is more than one, and what the store raises.
    """
    failures: list[FinaleError] = []
    with duckdb.connect() as connection:
        with _told(failures):
            for group in groups(catalog, missing):
                connection.register(group.name, _dataset(store, group, failures))
            for definition in definitions(catalog, missing, lambda group: group.name):
                connection.execute(definition)
            for setting in _SETTINGS:
                connection.execute(f"set {setting}")
            _check(connection.extract_statements(query))
            cursor = connection.execute(query)
        yield Result(cursor, failures)


def _check(statements: list[duckdb.Statement]) -> None:
    """Raise InputError unless it is one query: of several the last alone would be shown, and what changes is lost."""
    if not statements:
        raise InputError("the query is empty", hint=_VIEWS)
    if len(statements) > 1:
        raise InputError(
            f"that is {len(statements):,} statements, and only one is answered",
            hint="ask for each on its own, or join them with WITH or UNION ALL",
        )
    if (kind := statements[0].type) not in _QUERIES:
        raise InputError(
            f"{kind.name} is no query", detail="the views are read, and nothing is kept or written", hint=_VIEWS
        )


def _dataset(store: Store, group: Group, failures: list[FinaleError]) -> Any:
    """Return the parts of ``group`` as one dataset, each with its board and season, which prune parts unread."""
    format_ = ds.ParquetFileFormat()
    fragments = [
        format_.make_fragment(
            *_file(store, f"{one.seal.place}/{part.name}", part.size, failures),
            partition_expression=_partition(one.seal),
        )
        for one in group.seals
        for part in one.seal.facts.parts
    ]
    schema = fragments[0].physical_schema.remove_metadata()
    for name in ("board", "season"):
        schema = schema.append(pa.field(name, pa.string()))
    if group.kind == "corrections":
        schema = schema.append(pa.field("n", pa.int64()))
    return ds.FileSystemDataset(fragments, schema, format_)


def _partition(seal: Seal) -> Any:
    place = (ds.field("board") == seal.board_name) & (ds.field("season") == seal.bounds.id)
    number = correction_number(seal.kind)
    return place & (ds.field("n") == number) if number else place


def _file(store: Store, path: str, size: int, failures: list[FinaleError]) -> tuple[Any, ...]:
    if isinstance(store, FolderStore):
        return str(store.root / path), LocalFileSystem()
    return (_NotingFile(store, path, size, failures),)


class _NotingFile(RangeFile):
    """Notes what the store raises, which Arrow and DuckDB pass on as text only."""

    def __init__(self, store: Store, path: str, size: int, failures: list[FinaleError]) -> None:
        super().__init__(store, path, size)
        self._failures = failures

    def read_at(self, start: int, length: int) -> bytes:
        try:
            return super().read_at(start, length)
        except FinaleError as error:
            self._failures.append(error)
            raise


@contextmanager
def _told(failures: list[FinaleError]) -> Iterator[None]:
    """Raise what the store raised, if it did, or what is wrong with the SQL, in words without a traceback."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if failures:
            raise failures[0] from None
        raise InputError(
            "the query failed",
            detail=str(error).strip(),
            hint=f"{_VIEWS} and their columns",
        ) from None
