"""Parts are encoded and put beside the reading, in order, in little memory; a failure of either comes out."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from archive.parts import Part, RowGroup, encode
from archive.store import FolderStore
from archive.uploads import Uploads
from leaderboard.errors import InputError, UnavailableError

FOLDER = "staging/b/s/try-1"


def group(*members: bytes, ends: bool = True, kind: Any = None) -> RowGroup:
    array = pa.array(members, pa.binary())
    if kind is not None:
        array = pa.Array.from_buffers(kind, len(members), array.buffers())
    return RowGroup(pa.table({"player_id": array}), ends)


class Noting(FolderStore):
    """A folder that notes which threads put, and can be held up or made to fail."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.threads: list[str] = []
        self.open = threading.Event()
        self.open.set()
        self.fails = False

    def put_new(self, path: str, data: bytes) -> None:
        self.threads.append(threading.current_thread().name)
        assert self.open.wait(30)
        if self.fails:
            raise UnavailableError("no answer")
        super().put_new(path, data)


@pytest.fixture
def store(tmp_path: Path) -> Noting:
    return Noting(tmp_path / "store")


def test_parts_come_out_in_order_and_are_stored(store: Noting) -> None:
    """Each part lies in the folder as it was encoded; row groups of one part are one file."""
    with Uploads(store, FOLDER) as uploads:
        uploads.put([group(b"a", ends=False), group(b"b"), group(b"c")])
        parts = uploads.finish()
    assert [(part.name, part.rows) for part in parts] == [("part-00000.parquet", 2), ("part-00001.parquet", 1)]
    stored = [store.get(f"{FOLDER}/{part.name}") for part in parts]
    assert [len(data) for data in stored] == [part.size for part in parts]
    assert stored[1] == encode(group(b"c").rows)


def test_neither_encoding_nor_putting_is_done_by_the_reader(store: Noting) -> None:
    """The thread that reads Redis only hands over."""
    with Uploads(store, FOLDER) as uploads:
        uploads.put(group(b"%d" % number) for number in range(6))
        uploads.finish()
    assert len(store.threads) == 6
    assert all(name.startswith("finale-put") for name in store.threads)


def test_a_store_that_is_slow_holds_the_reader_up(store: Noting) -> None:
    """While parts wait for the store only a few are taken, so that memory stays flat; then all are stored."""
    taken: list[int] = []
    done: list[tuple[Part, ...]] = []

    def groups() -> Any:
        for number in range(20):
            taken.append(number)
            yield group(b"%d" % number)

    def read() -> None:
        with Uploads(store, FOLDER) as uploads:
            uploads.put(groups())
            done.append(uploads.finish())

    store.open.clear()
    reader = threading.Thread(target=read)
    reader.start()
    reader.join(0.5)
    assert reader.is_alive()
    assert len(taken) <= 7  # two are put, three are encoded or wait to be, one more waits for either
    store.open.set()
    reader.join(30)
    assert len(done[0]) == 20


def test_who_waits_for_the_store_does_something_else_meanwhile(store: Noting) -> None:
    """What must not wait is done while a store stands still; what it raises ends the waiting and the attempt."""
    store.open.clear()
    with Uploads(store, FOLDER) as uploads:
        uploads.put((group(b"%d" % number) for number in range(9)), store.open.set)
        assert store.open.is_set()
        uploads.finish()

    def disturbed() -> None:
        store.open.set()
        raise UnavailableError("somebody wrote")

    store.open.clear()
    with pytest.raises(UnavailableError, match="somebody wrote"), Uploads(store, "staging/b/s/try-2") as uploads:
        uploads.put((group(b"%d" % number) for number in range(9)), disturbed)
    assert {stored.path.split("/")[3] for stored in store.list("staging")} == {"try-1"}


def test_a_failure_to_encode_comes_out_and_leaves_nothing(store: Noting) -> None:
    """Rows that cannot be archived end the attempt; what it staged before is thrown away."""
    with pytest.raises(InputError, match="UTF8"), Uploads(store, FOLDER) as uploads:
        uploads.put([group(b"a"), group(b"\xff", kind=pa.string()), group(b"b")])
        uploads.finish()
    assert list(store.list("staging")) == []


def test_a_failure_to_put_comes_out(store: Noting) -> None:
    """A store that does not answer ends the attempt."""
    store.fails = True
    with pytest.raises(UnavailableError), Uploads(store, FOLDER) as uploads:
        uploads.put([group(b"a")])
        uploads.finish()
