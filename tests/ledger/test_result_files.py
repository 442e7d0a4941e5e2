"""Results files: each row taken, or refused with its line and the reason; a file that is none is refused whole."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leaderboard.errors import InputError
from ledger.database import Database
from ledger.result_files import Chunk, Result, as_csv, as_text, read_file
from ledger.results import Recorded, record
from tests.ledger.support import NOON, board, season_of, totals

HEADER = "match_id,player_id,points,played_at"
TIME = "2021-06-01T12:00:00Z"


def _read(path: Path, rows: int = 1_000) -> Chunk:
    whole = Chunk()
    for part in read_file(path, rows):
        whole.results += part.results
        whole.unreadable += part.unreadable
    return whole


def _csv(folder: Path, text: str | bytes) -> Chunk:
    path = folder / "results.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return _read(path)


def _line(folder: Path, line: str | bytes, header: str = HEADER) -> str:
    """Return why a single line is refused."""
    text = line if isinstance(line, bytes) else line.encode()
    found = _csv(folder, header.encode() + b"\n" + text + b"\n")
    assert found.results == []
    [bad] = found.unreadable
    assert bad.line == 2
    return bad.reason


def _parquet(folder: Path, **columns: Any) -> Chunk:
    given = {"match_id": ["m1"], "player_id": ["ann"], "points": [1], "played_at": [NOON], **columns}
    path = folder / "results.parquet"
    pq.write_table(pa.table(given), path)
    return _read(path)


def _refused(found: Chunk) -> str:
    assert found.results == []
    [bad] = found.unreadable
    return bad.reason


def test_csv_rows_become_results(tmp_path: Path) -> None:
    found = _csv(tmp_path, f"{HEADER},region,level\nm1,ann,-5, {TIME} ,eu,3\nm1,Bób, +7 ,2021-06-01T14:00:00+02:00,,\n")
    assert found.results == [
        Result(2, "m1", b"ann", -5, NOON, {"region": "eu", "level": "3"}),
        Result(3, "m1", "Bób".encode(), 7, NOON, None),
    ]
    assert found.unreadable == []


def test_columns_may_stand_in_any_order(tmp_path: Path) -> None:
    found = _csv(tmp_path, f"points,extra,played_at,player_id,match_id\n5,x,{TIME},ann,m1\n")
    assert found.results == [Result(2, "m1", b"ann", 5, NOON, {"extra": "x"})]


def test_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    found = _csv(tmp_path, b"\xef\xbb\xbf" + f"{HEADER}\r\nm1,ann,5,{TIME}\r\nm2,ann,6,{TIME}\r\n".encode())
    assert [(one.line, one.points) for one in found.results] == [(2, 5), (3, 6)]


def test_lines_are_counted_through_blank_ones_and_quoted_breaks(tmp_path: Path) -> None:
    """A row is told by the line it begins on, also after values that span several."""
    text = f'{HEADER}\nm1,ann,1,{TIME}\n\n\n"m\n2","an\r\nn",2,{TIME}\nm3,ann,x,{TIME}\n'
    found = _csv(tmp_path, text)
    assert [(one.line, one.match_id, one.player_id) for one in found.results] == [
        (2, "m1", b"ann"),
        (5, "m\n2", b"an\r\nn"),
    ]
    assert [(bad.line, bad.given["match_id"]) for bad in found.unreadable] == [(8, "m3")]


def test_file_is_read_in_chunks(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("\n".join([HEADER, *(f"m{n},ann,{'x' if n == 3 else n},{TIME}" for n in range(7))]))
    assert [chunk.rows for chunk in read_file(path, 3)] == [3, 3, 1]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f",ann,1,{TIME}", "match_id is empty"),
        (f"m1,,1,{TIME}", "player_id is empty"),
        (f"m1,ann,,{TIME}", "points '' is no whole number"),
        (f"m1,ann,1.5,{TIME}", "points '1.5' is no whole number"),
        (f"m1,ann,1e3,{TIME}", "points '1e3' is no whole number"),
        (f"m1,ann,1_000,{TIME}", "points '1_000' is no whole number"),
        (f"m1,ann,٣,{TIME}", "points '٣' is no whole number"),
        (f"m1,ann,{2**53 + 1},{TIME}", f"points {2**53 + 1} is past 2^53 - 1, beyond which scores are not exact"),
        (f"m1,ann,-{2**53},{TIME}", f"points -{2**53} is past 2^53 - 1, beyond which scores are not exact"),
        (f"m1,ann,{'9' * 5000},{TIME}", f"points '{'9' * 5000}' is no whole number"),
        ("m1,ann,1,", "played_at '' is no ISO 8601 time"),
        ("m1,ann,1,yesterday", "played_at 'yesterday' is no ISO 8601 time"),
        (
            "m1,ann,1,2021-06-01T12:00:00",
            "played_at 2021-06-01T12:00:00 has no UTC offset; write it like 2026-01-31T18:00:00Z",
        ),
        (
            "m1,ann,1,2021-06-01",
            "played_at 2021-06-01T00:00:00 has no UTC offset; write it like 2026-01-31T18:00:00Z",
        ),
        ("m1,ann,1,9999-12-31T23:00:00-10:00", "played_at 9999-12-31T23:00:00-10:00 is out of range"),
        (
            "m1,ann,1,0001-01-01T00:00:00Z",
            "played_at 0001-01-01T00:00:00+00:00 is before 1800: a time that was never set?",
        ),
        (f"m\0,ann,1,{TIME}", r"match_id 'm\x00' contains a NUL"),
        (f"{'m' * 1025},ann,1,{TIME}", "match_id has 1,025 bytes; the ledger takes 1,024"),
        (f"m1,{'ä' * 513},1,{TIME}", "player_id has 1,026 bytes; the ledger takes 1,024"),
        (f"m1,ann,1,{TIME},more", "5 cells where the header names 4"),
        ("m1,ann,1", "3 cells where the header names 4"),
        (b"m1,an\xffn,1,2021-06-01T12:00:00Z", r"player_id b'an\xffn' is not UTF-8"),
        (b"m\xc3,ann,1,2021-06-01T12:00:00Z", r"match_id b'm\xc3' is not UTF-8"),
    ],
)
def test_csv_line_is_refused_with_its_reason(tmp_path: Path, line: str | bytes, reason: str) -> None:
    assert _line(tmp_path, line) == reason


@pytest.mark.parametrize(("cell", "shown"), [(b"a\x00b", r"'a\x00b'"), (b"a\xffb", r"'a\udcffb'")])
def test_attribute_that_cannot_be_stored_is_refused(tmp_path: Path, cell: bytes, shown: str) -> None:
    line = b"m1,ann,1,2021-06-01T12:00:00Z," + cell
    assert _line(tmp_path, line, f"{HEADER},region") == f"region {shown} is not clean UTF-8 text"


def test_the_ceiling_itself_is_taken(tmp_path: Path) -> None:
    found = _csv(tmp_path, f"{HEADER}\nm1,ann,{2**53 - 1},{TIME}\nm2,ann,{-(2**53 - 1)},{TIME}\n")
    assert [one.points for one in found.results] == [2**53 - 1, -(2**53 - 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is an empty file. the columns are match_id, player_id, points, played_at"),
        ("\n", "lacks the columns match_id, player_id, points, played_at. it has no header"),
        ("match_id,points,played_at\n", "lacks the column player_id. it has 'match_id', 'points', 'played_at'"),
        (f"{HEADER},points\n", "has the column 'points' twice"),
        (f"{HEADER},\n", "'' cannot name column 5"),
        (f"{HEADER},a\0b\n", r"'a\x00b' cannot name column 5"),
        (f'{HEADER}\nm1,"ann,1,{TIME}\n', "line 2: unexpected end of data"),
        (f'{HEADER}\nm0,ann,1,{TIME}\nm1,"a"nn,1,{TIME}\n', "line 3: ',' expected after '\"'"),
    ],
)
def test_csv_that_is_none_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        _csv(tmp_path, text)
    assert message in str(caught.value) and "results.csv" in str(caught.value)


def test_bytes_that_are_no_text_are_no_column_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot name column 5"):
        _csv(tmp_path, HEADER.encode() + b",reg\xffion\n")


def test_missing_file_folder_and_other_kinds(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "text.parquet").write_text(HEADER)
    for name, message in [
        ("absent.csv", "cannot be read: No such file"),
        ("absent.parquet", "cannot be read: "),
        ("folder.csv", "is a folder, no file"),
        ("empty.parquet", "is no readable Parquet file"),
        ("text.parquet", "is no readable Parquet file"),
        ("results.json", "is neither .csv nor .parquet"),
    ]:
        with pytest.raises(InputError, match=message):
            _read(tmp_path / name)


def test_truncated_parquet_is_refused(tmp_path: Path) -> None:
    _parquet(tmp_path)
    path = tmp_path / "results.parquet"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InputError, match="is no readable Parquet file"):
        _read(path)


def test_parquet_rows_become_results(tmp_path: Path) -> None:
    found = _parquet(
        tmp_path,
        match_id=["m1", "m2"],
        player_id=["ann", "Bób"],
        points=[5, -(2**53 - 1)],
        played_at=[NOON, NOON.astimezone(timezone(timedelta(hours=2)))],
        region=["eu", None],
        level=[3, 4],
        ratio=[2.0, 0.5],
        ranked=[True, None],
    )
    assert found.results == [
        Result(1, "m1", b"ann", 5, NOON, {"region": "eu", "level": 3, "ratio": 2.0, "ranked": True}),
        Result(2, "m2", "Bób".encode(), -(2**53 - 1), NOON, {"level": 4, "ratio": 0.5}),
    ]


def test_parquet_lacks_a_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"match_id": ["m1"]}), tmp_path / "results.parquet")
    with pytest.raises(InputError, match="lacks the columns player_id, points, played_at"):
        _read(tmp_path / "results.parquet")


def test_parquet_ids_may_be_bytes(tmp_path: Path) -> None:
    found = _parquet(tmp_path, player_id=pa.array([b"\xff\x00"], pa.binary()))
    assert found.results == [Result(1, "m1", b"\xff\x00", 1, NOON, None)]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_parquet_times_of_every_unit(tmp_path: Path, unit: str) -> None:
    found = _parquet(tmp_path, played_at=pa.array([NOON], pa.timestamp(unit, "Europe/Berlin")))
    [one] = found.results
    assert type(one.played_at) is datetime
    assert (one.played_at, one.played_at.tzinfo) == (NOON, UTC)


def test_parquet_nanoseconds_are_cut_off(tmp_path: Path) -> None:
    """Never rounded up, which could put a result into the next season."""
    last = pa.array([1_640_995_199_999_999_999], pa.int64()).cast(pa.timestamp("ns", "UTC"))
    [one] = _parquet(tmp_path, played_at=last).results
    assert one.played_at == datetime(2021, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([3.0], 3),
        ([Decimal("7.00")], 7),
        (pa.array([9], pa.uint64()), 9),
        (["12"], 12),
    ],
)
def test_parquet_points_of_other_types(tmp_path: Path, points: Any, expected: int) -> None:
    [one] = _parquet(tmp_path, points=points).results
    assert one.points == expected and type(one.points) is int


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"points": [2**53 + 1]}, f"points {2**53 + 1} is past 2^53 - 1, beyond which scores are not exact"),
        ({"points": pa.array([2**64 - 1], pa.uint64())}, f"points {2**64 - 1} is past 2^53 - 1"),
        ({"points": [1.5]}, "points 1.5 is no whole number"),
        ({"points": [float("nan")]}, "points nan is no whole number"),
        ({"points": [float("inf")]}, "points inf is no whole number"),
        ({"points": [Decimal("4503599627370496.25")]}, "points Decimal('4503599627370496.25') is no whole number"),
        ({"points": [None]}, "points None is no whole number"),
        ({"points": [True]}, "points True is no whole number"),
        ({"points": [[1]]}, "points [1] is no whole number"),
        ({"match_id": [None]}, "match_id is empty"),
        ({"player_id": [""]}, "player_id is empty"),
        ({"player_id": pa.array([b""])}, "player_id is empty"),
        ({"match_id": pa.array([b"\xff"])}, r"match_id b'\xff' is not UTF-8"),
        ({"played_at": [datetime(2021, 6, 1, 12)]}, "played_at 2021-06-01T12:00:00 has no UTC offset"),  # noqa: DTZ001 the fault
        ({"played_at": [date(2021, 6, 1)]}, "played_at datetime.date(2021, 6, 1) is no time"),
        ({"played_at": [None]}, "played_at None is no time"),
        ({"played_at": [1_600_000_000]}, "played_at 1600000000 is no time"),
        ({"region": [b"eu"]}, "region b'eu' cannot be an attribute"),
        ({"ratio": [float("nan")]}, "ratio nan cannot be an attribute"),
    ],
)
def test_parquet_row_is_refused_with_its_reason(tmp_path: Path, columns: dict[str, Any], reason: str) -> None:
    assert _refused(_parquet(tmp_path, **columns)).startswith(reason)


def test_parquet_values_that_python_cannot_have_refuse_their_row_only(tmp_path: Path) -> None:
    """Text that is no UTF-8 and times past the year 9999 are faults of their rows, not of the file."""
    broken = pa.Array.from_buffers(pa.string(), 3, [None, *pa.array([b"ann", b"b\xffb", b"cat"]).buffers()[1:]])
    far = pa.array([0, 0, 2**62], pa.int64()).cast(pa.timestamp("us", "UTC"))
    found = _parquet(tmp_path, match_id=["m1"] * 3, player_id=broken, points=[1] * 3, played_at=far)
    assert [one.player_id for one in found.results] == [b"ann"]
    assert [bad.line for bad in found.unreadable] == [2, 3]
    assert found.unreadable[0].reason == r"player_id b'b\xffb' is not UTF-8"
    assert found.unreadable[1].reason.startswith("played_at")


def test_attributes_as_a_csv_would_say_them() -> None:
    given = {"a": True, "b": 3, "c": 2.0, "d": 0.5, "e": "x", "f": False}
    assert as_text(given) == {"a": "true", "b": "3", "c": "2", "d": "0.5", "e": "x", "f": "false"}


def test_results_written_as_csv_read_back(tmp_path: Path) -> None:
    results = [Result(2, 'm"1', "Bób, jr".encode(), -5, NOON), Result(3, "m2", b"a b", 7, NOON)]
    assert _csv(tmp_path, as_csv(results)).results == results


def _import(database: Database, path: Path) -> Recorded:
    whole = Recorded()
    for chunk in read_file(path, 700):
        whole.add(record(database, "goals", [board()], chunk, origin=path.name))
    return whole


def test_csv_and_parquet_of_the_same_rows_are_the_same_results(tmp_path: Path, ledger_url: str) -> None:
    """What came as CSV and comes again as Parquet is repeated, to the last attribute."""
    (tmp_path / "a.csv").write_text(f"{HEADER},level\nm1,ann,5,{TIME},3\nm2,ann,6,{TIME},\n")
    table = pa.table(
        {
            "match_id": ["m1", "m2"],
            "player_id": ["ann", "ann"],
            "points": [5, 6],
            "played_at": [NOON, NOON],
            "level": [3, None],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    with Database(ledger_url) as database:
        assert _import(database, tmp_path / "a.csv").new == 2
        again = _import(database, tmp_path / "a.parquet")
        assert (again.new, again.repeated, again.conflicting) == (0, 2, 0)
        assert totals(database, season_of(database)) == {b"ann": (11, NOON, 2)}
