"""A sealed season as one file: whole or not at all, and over nothing by accident."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from archive.export import export
from archive.seal import sha256
from archive.store import FolderStore, Store, open_store
from leaderboard.errors import AccessError, ArchiveMismatchError, InputError, UnknownNameError
from tests.archive.sealed import board, bounds, draft, packed_draft, standings, with_grants
from tests.support.counting_store import CountingStore

SEASON = ("daily", "s20261204")
_NOBODY = 65534


@pytest.fixture
def sealed() -> Store:
    """A season in three parts, with grants."""
    store = open_store("memory://", {})
    season = packed_draft()
    with_grants(store, season, sha256(store.get(season.publish(store).path)))
    return store


def test_csv_has_every_row_once(store: Store, tmp_path: Path) -> None:
    """A header, all parts in order, times in UTC with a Z."""
    packed_draft().publish(store)
    done = export(store, *SEASON, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert done.rows == len(rows) == 10
    assert done.size == (tmp_path / "out.csv").stat().st_size
    assert [row["position"] for row in rows] == [str(number) for number in range(1, 11)]
    assert rows[1] == {
        "position": "2",
        "rank": "2",
        "player_id": "p1",
        "points": "9",
        "reached_at": "2026-12-04 00:00:01.000000Z",
        "score": "167772158",
    }
    assert pd.read_csv(tmp_path / "out.csv", parse_dates=["reached_at"])["reached_at"].dt.tz is not None


def test_parquet_is_one_file_with_the_same_rows(sealed: Store, tmp_path: Path) -> None:
    """The columns and types of the parts, and every row."""
    export(sealed, *SEASON, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").replace_schema_metadata() == packed_draft().table


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_each_part_is_fetched_once(sealed: Store, tmp_path: Path, name: str) -> None:
    """The columns are those of the first part that is read, which is not fetched for them alone."""
    counting = CountingStore(sealed)
    export(counting, *SEASON, tmp_path / name)
    parts = [f"standings/board=daily/season=s20261204/part-0000{number}.parquet" for number in range(3)]
    assert [path for path in counting.whole if "part-" in path] == parts


def test_grants_and_binary_ids(sealed: Store, tmp_path: Path) -> None:
    """Grants by kind; ids that are no text as hex in CSV, as bytes in Parquet; what is not known is empty."""
    export(sealed, *SEASON, tmp_path / "grants.csv", kind="grants")
    assert (tmp_path / "grants.csv").read_text().splitlines()[1] == '"g0","p0","took part","gems",10,1,1'
    of = board(member="binary", ties="member", ledger="none")
    draft(of, bounds("s1"), standings(of, bounds("s1"), [b"\xff\n", b""], [1.0, 2.0])).publish(sealed)
    export(sealed, "daily", "s1", tmp_path / "ids.csv")
    assert (tmp_path / "ids.csv").read_text().splitlines()[1:] == ['1,1,"",2,,2', '2,2,"ff0a",1,,1']
    export(sealed, "daily", "s1", tmp_path / "ids.parquet")
    assert pq.read_table(tmp_path / "ids.parquet")["player_id"].to_pylist() == [b"", b"\xff\n"]


def test_an_empty_season_is_a_header(sealed: Store, tmp_path: Path) -> None:
    """C39: no rows, all columns."""
    packed_draft("s1", rows=0).publish(sealed)
    assert export(sealed, "daily", "s1", tmp_path / "out.csv").rows == 0
    assert (tmp_path / "out.csv").read_text().count("\n") == 1
    export(sealed, "daily", "s1", tmp_path / "out.parquet")
    assert pq.read_metadata(tmp_path / "out.parquet").num_rows == 0


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_another_file_is_replaced_only_when_told(sealed: Store, tmp_path: Path, name: str) -> None:
    """Without force what is there stays as it is; with it, it is replaced at once."""
    target = tmp_path / name
    target.write_text("mine")
    with pytest.raises(InputError, match=f"{name} exists already"):
        export(sealed, *SEASON, target)
    assert target.read_text() == "mine"
    assert export(sealed, *SEASON, target, force=True).size == target.stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_link_is_followed_and_only_a_file_is_replaced(sealed: Store, tmp_path: Path) -> None:
    """What a symbolic link names is written, the link stays; a pipe is never replaced, also with force."""
    target, link, pipe = tmp_path / "there.csv", tmp_path / "out.csv", tmp_path / "pipe.csv"
    link.symlink_to(target.name)
    os.mkfifo(pipe)
    export(sealed, *SEASON, link)
    with pytest.raises(InputError, match="exists already"):
        export(sealed, *SEASON, link)
    assert export(sealed, *SEASON, link, force=True).size == target.stat().st_size
    with pytest.raises(InputError, match="is no regular file"):
        export(sealed, *SEASON, pipe, force=True)
    assert link.is_symlink() and pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["out.csv", "there.csv"]


def test_a_file_that_comes_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    """Somebody writes the same name while we read: theirs stays, ours is taken away."""
    target = tmp_path / "out.csv"

    class Slow(FolderStore):
        def get(self, path: str) -> bytes:
            target.write_text("theirs")
            return super().get(path)

    store = Slow(tmp_path / "store")
    packed_draft().publish(FolderStore(store.root))
    with pytest.raises(InputError, match="exists already"):
        export(store, *SEASON, target)
    assert target.read_text() == "theirs"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "store"]


def test_nothing_is_left_when_it_fails(sealed: Store, tmp_path: Path) -> None:
    """A part that is not as sealed, found in the middle, leaves neither the file nor a beginning of it."""
    path = "standings/board=daily/season=s20261204/part-00002.parquet"
    data = sealed.get(path)
    sealed.delete(path)
    sealed.put_new(path, data[:-1] + b"?")
    for name in ("out.csv", "out.parquet"):
        with pytest.raises(ArchiveMismatchError, match="part-00002"):
            export(sealed, *SEASON, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_refused(sealed: Store, tmp_path: Path) -> None:
    """Another suffix, a folder that is not there, a season that is not sealed: each with its own error."""
    for name in ("out.txt", "out", "csv"):
        with pytest.raises(InputError, match=r"neither \.csv nor \.parquet"):
            export(sealed, *SEASON, tmp_path / name)
    with pytest.raises(InputError, match="there is no folder"):
        export(sealed, *SEASON, tmp_path / "missing" / "out.csv")
    with pytest.raises(UnknownNameError):
        export(sealed, "daily", "s1", tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def ordinary() -> Iterator[Path]:
    """A folder of root's that anyone may read, while we are an ordinary user."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o555)
        root = os.geteuid() == 0
        if root:
            os.seteuid(_NOBODY)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)
            Path(name).chmod(0o755)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_folder_that_may_not_be_written_to_is_told(sealed: Store, ordinary: Path, name: str, force: bool) -> None:
    """What the file system refuses is an error that names the file and the reason, and leaves nothing."""
    with pytest.raises(AccessError, match=f"{name} could not be written") as caught:
        export(sealed, *SEASON, ordinary / name, force=force)
    assert (caught.value.detail, caught.value.exit_code) == ("Permission denied", 11)
    assert list(ordinary.iterdir()) == []


def test_a_name_that_is_too_long_is_told(sealed: Store, tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="could not be written") as caught:
        export(sealed, *SEASON, tmp_path / f"{'x' * 250}.csv")
    assert caught.value.detail == "File name too long"
    assert list(tmp_path.iterdir()) == []
