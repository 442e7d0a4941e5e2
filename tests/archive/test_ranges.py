"""Pieces of objects, the same from every store, and folders that go with the last object in them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from archive import folder
from archive.ranges import RangeFile
from archive.store import FolderStore, ObjectMissingError, ObjectShortError, Store, open_store
from tests.support.counting_store import CountingStore

DATA = bytes(range(256)) * 2


class TestEveryStore:
    def test_gives_the_bytes_asked_for(self, store: Store) -> None:
        """Whatever piece of the object is asked for, up to its end, comes as it was put."""
        store.put_new("a/b", DATA)
        for start, length in ((0, 1), (0, 512), (100, 50), (511, 1)):
            assert store.get_range("a/b", start, length) == DATA[start : start + length]

    @pytest.mark.parametrize(("start", "length"), [(0, 513), (500, 100), (512, 1), (9_999, 5)])
    def test_tells_an_object_that_ends_too_early(self, store: Store, start: int, length: int) -> None:
        """Less than was asked for is an error that names the object, never a short answer."""
        store.put_new("a/b", DATA)
        with pytest.raises(ObjectShortError, match="a/b ends before byte"):
            store.get_range("a/b", start, length)

    def test_tells_a_missing_object(self, store: Store) -> None:
        with pytest.raises(ObjectMissingError, match="a/b"):
            store.get_range("a/b", 0, 1)


class TestRangeFile:
    @pytest.fixture
    def counting(self) -> CountingStore:
        store = CountingStore(open_store("memory://", {}))
        store.put_new("a/b", DATA)
        return store

    def test_reads_like_a_file(self, counting: CountingStore) -> None:
        """Seeking from the start, the end and here, and reading past the end, as with any file."""
        file, plain = RangeFile(counting, "a/b", len(DATA)), io.BytesIO(DATA)
        for offset, whence, size in ((10, 0, 5), (-7, 2, 4), (-2, 1, 99), (0, 0, -1), (600, 0, 5), (3, 0, 0)):
            assert file.seek(offset, whence) == plain.seek(offset, whence)
            assert file.read(size) == plain.read(size)
            assert file.tell() == plain.tell()

    def test_asks_for_nothing_it_has(self, counting: CountingStore) -> None:
        """Opening asks for nothing, and what the last small read brought is not asked for again."""
        file = RangeFile(counting, "a/b", len(DATA))
        assert counting.read == {}
        assert file.read_at(200, 100) == DATA[200:300]
        assert file.read_at(250, 50) == DATA[250:300]
        assert counting.read == {"a/b": 100}
        assert file.read_at(250, 51) == DATA[250:301]
        assert counting.read == {"a/b": 151}


class TestFolders:
    def test_a_folder_goes_with_the_last_object_in_it(self, tmp_path: Path) -> None:
        """Folders left empty by a removal are removed, those that hold anything stay, and so does the root."""
        store = FolderStore(tmp_path / "store")
        for path in ("staging/b/s/one/part", "staging/b/s/two/part"):
            store.put_new(path, b"x")
        store.delete("staging/b/s/one/part")
        assert sorted(path.name for path in (store.root / "staging/b/s").iterdir()) == ["two"]
        store.delete("staging/b/s/two/part")
        assert sorted(path.name for path in store.root.iterdir()) == [".incoming"]
        store.delete("staging/b/s/two/part")
        assert store.root.exists()

    @pytest.mark.parametrize("times", [1, 2])
    def test_a_folder_swept_away_under_a_put_is_made_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
    ) -> None:
        """A put whose folder another process removes just before the file would stand in it loses nothing."""
        store, link, sweeps = FolderStore(tmp_path / "store"), folder._link, iter(range(times))

        def link_after_a_sweep(source: Path, target: Path) -> bool:
            if next(sweeps, None) is not None:
                store.delete("staging/b/gone")
            return link(source, target)

        monkeypatch.setattr(folder, "_link", link_after_a_sweep)
        store.put_new("staging/b/one", b"x")
        assert next(sweeps, None) is None
        assert store.get("staging/b/one") == b"x"
