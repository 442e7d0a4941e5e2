"""The check that a store refuses a second put, over stores that do, that do not, and that answer badly."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from archive.abandoned import verdicts
from archive.canary import check_conditional_put
from archive.store import FolderStore, ObjectExistsError, ObjectStore, Store
from leaderboard.errors import AccessError, FinaleError, OutcomeUnknownError, UnavailableError
from tests.archive.test_abandoned import LATER
from tests.support.faulty_store import FaultyStore, Killed


class Overwriting(FolderStore):
    """A store that ignores the condition and says that all went well; ``lie``: it overwrites and says it refused."""

    lie = False

    def put_new(self, path: str, data: bytes) -> None:
        there = (self.root / path).exists()
        self.delete(path)
        super().put_new(path, data)
        if there and self.lie:
            raise ObjectExistsError(path)


def test_a_sound_store_passes_and_is_left_as_it_was(store: Store) -> None:
    """C42: folder, memory and S3's protocol refuse the second put, and nothing remains of the check."""
    store.put_new("standings/board=daily/season=s1/part-00000.parquet", b"x")
    check_conditional_put(store, "daily")
    assert [stored.path for stored in store.list("")] == ["standings/board=daily/season=s1/part-00000.parquet"]


@pytest.mark.parametrize("lie", [False, True])
def test_a_store_that_overwrites_is_refused(tmp_path: Path, lie: bool) -> None:
    """Silently overwriting, or saying 412 and doing it all the same: told with the remedy, before any seal is put."""
    store = Overwriting(tmp_path)
    store.lie = lie
    with pytest.raises(AccessError, match="overwrites an object") as told:
        check_conditional_put(store, "daily")
    assert "If-None-Match" in told.value.hint
    assert list(store.list("")) == []


def test_a_store_that_loses_what_it_took_is_refused(tmp_path: Path) -> None:
    """The first object is gone when it is read again."""

    class Losing(FolderStore):
        def put_new(self, path: str, data: bytes) -> None:
            try:
                super().put_new(path, data)
            except ObjectExistsError:
                self.delete(path)
                raise

    with pytest.raises(AccessError, match=r"does not give back what was put.*0 bytes there"):
        check_conditional_put(Losing(tmp_path), "daily")


@pytest.mark.parametrize("script", ["u", "d", ".u", ".uu", "d.u"])
def test_lost_answers_are_looked_after(tmp_path: Path, script: str) -> None:
    """An answer that is lost, the put done or not, is no verdict: the check looks again."""
    store = FolderStore(tmp_path)
    check_conditional_put(FaultyStore(store, script), "daily")
    assert list(store.list("")) == []


@pytest.mark.parametrize(
    ("script", "error"), [("n", UnavailableError), (".n", UnavailableError), (".uuu", OutcomeUnknownError)]
)
def test_no_answer_is_no_verdict(tmp_path: Path, script: str, error: type[FinaleError]) -> None:
    """A store that does not answer is not called unfit."""
    store = FolderStore(tmp_path)
    with pytest.raises(error):
        check_conditional_put(FaultyStore(store, script), "daily")
    assert list(store.list("")) == []


@pytest.mark.parametrize("script", ["K", ".k", "..K"])
def test_what_a_killed_check_leaves_is_swept_by_age(tmp_path: Path, script: str) -> None:
    """I8: the litter of a check is named as a staged part, so that it goes when it is old, whatever is sealed."""
    store = FolderStore(tmp_path)
    dead = FaultyStore(store, script)
    dead.delete = lambda path: None  # type: ignore[method-assign]  # the dead remove nothing
    with pytest.raises(Killed):
        check_conditional_put(dead, "daily")
    (left,) = verdicts(store, timedelta(days=7), LATER)
    assert (left.left.board, left.removed) == ("daily", True)


def test_a_bucket_that_knows_no_condition_is_refused() -> None:
    """S3's protocol without the condition: the client is told to put whatever is there."""

    class Unconditional(ObjectStore):
        def put_new(self, path: str, data: bytes) -> None:
            self.delete(path)
            super().put_new(path, data)

    from obstore.store import MemoryStore

    memory = MemoryStore()
    with pytest.raises(AccessError, match="overwrites"):
        check_conditional_put(Unconditional("memory://", memory, memory), "daily")
