"""A live board read while it is written to: each player once, as last seen, and again for whoever asks twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from leaderboard.errors import UnavailableError
from reconcile.compare import SIDE, Rule
from reconcile.latest import latest
from tests.reconcile.sides import Side, batches, season


def _read(rows: Iterator[pa.RecordBatch]) -> Side:
    found = [row for batch in rows for row in batch.to_pylist()]
    assert len({row["player_id"] for row in found}) == len(found)
    return {row["player_id"]: (row["points"], row["reached_at"]) for row in found}


def test_a_player_met_twice_is_told_as_last_seen_each_time() -> None:
    """The later batch counts, whichever points are more, a time that is not known too; a second reading is the same."""
    first: Side = {b"ann": (5, 50), b"bob": (7, 70), b"cid": (9, None)}
    second: Side = {b"bob": (6, 90), b"dan": (1, None)}
    with latest([*batches(first), *batches(second)], Rule()) as rows:
        assert _read(rows()) == {b"ann": (5, 50), b"bob": (6, 90), b"cid": (9, None), b"dan": (1, None)}
        assert _read(rows()) == _read(rows())


def test_an_empty_board_has_no_rows() -> None:
    """Nobody plays yet: no rows, and no error."""
    with latest(iter(()), Rule()) as rows:
        assert _read(rows()) == {}


def test_more_than_memory_goes_to_the_folder(tmp_path: Path) -> None:
    """A board larger than the memory is read whole, by way of the disk; without room to spill it is refused."""
    players = 1_500_000

    def board() -> Iterator[pa.RecordBatch]:
        for first in range(0, players, 50_000):
            points = np.arange(first, first + 50_000)
            ids = pa.array([b"player %012d" % number for number in points], pa.binary())
            yield pa.record_batch([ids, pa.array(points), pa.array(points)], schema=SIDE)

    with latest(board(), Rule(folder=tmp_path, memory="100MB")) as rows:
        assert sum(batch.num_rows for batch in rows()) == players
        assert any(tmp_path.iterdir())
    with pytest.raises(UnavailableError, match="not enough room"), latest(board(), Rule(memory="30MB")):
        pass


def test_what_reading_raises_stays_what_it_is() -> None:
    """An error of Redis in the middle is that error, not one of DuckDB's."""

    def broken() -> Iterator[pa.RecordBatch]:
        yield from batches(season(10))
        raise UnavailableError("Redis does not answer")

    with pytest.raises(UnavailableError, match="Redis does not answer"), latest(broken(), Rule()):
        pass
