"""Verification finds every way in which files, rows and seal can disagree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archive.fetch import load_seal, read_parts_checked
from archive.parts import PartWriter
from archive.seal import KeyFacts, StandingFacts, build, sha256
from archive.sealed_grants import GrantFacts
from archive.store import Store, open_store
from archive.verify import verify
from leaderboard.errors import ArchiveMismatchError, UnknownNameError
from tests.archive.sealed import board, bounds, draft, packed_draft, standings, with_grants

SEASON = ("daily", "s20261204")
PLACE = "standings/board=daily/season=s20261204"


@pytest.fixture
def memory() -> Store:
    return open_store("memory://", {})


def test_a_right_season_passes(store: Store) -> None:
    """Rows, parts, bytes and digest are told."""
    season = packed_draft()
    season.publish(store)
    verified = verify(store, *SEASON)
    assert (verified.rows, verified.parts, verified.digest) == (10, 3, season.facts.digest)
    assert verified.size == sum(len(data) for _, data in season.files)
    assert verified.seconds >= 0


def test_c39_an_empty_season_passes(memory: Store) -> None:
    """C39: one part without rows, rows = 0 in the seal; told apart from a season that is not sealed."""
    season = packed_draft(rows=0)
    season.publish(memory)
    assert (verify(memory, *SEASON).rows, verify(memory, *SEASON).parts) == (0, 1)
    assert list(read_parts_checked(memory, season.seal())) == []
    with pytest.raises(UnknownNameError, match="not sealed"):
        verify(memory, "daily", "s20261203")


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.binary(max_size=5), st.integers(-3, 3) | st.sampled_from([-0.0, 2**53 - 1]), max_size=25),
    st.sampled_from(["high", "low"]),
    st.sampled_from(["shared", "member"]),
    st.sampled_from(["integer", "fraction"]),
    st.integers(1, 30),
)
def test_i10_every_board_passes(scores: dict[bytes, float], order: str, ties: str, points: str, part_rows: int) -> None:
    """I10, C08, C74: order, ties and ranks of every kind of board can be recomputed from files and seal alone."""
    of = board(order=order, ties=ties, points=points, member="binary", ledger="none")
    table = standings(of, bounds(), list(scores), [float(score) for score in scores.values()])
    memory = open_store("memory://", {})
    draft(of, bounds(), table, part_rows=part_rows).publish(memory)
    assert verify(memory, *SEASON).rows == len(scores)


def test_every_faulty_part_is_named(memory: Store) -> None:
    """A missing, a changed and a cut part, and a file not sealed, are all told at once."""
    season = packed_draft(rows=16)
    season.publish(memory)
    names = [f"{PLACE}/{part.name}" for part, _ in season.files]
    for name, data in zip(names[:3], [None, season.files[1][1][:-1] + b"?", season.files[2][1][:-5]], strict=True):
        memory.delete(name)
        if data is not None:
            memory.put_new(name, data)
    memory.put_new(f"{PLACE}/part-00009.parquet", b"")
    with pytest.raises(ArchiveMismatchError) as caught:
        verify(memory, *SEASON)
    told = str(caught.value)
    assert f"{names[0]} is missing" in told
    assert f"{names[1]} is not the part that was sealed" in told
    assert f"{names[2]} is not the part that was sealed" in told
    assert f"{PLACE}/part-00009.parquet was not sealed" in told
    assert names[3] not in told
    assert told.count(f"{names[0]} is missing") == 1


def with_column(table: Any, name: str, change: Callable[[list[Any]], list[Any]]) -> Any:
    at = table.schema.get_field_index(name)
    values = pa.array(change(table[name].to_pylist()), table.schema.field(at).type)
    return table.set_column(at, table.schema.field(at), values)


def swapped(values: list[Any]) -> list[Any]:
    return [values[1], values[0], *values[2:]]


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("position", swapped, "position 2 at position 2 must be 1"),
        ("position", lambda values: [value + 1 for value in values], "position 2 at position 2 must be 1"),
        ("rank", lambda values: [*values[:-1], 99], "part-00002.parquet: rank 99 at position 10 must be 9"),
        ("points", swapped, "points 9 at position 1 must be 10"),
        ("reached_at", swapped, "reached_at"),
        ("reached_at", lambda values: [None, *values[1:]], "reached_at is empty in 1 rows"),
        ("score", swapped, "position 2 is out of board order"),
        ("score", lambda values: [values[0] + 0.5, *values[1:]], "is not a whole number"),
        ("player_id", lambda values: [*values[:-2], values[-1], values[-2]], "position 10 is out of board order"),
        ("player_id", lambda values: [*values[:-1], values[-2]], "position 10 is out of board order"),
    ],
)
def test_rows_that_break_a_rule(memory: Store, name: str, change: Any, told: str) -> None:
    """Though bytes and digest agree with the seal: positions, ranks, points, times, order, and members twice."""
    season = packed_draft()
    wrong = draft(season.board, season.bounds, with_column(season.table, name, change))
    wrong.publish(memory)
    with pytest.raises(ArchiveMismatchError) as caught:
        verify(memory, *SEASON)
    assert told in str(caught.value)


def test_order_and_ranks_are_checked_across_parts(memory: Store) -> None:
    """The border between two parts is checked as any other: a tie that spans it, and rows in wrong parts."""
    of = board(ties="shared", ledger="none")
    members = [b"a", b"b", b"c", b"d"]
    table = standings(of, bounds(), members, [5.0] * 4)
    draft(of, bounds(), table, part_rows=1).publish(memory)
    assert verify(memory, *SEASON).rows == 4
    other = open_store("memory://", {})
    draft(of, bounds(), with_column(table, "player_id", lambda ids: [ids[0], ids[2], ids[1], ids[3]]), 2).publish(other)
    with pytest.raises(ArchiveMismatchError, match=r"part-00001\.parquet: position 3 is out of board order"):
        verify(other, *SEASON)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"digest": "ab" * 32}, "digest "),
        ({"points_sum": 1}, "sum of points"),
        ({"first_score": 1.0}, "first score"),
        ({"last_score": 1.0}, "last score"),
        ({"keys": (KeyFacts("k", 10, "ab" * 32),)}, "digest of the live key"),
    ],
)
def test_a_seal_that_tells_something_else(memory: Store, fields: dict[str, Any], told: str) -> None:
    """Every fact of the seal about the rows is computed again."""
    season = packed_draft()
    assert isinstance(season.facts, StandingFacts)
    season.facts = replace(season.facts, **fields)
    season.publish(memory)
    with pytest.raises(ArchiveMismatchError, match=f"{told}.* the seal says"):
        verify(memory, *SEASON)


def test_rows_of_a_part_are_counted(memory: Store) -> None:
    """Counts of rows moved from one part to the next agree in sum, and are found."""
    season = packed_draft()
    first, second, third = season.facts.parts
    wrong = (replace(first, rows=first.rows - 1), replace(second, rows=second.rows + 1), third)
    season.facts = replace(season.facts, parts=wrong)
    seal = season.seal()
    for part, data in season.files:
        memory.put_new(f"{PLACE}/{part.name}", data)
    memory.put_new(seal.path, build(seal))
    with pytest.raises(ArchiveMismatchError, match=r"part-00000.* has 4 rows, the seal says 3"):
        verify(memory, *SEASON)
    with pytest.raises(ArchiveMismatchError, match="has 4 rows"):
        list(read_parts_checked(memory, seal))


def test_c33_another_schema_is_found(memory: Store) -> None:
    """C33, C38: text where the board says binary, and a file that is no Parquet, are no archive."""
    season = packed_draft()
    season.board = board(member="binary")
    season.publish(memory)
    with pytest.raises(
        ArchiveMismatchError,
        match=r"part-00000.*columns .*player_id string not null.* instead of .*player_id binary not null",
    ):
        verify(memory, *SEASON)
    other = packed_draft()
    data = b"not Parquet"
    part = replace(other.files[0][0], rows=10, size=len(data), sha256=sha256(data))
    other.files, other.facts = [(part, data)], replace(other.facts, parts=(part,))
    store = open_store("memory://", {})
    other.publish(store)
    with pytest.raises(ArchiveMismatchError, match=r"part-00000\.parquet is no Parquet file"):
        verify(store, *SEASON)


def test_a_seal_in_another_seasons_place(memory: Store) -> None:
    """A seal copied to another season's path is not believed."""
    seal = packed_draft().publish(memory)
    memory.put_new("seals/daily/s20261203/standings.json", build(seal))
    with pytest.raises(ArchiveMismatchError, match="holds the seal of the standings of daily/s20261204"):
        load_seal(memory, "daily", "s20261203")


def test_grants_are_verified_by_item(memory: Store) -> None:
    """Grants: parts, rows and the sum of each item against their seal."""
    season = packed_draft()
    seal = season.publish(memory)
    made = with_grants(memory, season, sha256(build(seal)))
    verified = verify(memory, *SEASON, kind="grants")
    assert (verified.rows, verified.parts, verified.digest) == (10, 4, None)
    assert isinstance(made.facts, GrantFacts)
    wrong = replace(made, facts=replace(made.facts, sums={"gems": 99, "title": 1}))
    memory.delete(made.path)
    memory.put_new(made.path, build(wrong))
    with pytest.raises(ArchiveMismatchError, match=r"sum of gems 100, the seal says 99; sum of title 0"):
        verify(memory, *SEASON, kind="grants")


def test_reads_stop_at_the_first_part_that_differs(memory: Store) -> None:
    """What reads all rows gets them in order, or an error before the first row of a wrong part."""
    season = packed_draft()
    seal = season.publish(memory)
    read = pa.Table.from_batches(read_parts_checked(memory, seal))
    assert read.replace_schema_metadata().equals(season.table)
    memory.delete(f"{PLACE}/part-00001.parquet")
    rows = read_parts_checked(memory, seal)
    assert next(rows).num_rows == 4
    with pytest.raises(ArchiveMismatchError, match=r"part-00001\.parquet is missing"):
        next(rows)


def test_the_ranks_of_a_large_season(memory: Store) -> None:
    """A season of 200,000 players with many ties, in parts of 70,000, verifies."""
    of = board(ties="shared", ledger="none")
    scores = np.random.default_rng(7).integers(0, 500, 200_000).astype(np.float64)
    members = [b"p%09d" % number for number in range(scores.size)]
    table = standings(of, bounds(), members, scores.tolist())
    writer = PartWriter(table.schema, 70_000)
    assert len([made for batch in table.to_batches() for made in writer.add(batch)]) == 2
    draft(of, bounds(), table, part_rows=70_000).publish(memory)
    assert verify(memory, *SEASON).parts == 3
