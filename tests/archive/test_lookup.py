"""A player through all seasons: found exactly, and without reading what cannot hold them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from archive.catalog import read_catalog
from archive.lookup import history
from archive.parts import standings_schema
from archive.reading import player, read
from archive.store import FolderStore, Store, open_store
from leaderboard.errors import ArchiveMismatchError
from leaderboard.season import Bounds
from tests.archive.sealed import board, bounds, draft, packed_draft, standings
from tests.support.counting_store import CountingStore

ROWS, PARTS = 120_000, 3
SEASONS = ("s2024", "s2025")
NOBODY = "p000000001-nobody"  # within what the statistics allow


def member(number: int) -> str:
    return f"p{number:09d}"


def year(season: str) -> Bounds:
    start = int(season[1:])
    return Bounds(datetime(start, 1, 1, tzinfo=UTC), datetime(start + 1, 1, 1, tzinfo=UTC), season)


def fill(store: Store) -> None:
    """Publish two seasons of three parts, large enough to be read in pieces: even ids in one, all ids in the other."""
    of, random = board("goals", ties="shared", ledger="none"), np.random.default_rng(1)
    order = random.permutation(ROWS * PARTS)
    positions = pa.array(np.arange(1, ROWS * PARTS + 1))
    scores = np.cumsum(random.integers(1, 2**20, ROWS * PARTS))[::-1].copy()
    for step, season in zip((2, 1), SEASONS, strict=True):
        ids = pa.array([member(number * step) for number in order.tolist()])
        columns = [positions, positions, ids, pa.array(scores), pa.nulls(len(ids), pa.timestamp("us", tz="UTC"))]
        table = pa.table([*columns, pa.array(scores.astype(float))], schema=standings_schema())
        draft(of, year(season), table, part_rows=ROWS).publish(store)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> FolderStore:
    store = FolderStore(tmp_path_factory.mktemp("lookup"))
    fill(store)
    return store


@pytest.fixture
def counting(folder: FolderStore) -> CountingStore:
    return CountingStore(folder)


def found(store: Store, player: str) -> list[tuple[str, int, int, float]]:
    """Return season, position, rank and points of the player."""
    seals = read_catalog(store).seals
    return [
        (one.seal.bounds.id, one.row["position"], one.row["rank"], one.row["points"])
        for one in history(store, seals, player)
    ]


def test_a_miss_reads_a_small_part_of_the_bytes(counting: CountingStore) -> None:
    """Of each part the end and two pieces of the filter: no part whole, under a tenth of all bytes."""
    assert found(counting, NOBODY) == []
    parts = {stored.path: stored.size for stored in counting.list("standings")}
    assert len(parts) == 2 * PARTS
    read = {path: size for path, size in counting.read.items() if path in parts}
    assert not [path for path in counting.whole if path in parts]
    assert max(read.values()) <= 64 * 1024 + 32 + 32
    assert sum(read.values()) < 0.1 * sum(parts.values())


def test_statistics_alone_deny_what_lies_outside(counting: CountingStore) -> None:
    """An id that sorts after all others needs not even the filter: only the end of each part."""
    assert found(counting, "zzz") == []
    sizes = {size for path, size in counting.read.items() if path.startswith("standings/")}
    assert sizes == {64 * 1024}


@pytest.mark.parametrize("number", [0, 2, 99_998, 359_998])
def test_a_hit_reads_the_parts_that_hold_the_player(counting: CountingStore, number: int) -> None:
    """Position, rank and points as the seasons have them; of six parts few more than the two are read whole."""
    expected = []
    for season in SEASONS:
        table = pa.concat_tables(
            [
                pa.parquet.read_table(path, partitioning=None)
                for path in sorted(Path(counting.url.removeprefix("file://")).glob(f"standings/*/season={season}/*"))
            ]
        )
        position = table["player_id"].to_pylist().index(member(number)) + 1
        expected.append((season, position, position, table["points"][position - 1].as_py()))
    assert found(counting, member(number)) == expected
    assert 2 <= len([path for path in counting.whole if path.startswith("standings/")]) <= 4


def test_a_player_of_one_season_only(counting: CountingStore) -> None:
    """Odd ids have played in 2025 alone."""
    assert [season for season, *_ in found(counting, member(7))] == ["s2025"]


def test_every_store_gives_the_same(store: Store) -> None:
    """Seasons in the order they were played, text that is no ASCII, and on binary boards ids in hex."""
    packed_draft("s20261204").publish(store)
    text, binary = (
        board("zoo", ties="shared", ledger="none"),
        board("bin", member="binary", ties="member", ledger="none"),
    )
    draft(text, bounds("s2"), standings(text, bounds("s2"), ["Zoë".encode(), b"p3"], [1.0, 2.0])).publish(store)
    draft(binary, bounds("s3"), standings(binary, bounds("s3"), [b"\xff\x00", b"p3"], [1.0, 2.0])).publish(store)
    assert found(store, "p3") == [("s20261204", 4, 4, 7), ("s2", 1, 1, 2)]
    assert found(store, "Zoë") == [("s2", 2, 2, 1)]
    assert found(store, "FF00") == [("s3", 2, 2, 1)]
    assert found(store, b"p3".hex()) == [("s3", 1, 1, 2)]
    assert found(store, "") == []


def test_a_part_that_is_gone_or_shorter_is_an_error(tmp_path: Path) -> None:
    """What cannot be looked at is never taken for "not there"."""
    store = FolderStore(tmp_path)
    fill(store)
    seals = read_catalog(store).seals
    path = tmp_path / "standings/board=goals/season=s2025/part-00002.parquet"
    data = path.read_bytes()
    for change in (None, data[:-500_000], data[: len(data) // 2]):
        path.unlink()
        if change is not None:
            path.write_bytes(change)
        with pytest.raises(ArchiveMismatchError, match="part-00002"):
            history(store, seals, NOBODY)
        path.write_bytes(data)


def test_a_row_told_is_as_it_was_sealed(tmp_path: Path) -> None:
    """A part whose rows were changed, size and filter kept, is refused when a row of it would be told."""
    store = FolderStore(tmp_path)
    fill(store)
    seals = read_catalog(store).seals
    for path in tmp_path.glob("standings/board=goals/season=s2024/*"):
        data = bytearray(path.read_bytes())
        data[1_000] ^= 1
        path.write_bytes(data)
    with pytest.raises(ArchiveMismatchError, match="is not the part that was sealed"):
        history(store, seals, member(0))


def test_memory_needs_no_seal_of_grants() -> None:
    """Seals of grants, and boards without rows, hold nobody."""
    store = open_store("memory://", {})
    packed_draft("s2020", rows=0).publish(store)
    assert found(store, "p1") == []


def test_one_season_reads_the_row_group_that_has_the_player(counting: CountingStore) -> None:
    """One player's place in one season takes ends and filters of the parts, and one row group: no part whole."""
    row = player(counting, "goals", "s2025", member(250_000).encode())
    assert row is not None
    assert (row["player_id"], row["rank"]) == (member(250_000), row["position"])
    assert [path for path in counting.whole if "part-" in path] == []
    sizes = {part.path: part.size for part in counting.list("standings/board=goals/season=s2025")}
    read = sorted(counting.read[path] / size for path, size in sizes.items() if path in counting.read)
    assert read[0] < 0.2
    assert player(counting, "goals", "s2025", NOBODY.encode()) is None


def test_one_season_tells_a_part_that_is_not_the_sealed_one(folder: FolderStore, tmp_path: Path) -> None:
    """A part in whose pieces a row of another place is found, or that is cut short, is read whole and refused."""
    for number, spoil in enumerate((lambda data, other: other, lambda data, other: data[: len(data) // 2])):
        store = FolderStore(tmp_path / str(number))
        for stored in folder.list(""):
            store.put_new(stored.path, folder.get(stored.path))
        first, second = (f"standings/board=goals/season=s2025/part-0000{at}.parquet" for at in (0, 1))
        data, other = store.get(first), store.get(second)
        store.delete(first)
        store.put_new(first, spoil(data, other))
        wanted = read(folder, "goals", "s2025").slice(ROWS, 1)["player_id"][0].as_py()
        with pytest.raises(ArchiveMismatchError, match="part-00000"):
            player(store, "goals", "s2025", wanted.encode())
