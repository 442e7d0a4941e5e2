"""Parts: schema, encodings, and the same bytes however the rows come."""

from __future__ import annotations

import hashlib
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archive import parts
from archive.parts import PART_BYTES, Part, PartCutter, PartWriter, encode, standings_schema
from leaderboard.errors import ArchiveMismatchError, InputError


def rows(members: list[bytes], schema: Any = None) -> Any:
    """A table of standings with these members, positions from 1, scores falling."""
    schema = schema or standings_schema(binary=True)
    positions = np.arange(1, len(members) + 1)
    player_id = pa.array(members, pa.binary()).cast(schema.field("player_id").type)
    points = pa.array(positions).cast(schema.field("points").type)
    time = pa.array(positions * 10**6, pa.timestamp("us", tz="UTC"))
    scores = pa.array(-positions.astype(np.float64))
    return pa.table([pa.array(positions), pa.array(positions), player_id, points, time, scores], schema=schema)


def written(table: Any, batch_rows: int, **limits: int) -> list[tuple[Part, bytes]]:
    writer = PartWriter(table.schema, **limits)
    made = []
    for batch in table.to_batches(max_chunksize=batch_rows):
        made += writer.add(batch)
    return made + writer.finish()


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("fraction", [False, True])
def test_c33_c36_the_schema_is_fixed(binary: bool, fraction: bool) -> None:
    """C33, C36, C38: columns, types and nullability of the format; timestamps in microseconds, UTC."""
    schema = standings_schema(binary=binary, fraction=fraction)
    assert [(field.name, str(field.type), field.nullable) for field in schema] == [
        ("position", "int64", False),
        ("rank", "int64", False),
        ("player_id", "binary" if binary else "string", False),
        ("points", "double" if fraction else "int64", False),
        ("reached_at", "timestamp[us, tz=UTC]", True),
        ("score", "double", False),
    ]
    table = rows([b"a", b"b"], schema)
    read = pq.read_table(BytesIO(encode(table)))
    assert read.schema.remove_metadata() == schema
    assert read.schema.metadata == {b"finale.format": b"1"}
    assert read.equals(table)


def test_encodings_statistics_and_bloom_filter() -> None:
    """Each column has its own encoding, zstd and statistics; player_id a Bloom filter; grants' words a dictionary."""
    table = rows([b"%09d" % number for number in range(2_000)])
    table = table.append_column("item", pa.array(["gems"] * 2_000))
    group = pq.ParquetFile(BytesIO(encode(table))).metadata.row_group(0)
    columns = {group.column(index).path_in_schema: group.column(index) for index in range(group.num_columns)}
    encodings = {name: set(column.encodings) - {"RLE"} for name, column in columns.items()}
    assert encodings == {
        "position": {"DELTA_BINARY_PACKED"},
        "rank": {"DELTA_BINARY_PACKED"},
        "player_id": {"DELTA_BYTE_ARRAY"},
        "points": {"DELTA_BINARY_PACKED"},
        "reached_at": {"DELTA_BINARY_PACKED"},
        "score": {"BYTE_STREAM_SPLIT"},
        "item": {"PLAIN", "RLE_DICTIONARY"},
    }
    assert all(column.compression == "ZSTD" and column.statistics.has_min_max for column in columns.values())
    assert [name for name, column in columns.items() if column.bloom_filter_length] == ["player_id"]


def test_c39_an_empty_season_is_one_part_without_rows() -> None:
    """C39: one part, no rows, the schema in it."""
    [(part, data)] = written(rows([]), 1)
    assert (part.name, part.rows, part.size) == ("part-00000.parquet", 0, len(data))
    assert pq.read_table(BytesIO(data)).schema.remove_metadata() == standings_schema(binary=True)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=60), st.integers(1, 70), st.integers(1, 70), st.integers(1, 200))
def test_c32_parts_are_the_same_however_the_batches_come(
    members: list[bytes], batch_rows: int, part_rows: int, part_bytes: int
) -> None:
    """C26, C32: parts depend on rows and bytes alone, hold all rows in order, and keep to both bounds."""
    table = rows(members)
    made = written(table, batch_rows, part_rows=part_rows, part_bytes=part_bytes)
    assert made == written(table, 1_000, part_rows=part_rows, part_bytes=part_bytes)
    read = [pq.read_table(BytesIO(data)) for _, data in made]
    assert pa.concat_tables(read).equals(table)
    for (part, data), content in zip(made, read, strict=True):
        assert (part.rows, part.size, part.sha256) == (content.num_rows, len(data), hashlib.sha256(data).hexdigest())
        assert part.rows <= part_rows
        size = sum(len(member) for member in content["player_id"].to_pylist())
        assert size <= part_bytes or part.rows == 1
    assert [part.name for part, _ in made] == [f"part-{number:05d}.parquet" for number in range(len(made))]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 40), st.integers(1, 12), st.integers(1, 20), st.integers(1, 50))
def test_c32_row_groups_are_cut_at_the_same_rows_however_they_are_encoded(
    rows_in_all: int, group_rows: int, part_rows: int, batch_rows: int
) -> None:
    """C32: a part encoded group by group, as the rows come, is byte for byte the part encoded at once."""
    table = rows([b"%d" % number for number in range(rows_in_all)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "ROW_GROUP_ROWS", group_rows)
        made = written(table, batch_rows, part_rows=part_rows)
        starts = range(0, max(rows_in_all, 1), part_rows)
        assert [data for _, data in made] == [encode(table.slice(start, part_rows)) for start in starts]
        for _, data in made:
            metadata = pq.ParquetFile(BytesIO(data)).metadata
            sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
            assert all(size == group_rows for size in sizes[:-1])
            assert all(0 < size <= group_rows for size in sizes[-1:])


def test_c26_row_groups_of_long_members_are_bounded_in_bytes() -> None:
    """C26, C32: 700 members of 64 KB, 44 MB, are two row groups, so that few bytes wait to be encoded."""
    schema = pa.schema([pa.field("player_id", pa.binary(), nullable=False)])
    cutter = PartCutter(schema)
    page = pa.record_batch([pa.array([b"x" * 65_536] * 100, pa.binary())], schema=schema)
    groups = [group for _ in range(7) for group in cutter.add(page)] + cutter.finish()
    assert [(group.rows.num_rows, group.ends) for group in groups] == [(512, False), (188, True)]


def test_c26_long_members_make_more_parts() -> None:
    """C26: 5,000 members of 64 KB, 320 MB, pass the bound in bytes and so become two parts, not one array too long."""
    schema = pa.schema([pa.field("player_id", pa.binary(), nullable=False)])
    page = pa.record_batch([pa.array([b"x" * 65_536] * 100, pa.binary())], schema=schema)
    writer = PartWriter(schema)
    made = [part.rows for _ in range(50) for part, _ in writer.add(page)] + [part.rows for part, _ in writer.finish()]
    assert made == [PART_BYTES // 65_536, 5_000 - PART_BYTES // 65_536]


def test_c27_nothing_half_done_comes_out() -> None:
    """C27: a part comes out whole or not at all; an error between pages leaves only the parts given out before."""
    writer = PartWriter(standings_schema(binary=True), part_rows=4)
    [batch] = rows([b"a", b"b", b"c", b"d", b"e"]).to_batches()
    [(part, data)] = writer.add(batch)
    assert (part.rows, pq.read_table(BytesIO(data)).num_rows) == (4, 4)
    with pytest.raises(ValueError, match="another schema"):
        writer.add(batch.rename_columns(["a", "b", "c", "d", "e", "f"]))


def test_c38_text_must_be_utf8() -> None:
    """C38: raw bytes never go under a text label."""
    bad = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"], pa.binary()).buffers())
    table = rows([b"a"], standings_schema()).set_column(2, standings_schema().field("player_id"), bad)
    with pytest.raises(InputError, match="UTF8"):
        encode(table)


def test_c34_nothing_is_null_that_may_not_be() -> None:
    """C34: a null in a column without any is refused, not turned into a number."""
    schema = standings_schema(binary=True)
    points = pa.nulls(1, pa.int64())
    with pytest.raises(InputError, match="points"):
        encode(rows([b"a"]).set_column(3, schema.field("points"), points))


def test_c35_scores_keep_every_bit() -> None:
    """C35: points and score are columns of their own; doubles come back bit for bit, -0 and 5e-324 too."""
    scores = [float("inf"), 2.0**53, 1e17, 3.3, 5e-324, 0.0, -0.0, -1.5]
    table = rows([b"x"] * len(scores)).set_column(5, standings_schema().field("score"), pa.array(scores))
    read = pq.read_table(BytesIO(encode(table)))["score"].to_numpy()
    assert read.tobytes() == np.array(scores).tobytes()


def test_chunks_do_not_change_the_bytes() -> None:
    """The same rows in one chunk or five are the same file."""
    table = rows([b"%d" % number for number in range(10)])
    assert encode(pa.concat_tables([table.slice(at, 2) for at in range(0, 10, 2)])) == encode(table)


def test_a_part_survives_json() -> None:
    """A part is read back as it was written, and nonsense is refused."""
    part = Part("part-00000.parquet", 3, 100, "ab" * 32)
    assert Part.from_json(part.to_json()) == part
    for wrong in (
        {},
        None,
        [],
        part.to_json() | {"more": 1},
        part.to_json() | {"name": "../x"},
        part.to_json() | {"rows": -1},
        part.to_json() | {"rows": True},
        part.to_json() | {"size": "100"},
        part.to_json() | {"sha256": "ab"},
        part.to_json() | {"sha256": "zz" * 32},
        part.to_json() | {"sha256": None},
    ):
        with pytest.raises(ArchiveMismatchError):
            Part.from_json(wrong)
