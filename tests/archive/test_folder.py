"""What only a store in a folder does: synced, aside until whole, and the errors of file systems."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from archive.folder import INCOMING
from archive.store import (
    FolderStore,
    ObjectExistsError,
    Store,
    settle,
)
from leaderboard.errors import AccessError, OutcomeUnknownError, UnavailableError


def names(store: Store, prefix: str = "") -> list[str]:
    return [stored.path for stored in store.list(prefix)]


class TestFolder:
    """What only a folder does."""

    def test_nothing_unfinished_is_ever_in_a_globbed_place(self, tmp_path: Path) -> None:
        """C27: files are written aside; after success and after refusal nothing is left there."""
        store = FolderStore(tmp_path / "made" / "by" / "put")
        settle(store, "standings/board=b/season=s/part-00000.parquet", b"x")
        with pytest.raises(ObjectExistsError):
            store.put_new("standings/board=b/season=s/part-00000.parquet", b"y")
        assert list((store.root / INCOMING).iterdir()) == []
        files = [str(path.relative_to(store.root)) for path in store.root.rglob("*") if path.is_file()]
        assert files == ["standings/board=b/season=s/part-00000.parquet"]

    def test_the_litter_of_dead_writers_goes_by_age(self, tmp_path: Path) -> None:
        """An old file in .incoming is removed by the next writer, a young one may still be written and stays."""
        incoming = tmp_path / INCOMING
        incoming.mkdir()
        for name, age in {"old": 2 * 86_400, "young": 3_600}.items():
            (incoming / name).write_bytes(b"half a pa")
            os.utime(incoming / name, (time.time() - age, time.time() - age))
        store = FolderStore(tmp_path)
        assert names(store) == []
        store.put_new("a", b"")
        assert [path.name for path in incoming.iterdir()] == ["young"]
        assert names(store) == ["a"]

    def test_everything_is_synced(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The file before it is linked, then its folders, and what new ones stand in; also when the place was taken."""
        synced: list[str] = []
        fsync = os.fsync

        def record(descriptor: int) -> None:
            synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", record)
        store = FolderStore(tmp_path / "store")
        store.put_new("a/b/c", b"data")
        folders = [tmp_path / "store/a/b", tmp_path / "store/a", tmp_path / "store", tmp_path]
        assert Path(synced[0]).parent == store.root / INCOMING
        assert synced[1:] == [str(folder) for folder in folders]
        with pytest.raises(ObjectExistsError):
            store.put_new("a/b/c", b"data")
        assert synced[6:] == [str(folder) for folder in folders[:-1]]

    def test_a_full_disk_leaves_nothing(self) -> None:
        """A disk without space is told with the path and a remedy."""
        with pytest.raises(UnavailableError) as caught:
            raise_from_write(OSError(28, "No space left on device"))
        assert "free some space" in str(caught.value)
        assert "part" in str(caught.value)

    def test_a_failed_sync_of_the_folder_is_an_unknown_outcome(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Once linked, the file may be seen by others: a failure is no "not done"."""
        store = FolderStore(tmp_path)
        monkeypatch.setattr("archive.folder._sync", raiser(OSError(5, "Input/output error")))
        with pytest.raises(OutcomeUnknownError):
            store.put_new("a", b"data")
        monkeypatch.undo()
        assert not settle(store, "a", b"data")

    def test_a_file_where_the_folder_must_be(self, tmp_path: Path) -> None:
        """The store's root is a file: every use says so and how to mend it."""
        (tmp_path / "file").write_text("not a folder")
        store = FolderStore(tmp_path / "file")
        for use in (lambda: store.put_new("a", b""), lambda: names(store)):
            with pytest.raises(AccessError, match="move it away"):
                use()

    def test_a_file_in_the_way_of_a_path(self, tmp_path: Path) -> None:
        """An object where a folder must be made is told as what it is."""
        store = FolderStore(tmp_path)
        store.put_new("a", b"")
        with pytest.raises(AccessError, match="move it away"):
            store.put_new("a/b", b"")

    @pytest.mark.parametrize("number", [1, 13, 18, 30, 95])
    def test_refusals_name_path_and_remedy(self, number: int) -> None:
        """No right, read-only, another device, no hard links: an AccessError with the path and what to do."""
        with pytest.raises(AccessError) as caught:
            raise_from_write(OSError(number, os.strerror(number)))
        assert "part" in caught.value.message
        assert caught.value.hint


def raiser(error: Exception):  # type: ignore[no-untyped-def]  # stands in for functions of any signature
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def raise_from_write(error: OSError) -> None:
    """Put a part into a folder whose file system answers a write with ``error``; nothing may be left."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        store = FolderStore(Path(folder))
        patch.setattr(os, "fsync", raiser(error))
        try:
            store.put_new("part", b"data")
        finally:
            assert not list((store.root / INCOMING).iterdir())
            assert names(store) == []
