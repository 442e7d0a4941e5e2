"""What reading either side raises comes out of the comparison as it is, not as an error of the join."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from leaderboard.errors import ArchiveMismatchError, FinaleError, UnavailableError
from reconcile.compare import Rule, compare

SCHEMA = pa.schema([("player_id", pa.binary()), ("points", pa.int64()), ("reached_at", pa.timestamp("us", tz="UTC"))])


def _rows(error: FinaleError | None) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pylist([{"player_id": b"ann", "points": 1, "reached_at": None}], SCHEMA)
    if error:
        raise error


def _totals(error: FinaleError | None) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(SCHEMA, _rows(error))


def test_nothing_fails_nothing_is_raised() -> None:
    assert compare(_rows(None), _totals(None), Rule()).equal == 1


@pytest.mark.parametrize("error", [UnavailableError("no answer", hint="again"), ArchiveMismatchError("not the part")])
def test_a_part_that_cannot_be_read(error: FinaleError) -> None:
    """The store fails in the middle of the standings."""
    with pytest.raises(type(error)) as raised:
        compare(_rows(error), _totals(None), Rule())
    assert raised.value is error


def test_a_ledger_that_breaks_off() -> None:
    """PostgreSQL goes away in the middle of the totals."""
    error = UnavailableError("broke off")
    with pytest.raises(UnavailableError) as raised:
        compare(_rows(None), _totals(error), Rule())
    assert raised.value is error
