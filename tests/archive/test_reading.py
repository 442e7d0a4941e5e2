"""Reading back: Finale's own readers through the seal, and everybody else's over the folder."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import archive
from archive.reading import around, player, read, top
from archive.store import FolderStore, Store, open_store
from leaderboard.errors import ArchiveMismatchError, UnknownNameError
from tests.archive.sealed import board, bounds, draft, packed_draft, standings
from tests.support.faulty_store import FaultyStore

SEASON = ("daily", "s20261204")
PLACE = "standings/board=daily/season=s20261204"
SEASONS = ("s2021", "s20261204", "s2026q4", "s2026m12", "s2026w49")
EXPECTED = sorted(
    (name, season, rows + 2) for name in ("daily", "goals-eu") for rows, season in enumerate(SEASONS) if rows
)


@pytest.fixture
def watched() -> FaultyStore:
    """A published season of ten players in parts of four, in a store that lists its calls."""
    store = FaultyStore(open_store("memory://", {}))
    packed_draft().publish(store)
    store.calls.clear()
    return store


def positions(table: pa.Table) -> list[int]:
    return table["position"].to_pylist()


def test_reads_what_was_sealed(store: Store) -> None:
    """The whole table in board order, and a frame of it with the right types."""
    season = packed_draft()
    season.publish(store)
    table = read(store, *SEASON)
    assert table.replace_schema_metadata().equals(season.table)
    frame = table.to_pandas()
    assert str(frame["points"].dtype) == "int64"
    assert list(frame["player_id"][:3]) == ["p0", "p1", "p2"]


def test_reads_through_the_seal_and_never_by_listing(watched: FaultyStore) -> None:
    """C27, C29: what was not sealed is not read, even beside the parts."""
    watched.inner.put_new(f"{PLACE}/part-00003.parquet", packed_draft().files[0][1])
    assert positions(read(watched, *SEASON)) == list(range(1, 11))
    assert not [call for call in watched.calls if call.startswith("list")]


def test_reads_only_the_parts_it_needs(watched: FaultyStore) -> None:
    """The top and the neighbours come from the parts that hold them."""

    def parts() -> list[str]:
        found = [call[-len("00000.parquet") :] for call in watched.calls if "part-" in call]
        watched.calls.clear()
        return found

    assert positions(top(watched, *SEASON, 3)) == [1, 2, 3]
    assert parts() == ["00000.parquet"]
    assert positions(top(watched, *SEASON, 5)) == [1, 2, 3, 4, 5]
    assert parts() == ["00000.parquet", "00001.parquet"]
    assert positions(around(watched, *SEASON, 7, 1)) == [6, 7, 8]
    assert parts() == ["00001.parquet"]
    assert positions(around(watched, *SEASON, 1, 2)) == [1, 2, 3]
    assert positions(around(watched, *SEASON, 10, 2)) == [8, 9, 10]
    assert positions(top(watched, *SEASON, 99)) == list(range(1, 11))
    parts()
    assert positions(top(watched, *SEASON, 0)) == []
    assert positions(around(watched, *SEASON, 50, 2)) == []
    assert parts() == []
    whole = read(watched, *SEASON).schema
    assert top(watched, *SEASON, 0).schema.equals(whole, check_metadata=True)


def test_finds_a_player(watched: FaultyStore) -> None:
    """The player's row, or None; parts are read until it is found."""
    row = player(watched, *SEASON, b"p9")
    assert row is not None
    # The last two reached the same points at the same time: the higher id stands first on a high board.
    assert (row["position"], row["rank"], row["points"], row["player_id"]) == (9, 9, 2, "p9")
    watched.calls.clear()
    first = player(watched, *SEASON, b"p0")
    assert first is not None
    assert first["position"] == 1
    assert len(watched.calls) == 2
    assert player(watched, *SEASON, b"p99") is None
    assert player(watched, *SEASON, b"\xff") is None


def test_c38_binary_players() -> None:
    """C38: ids that are no text are found by their bytes."""
    of = board(member="binary", ties="member", ledger="none")
    store = open_store("memory://", {})
    members = [b"", b"\xff\x00", b"$5\r\n", "\U0001f3c6".encode()]
    draft(of, bounds(), standings(of, bounds(), members, [1.0, 2.0, 3.0, 4.0])).publish(store)
    for position, member in enumerate(reversed(members), 1):
        row = player(store, *SEASON, member)
        assert row is not None
        assert (row["position"], row["player_id"], row["reached_at"]) == (position, member, None)


def test_c39_an_empty_season_is_an_empty_table() -> None:
    """C39: no rows, all columns."""
    store = open_store("memory://", {})
    packed_draft(rows=0).publish(store)
    for table in (read(store, *SEASON), top(store, *SEASON, 10), around(store, *SEASON, 1, 5)):
        assert table.num_rows == 0
        assert table.schema.names == ["position", "rank", "player_id", "points", "reached_at", "score"]
    assert player(store, *SEASON, b"p1") is None


def test_what_is_not_sealed_is_not_read(watched: FaultyStore) -> None:
    """A season without a seal is unknown, even where parts lie in its place; a changed part is an error."""
    with pytest.raises(UnknownNameError, match="daily/s20261203 are not sealed"):
        read(watched, "daily", "s20261203")
    path = f"{PLACE}/part-00001.parquet"
    data = watched.inner.get(path)
    watched.inner.delete(path)
    watched.inner.put_new(path, data[:-1] + b"?")
    assert positions(top(watched, *SEASON, 4)) == [1, 2, 3, 4]
    for use in (lambda: read(watched, *SEASON), lambda: player(watched, *SEASON, b"p5")):
        with pytest.raises(ArchiveMismatchError, match=path):
            use()


class TestOtherReaders:
    """C30: board and season are text columns for whoever globs the folder."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        """Five seasons of each of two boards, one of them empty, staging not swept."""
        store = FolderStore(tmp_path)
        for name in ("daily", "goals-eu"):
            for rows, season in enumerate(SEASONS):
                packed_draft(season, rows=rows + 2 if rows else 0, name=name).publish(store)
        return tmp_path

    def test_duckdb(self, root: Path) -> None:
        """DuckDB with hive_partitioning, types guessed by itself; times and bounds keep their zone (C36)."""
        with duckdb.connect() as connection:
            connection.execute("set timezone = 'America/New_York'")
            view = f"read_parquet('{root}/standings/**/*.parquet', hive_partitioning = true)"
            types = {name: kind for name, kind, *_ in connection.execute(f"describe select * from {view}").fetchall()}
            assert types == {
                "position": "BIGINT",
                "rank": "BIGINT",
                "player_id": "VARCHAR",
                "points": "BIGINT",
                "reached_at": "TIMESTAMP WITH TIME ZONE",
                "score": "DOUBLE",
                "board": "VARCHAR",
                "season": "VARCHAR",
            }
            counts = f"select board, season, count(*) from {view} group by all order by all"
            assert connection.execute(counts).fetchall() == EXPECTED
            first = f"select min(epoch_us(reached_at)) from {view} where season = 's2021' or season = 's20261204'"
            assert connection.execute(first).fetchall() == [(int(bounds().starts_at.timestamp()) * 10**6,)]
            one = f"select position from {view} where board = 'daily' and season = 's2026q4' and player_id = 'p2'"
            assert connection.execute(one).fetchall() == [(4,)]

    def test_pyarrow_dataset(self, root: Path) -> None:
        """pyarrow.dataset with hive partitioning."""
        table = ds.dataset(root / "standings", format="parquet", partitioning="hive").to_table()
        assert {str(table.schema.field(name).type) for name in ("board", "season")} == {"string"}
        counts = table.group_by(["board", "season"]).aggregate([("position", "count")]).to_pylist()
        assert sorted((row["board"], row["season"], row["position_count"]) for row in counts) == EXPECTED

    def test_pandas(self, root: Path) -> None:
        """pandas.read_parquet over the folder; whole numbers stay whole (C34)."""
        frame = pd.read_parquet(root / "standings")
        counts = frame.astype({"board": str, "season": str}).groupby(["board", "season"]).size()
        assert sorted((*index, count) for index, count in counts.items()) == EXPECTED
        assert set(frame["season"].unique()) == set(SEASONS[1:])
        assert all(isinstance(season, str) for season in frame["season"])
        assert {str(frame[name].dtype) for name in ("position", "rank", "points")} == {"int64"}
        assert str(frame["reached_at"].dtype) == "datetime64[us, UTC]"


def test_the_package_reads_a_season_by_url(tmp_path: Path) -> None:
    """``archive.read`` takes a URL and gives Arrow, and pandas from it; an analyst needs nothing else."""
    season = packed_draft()
    season.publish(FolderStore(tmp_path))
    table = archive.read(*SEASON, store=tmp_path.as_uri())
    assert table.replace_schema_metadata().equals(season.table)
    assert list(table.to_pandas()["position"]) == list(range(1, 11))
