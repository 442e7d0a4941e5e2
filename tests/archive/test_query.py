"""The analysts' views: sealed parts only, the same in the duckdb shell and here, and closed to everything else."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from archive.catalog import read_catalog, unpublished
from archive.query import run
from archive.seal import sha256
from archive.store import FolderStore, Store, open_store
from archive.views import definitions, notes, read_parquet
from leaderboard.errors import ArchiveMismatchError, InputError
from tests.archive.sealed import board, bounds, draft, packed_draft, standings, with_grants
from tests.support.counting_store import CountingStore

QUERIES = (
    "select board, season, players, points_sum, number, grants, published, starts_at from seasons order by all",
    "select * from standings order by all",
    "select * from grants order by all",
    "select * from grants_net order by all",
    "select season, count(*), max(reached_at) from standings where board = 'daily' group by all order by all",
    "select player_id from standings where board = 'bin' order by position",
)


def fill(store: Store) -> None:
    """Publish an empty season, one with grants, and one of a board with binary ids and fractions."""
    season = packed_draft()
    with_grants(store, season, sha256(store.get(season.publish(store).path)))
    packed_draft("s20261203", rows=0).publish(store)
    of = board("bin", member="binary", ties="member", ledger="none", points="fraction")
    rows = standings(of, bounds(), [b"\xff\x00", b"a"], [1.5, 2.5])
    draft(of, bounds(), rows).publish(store)
    packed_draft("s20261202").stage(store)


def asked(store: Store, query: str) -> list[tuple[Any, ...]]:
    catalog = read_catalog(store)
    with run(store, catalog, unpublished(store, catalog.seals), query) as result:
        return list(result.rows())


@pytest.fixture
def folder(tmp_path: Path) -> FolderStore:
    store = FolderStore(tmp_path / "it's [a] store")
    fill(store)
    return store


def test_views_hold_what_was_sealed(store: Store) -> None:
    """I10: from every kind of store, rows of all boards with board and season; what is only staged is not there."""
    fill(store)
    day = datetime(2026, 12, 4, tzinfo=UTC)
    assert asked(store, QUERIES[0]) == [
        ("bin", "s20261204", 2, None, 1, None, True, day),
        ("daily", "s20261203", 0, 0, 1, None, True, day),
        ("daily", "s20261204", 10, 56, 1, 10, True, day),
    ]
    table = packed_draft().table
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert (
        asked(store, "select * exclude (board, season) from standings where board = 'daily' order by position") == rows
    )
    assert asked(store, QUERIES[5]) == [("61",), ("ff00",)]
    assert asked(store, "select season, sum(amount), count(*) from grants group by all") == [("s20261204", 100, 10)]
    assert asked(store, "select item, sum(amount) from grants_net group by all") == [("gems", 100)]


def test_the_printed_views_are_the_ones_that_run(folder: FolderStore) -> None:
    """Pasted into the duckdb shell the definitions give the same rows, columns and types."""
    catalog = read_catalog(folder)
    statements = definitions(catalog, {}, read_parquet(folder))
    with duckdb.connect() as shell:
        shell.execute("set timezone = 'UTC'")
        shell.execute("\n".join(statements))
        for query in QUERIES:
            expected = shell.execute(query)
            with run(folder, catalog, {}, query) as result:
                assert list(result.rows()) == expected.fetchall()
        for view in ("seasons", "standings", "grants", "grants_net"):
            with run(folder, catalog, {}, f"describe {view}") as result:
                assert list(result.rows()) == shell.execute(f"describe {view}").fetchall()


def test_an_empty_archive_has_empty_views(store: Store) -> None:
    """C33, C39: all columns, with their types, and no rows."""
    for view in ("seasons", "standings", "grants", "grants_net"):
        assert asked(store, f"select * from {view}") == []
    types = dict(row[:2] for row in asked(store, "describe standings"))
    assert types == {
        "board": "VARCHAR",
        "season": "VARCHAR",
        "position": "BIGINT",
        "rank": "BIGINT",
        "player_id": "VARCHAR",
        "points": "BIGINT",
        "reached_at": "TIMESTAMP WITH TIME ZONE",
        "score": "DOUBLE",
    }


def test_only_the_parts_of_the_asked_season_are_read() -> None:
    """A query that names a season fetches nothing of another, and never a column it does not need."""
    store = CountingStore(open_store("memory://", {}))
    packed_draft("s20261204").publish(store)
    packed_draft("s20261203").publish(store)
    catalog = read_catalog(store)
    store.read.clear()
    with run(store, catalog, {}, "select max(points) from standings where season = 's20261203'") as result:
        assert list(result.rows()) == [(10,)]
    read = {path for path in store.read if "season=s20261203" in path}
    others = {path for path in store.read if "season=s20261204" in path}
    assert len(read) == 3
    assert len(others) <= 1  # one part's end tells the columns of all


CLOSED = (
    "copy (select 1) to '{folder}/out.csv'",
    "copy (select 1) to '{part}' (format parquet)",
    "copy (select 1) to '{part}' (format parquet, use_tmp_file false)",
    "select * from read_parquet('{part}')",
    "select * from '{part}'",
    "select * from read_csv('/etc/passwd')",
    "select * from read_text('/etc/passwd')",
    "select * from glob('/etc/*')",
    "attach '{folder}/new.db'",
    "export database '{folder}/export'",
    "install httpfs",
    "load httpfs",
    "set enable_external_access = true",
    "set allowed_directories = ['/']",
    "reset lock_configuration",
    "select * from catalog",
    "select * from connection",
)


@pytest.mark.parametrize("query", CLOSED)
def test_a_query_reaches_nothing_but_the_views(folder: FolderStore, tmp_path: Path, query: str) -> None:
    """No file is read, none written, no setting opened again, no Python object looked at: refused, nothing changed."""
    part = folder.root / "standings/board=daily/season=s20261204/part-00000.parquet"
    before = {path: path.read_bytes() for path in folder.root.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=r"the query failed|is no query"):
        asked(folder, query.format(folder=tmp_path, part=str(part).replace("'", "''")))
    assert {path: path.read_bytes() for path in folder.root.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir()] == [folder.root.name]


@pytest.mark.parametrize("query", ["selec", "select nothing from standings", "select 1 / 'x' from standings", ";"])
def test_wrong_sql_is_told_in_words(folder: FolderStore, query: str) -> None:
    with pytest.raises(InputError) as told:
        asked(folder, query)
    assert "Traceback" not in str(told.value)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select 1; select 2", "2 statements"),
        ("select 1; drop view standings; select 2;", "3 statements"),
        ("create table t as select 1", "CREATE is no query"),
        ("insert into standings values (1) returning 1", "INSERT is no query"),
        ("copy (select 1) to 'x'", "COPY is no query"),
        ("set x = 1", "SET is no query"),
        ("-- nothing", "empty"),
    ],
)
def test_only_one_query_is_answered(folder: FolderStore, query: str, told: str) -> None:
    """Of several statements the last one's rows alone would be shown; what is no query has none."""
    with pytest.raises(InputError, match=told):
        asked(folder, query)


@pytest.mark.parametrize(
    "query",
    [
        "select 1;  -- one",
        "with a as (select 1) from a",
        "values (1)",
        "describe standings",
        "summarize standings",
        "show tables",
        "explain select 1",
        "pragma table_info('standings')",
        "pivot standings on season using count(*) group by board",
    ],
)
def test_every_form_of_a_query_is_answered(folder: FolderStore, query: str) -> None:
    """What only asks is no select alone."""
    assert asked(folder, query)


def test_a_season_that_is_being_copied_is_left_out_and_told(folder: FolderStore) -> None:
    """C27: rows of a season that is not whole are never given; the seasons say so, and a note does."""
    (folder.root / "standings/board=daily/season=s20261204/part-00001.parquet").unlink()
    catalog = read_catalog(folder)
    missing = unpublished(folder, catalog.seals)
    assert notes(catalog, missing) == [
        "left out, sealed but not in place (being copied, or damaged): "
        "standings/board=daily/season=s20261204 has not part-00001.parquet as sealed"
    ]
    assert asked(folder, "select season, published from seasons where board = 'daily' order by all") == [
        ("s20261203", True),
        ("s20261204", False),
    ]
    assert asked(folder, "select count(*) from standings where board = 'daily'") == [(0,)]
    assert asked(folder, "select count(*) from grants") == [(10,)]
    assert "part-00000.parquet" in "".join(definitions(catalog, missing, read_parquet(folder)))
    assert "board=daily/season=s20261204/part-00000" not in definitions(catalog, missing, read_parquet(folder))[1]


def test_a_broken_seal_is_named_and_hides_no_other(folder: FolderStore) -> None:
    """A view that silently lacks a season would be wrong: whoever queries is told which."""
    whole = read_catalog(folder)
    folder.put_new("seals/daily/s20261201/standings.json", b"{}")
    catalog = read_catalog(folder)
    assert catalog.seals == whole.seals
    assert [fault.file for fault in catalog.faults] == ["seals/daily/s20261201/standings.json"]
    with pytest.raises(ArchiveMismatchError, match="s20261201"):
        catalog.check()


def test_what_the_store_says_is_told(tmp_path: Path) -> None:
    """A part that vanishes under a query is the store's error, by its path, not one of the SQL."""
    inner = open_store("memory://", {})
    packed_draft().publish(inner)
    catalog = read_catalog(inner)
    for part in list(inner.list("standings"))[1:]:
        inner.delete(part.path)
    with (
        pytest.raises(ArchiveMismatchError, match=r"part-0000\d\.parquet does not exist"),
        run(inner, catalog, {}, "select max(points) from standings") as result,
    ):
        list(result.rows())
