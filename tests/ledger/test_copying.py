"""Grants as binary COPY takes them, byte for byte what psycopg writes row by row."""

from __future__ import annotations

import struct
from uuid import UUID, uuid4

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import copying

numbers = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
rows = st.lists(st.tuples(st.binary(max_size=20), texts, texts, numbers, numbers, numbers), max_size=8)


def _by_hand(ids: list[str], numbers: list[int], row: tuple[bytes, str, str, int, int, int]) -> bytes:
    player, rule, item, *three = row
    fields = [struct.pack(">i", number) for number in numbers] + [UUID(one).bytes for one in ids]
    fields += [player, rule.encode(), item.encode()]
    fields += [struct.pack(">q", number) for number in three]
    return struct.pack(">h", len(fields)) + b"".join(struct.pack(">i", len(field)) + field for field in fields)


@given(rows, st.integers(1, 2**31 - 1), st.integers(0, 3), st.integers(1, 4), st.none() | st.integers(1, 2**31 - 1))
def test_c69_rows_are_what_the_protocol_says(
    found: list[tuple], key: int, skipped: int, at_once: int, correction: int | None
) -> None:
    """C69: every width stated, negative numbers, empty texts, bytes of any kind; also of a slice, in any portions.

    Of a correction with its number, and with the ids of what it corrects.
    """
    names = ("player_id", "rule", "item", "amount", "position", "rank")
    kinds = (pa.binary(), pa.string(), pa.string(), pa.int64(), pa.int64(), pa.int64())
    names_of_ids = ("grant_id",) if correction is None else ("grant_id", "corrects")
    ids = [[str(uuid4()) for _ in names_of_ids] for _ in found]
    columns = {name: pa.array([row[at] for row in ids], pa.string()) for at, name in enumerate(names_of_ids)}
    columns |= {name: pa.array([row[at] for row in found], kinds[at]) for at, name in enumerate(names)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copying, "_ROWS", at_once)
        written = b"".join(map(bytes, copying.rows(pa.record_batch(columns).slice(skipped), key, correction)))
    pairs = list(zip(ids, found, strict=True))[skipped:]
    numbers = [key] if correction is None else [key, correction]
    assert written == b"".join(_by_hand(one, numbers, row) for one, row in pairs)
