"""The difference to what was granted: what is added makes grants and corrections together what is right."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderboard.errors import UnavailableError
from rewards import corrections
from rewards.compute import grants_schema
from rewards.corrections import Change, correction_id, correction_schema, difference
from rewards.ids import grant_id, line_key

Key = tuple[str, str]  #: player, item
KEYS = st.tuples(st.sampled_from("abcd"), st.sampled_from(["gems", "gold"]))
GRANTS = st.dictionaries(KEYS, st.integers(1, 2**53 - 1), max_size=8)


def identity(key: Key) -> str:
    player, item = key
    return grant_id(line_key("cup", "s1", "rule", item), player.encode())


def batches(amounts: dict[Key, int], position: int = 1) -> list[pa.RecordBatch]:
    rows = [
        {
            "grant_id": identity(key), "player_id": key[0], "rule": "rule", "item": key[1], "amount": amount,
            "position": position, "rank": position,
        }
        for key, amount in amounts.items()
    ]  # fmt: skip  # a row a line
    return [pa.RecordBatch.from_pylist(rows, grants_schema(False))]


def corrected(
    granted: dict[Key, int], earlier: list[pa.RecordBatch], computed: dict[Key, int], number: int
) -> list[pa.RecordBatch]:
    return list(difference(batches(granted), earlier, batches(computed, 7), number, binary=False))


def summed(*sources: list[pa.RecordBatch]) -> dict[Key, int]:
    found: Counter[Key] = Counter()
    for source in sources:
        for batch in source:
            for row in batch.to_pylist():
                found[row["player_id"], row["item"]] += row["amount"]
    return {key: amount for key, amount in found.items() if amount}


@settings(max_examples=15, deadline=None)
@given(granted=GRANTS, wanted=st.lists(GRANTS, min_size=1, max_size=3))
def test_grants_and_corrections_together_are_what_is_right(
    granted: dict[Key, int], wanted: list[dict[Key, int]]
) -> None:
    """I5: after each of several corrections the sums are those computed then; one that changes nothing has no rows."""
    before: list[pa.RecordBatch] = []
    for number, computed in enumerate(wanted, 1):
        found = corrected(granted, before, computed, number)
        assert summed(batches(granted), before, found) == computed
        for batch in found:
            assert batch.schema == correction_schema(False)
            assert 0 not in batch.column("amount").to_pylist()
            ids = zip(batch.column("grant_id").to_pylist(), batch.column("corrects").to_pylist(), strict=True)
            assert all(one == correction_id(corrects, number) for one, corrects in ids)
        before += found
        assert not corrected(granted, before, computed, number + 1)


def test_ids_are_made_by_the_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Python object a row: a correction may have as many rows as there are grants."""
    granted = {(f"p{at}", "gems"): at + 1 for at in range(300)}
    expected = [correction_id(identity(key), 2**31) for key in granted]
    monkeypatch.setattr(corrections, "correction_id", None)
    found = corrected(granted, [], {}, 2**31)
    assert sorted(one for batch in found for one in batch.column("grant_id").to_pylist()) == sorted(expected)


def test_rows_name_what_they_correct() -> None:
    """Ids follow from the grant and the number, the same every time; positions are the new ones."""
    [batch] = corrected({("a", "gems"): 5, ("b", "gems"): 5}, [], {("b", "gems"): 9}, 3)
    taken, more = batch.to_pylist()
    assert (taken["player_id"], taken["amount"], taken["position"]) == ("a", -5, 1)
    assert (more["player_id"], more["amount"], more["position"]) == ("b", 4, 7)
    assert taken["corrects"] == identity(("a", "gems")) and taken["grant_id"] == correction_id(taken["corrects"], 3)
    assert correction_id(taken["corrects"], 3) != correction_id(taken["corrects"], 4) != taken["corrects"]


def test_a_change_is_told_by_what_it_gives_and_takes() -> None:
    """Sums by item, both ways, so that a change that comes to nothing is still seen."""
    change = Change()
    for batch in corrected({("a", "gems"): 5}, [], {("b", "gems"): 5}, 1):
        change.add(batch)
    assert (change.rows, change.given, change.taken, change.sums) == (2, {"gems": 5}, {"gems": 5}, {"gems": 0})
    assert change.players == 2


def test_what_a_source_raises_is_raised() -> None:
    """A part that is not as sealed is told as that, not as a fault of the comparison."""

    def broken() -> Any:
        yield from batches({("a", "gems"): 1})
        raise LookupError("a part is missing")

    with pytest.raises(LookupError, match="a part is missing"):
        list(difference(broken(), [], batches({}), 1, binary=False))


def test_what_is_too_much_for_memory_goes_to_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a daemon is started may be a read-only root: nothing is written to the working directory."""
    here, spilled = tmp_path / "here", tmp_path / "spilled"
    here.mkdir()
    spilled.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr("tempfile.tempdir", str(spilled))
    monkeypatch.setattr(corrections, "_MEMORY", "60MB")
    rows = 200_000
    numbers = np.arange(rows)
    ids = [str(UUID(int=number * 2**90 + 1)) for number in range(rows)]
    ones, texts = np.ones(rows, np.int64), pa.array(["x"] * rows)
    columns = [pa.array(ids), pa.array(numbers).cast(pa.string()), texts, texts, *[pa.array(ones)] * 3]
    granted = pa.record_batch(columns, schema=grants_schema(False))
    given = list(difference([granted], [], [], 1, binary=False))
    assert sum(batch.num_rows for batch in given) == rows
    found = difference([granted], [], [], 1, binary=False)
    next(found)
    assert list(spilled.glob("*/*")) and not list(here.iterdir())
    found.close()
    assert not list(spilled.iterdir())
    monkeypatch.setattr(corrections, "_MEMORY", "10MB")
    with pytest.raises(UnavailableError, match="could not be computed"):
        list(difference([granted], [], [], 1, binary=False))
