"""Bloom filters read from two small pieces of the file, against pyarrow that wrote them and DuckDB that reads them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.bloom import may_contain, xxh64

VECTORS = {
    b"": 0xEF46DB3751D8E999,
    b"a": 0xD24EC4F1A98C6E5B,
    b"abc": 0x44BC2CF5AD770999,
    b"Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
}


def written(members: list[bytes]) -> tuple[bytes, int]:
    """Return a Parquet file of ``members`` and where its Bloom filter begins."""
    file = io.BytesIO()
    options: Any = {"player_id": {"ndv": len(members), "fpp": 0.05}}
    pq.write_table(pa.table({"player_id": pa.array(members, pa.binary())}), file, bloom_filter_options=options)
    column = pq.read_metadata(file).row_group(0).column(0)
    return file.getvalue(), column.bloom_filter_offset


def reader(data: bytes) -> Any:
    return lambda start, length: data[start : start + length]


@pytest.mark.parametrize("value", VECTORS)
def test_hashes_as_published(value: bytes) -> None:
    """The values that xxHash's own tests and other implementations give."""
    assert xxh64(value) == VECTORS[value]


@given(st.lists(st.binary(max_size=100), min_size=1, max_size=50))
def test_never_denies_what_is_there(members: list[bytes]) -> None:
    """Every member of any length, the empty one too, may be in the file it is in."""
    data, offset = written(members)
    assert all(may_contain(reader(data), offset, member) for member in members)


def test_denies_almost_all_that_is_not_there(tmp_path: Path) -> None:
    """Of values that are not there few are let through, and exactly those that DuckDB lets through."""
    members = [b"p%09d" % number for number in range(5_000)]
    data, offset = written(members)
    file = tmp_path / "part.parquet"
    file.write_bytes(data)
    others = [b"q%09d" % number for number in range(3_000)]
    let_through = {value for value in others if may_contain(reader(data), offset, value)}
    assert len(let_through) < 0.05 * len(others)
    with duckdb.connect() as connection:
        probe = "select bloom_filter_excludes from parquet_bloom_probe(?, 'player_id', ?::blob)"
        for value in [*sorted(let_through)[:5], *others[:20]]:
            assert connection.execute(probe, [str(file), value]).fetchall() == [(value not in let_through,)]


def test_a_filter_of_another_kind_denies_nothing() -> None:
    """A header that is not understood gives "may be": a reader then looks itself."""
    data, offset = written([b"p1"])
    for at in (0, *range(2, 15)):  # all of the header but the filter's size
        spoilt = data[: offset + at] + bytes([data[offset + at] ^ 0xFF]) + data[offset + at + 1 :]
        assert may_contain(reader(spoilt), offset, b"p2")
