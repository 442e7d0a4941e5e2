"""Publishing sealed parts and sweeping staged ones, through every fault."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from archive.publish import publish, staged_attempts, sweep
from archive.seal import build
from archive.store import FolderStore, Store, open_store
from archive.verify import verify
from leaderboard.errors import ArchiveMismatchError, FinaleError
from tests.archive.sealed import packed_draft
from tests.support.faulty_store import FaultyStore, Killed

PLACE = "standings/board=daily/season=s20261204"


def contents(store: Store, prefix: str = "") -> dict[str, bytes]:
    return {stored.path: store.get(stored.path) for stored in store.list(prefix)}


def test_publishes_the_attempt_that_was_sealed(store: Store) -> None:
    """I2: of two attempts the one that the seal names is copied, byte for byte; doing it again changes nothing."""
    won, lost = packed_draft(attempt="f2-1"), packed_draft(rows=7, attempt="f1-1")
    won.stage(store)
    lost.stage(store)
    publish(store, won.seal())
    after = contents(store, PLACE)
    assert after == {f"{PLACE}/{part.name}": data for part, data in won.files}
    publish(store, won.seal())
    assert contents(store, PLACE) == after


def test_a_repeat_needs_no_staging(store: Store) -> None:
    """I8: once published, the staging may be swept and the step run again."""
    season = packed_draft()
    seal = season.publish(store)
    assert sweep(store, "daily", "s20261204", "f1-1") == len(season.files)
    publish(store, seal)
    assert contents(store, "staging") == {}


def test_a_late_loser_overwrites_nothing(store: Store) -> None:
    """I2: another seal of the same season finds other parts in its place, and leaves them."""
    packed_draft(attempt="f2-1").publish(store)
    before = contents(store, PLACE)
    loser = packed_draft(rows=11, attempt="f1-1")
    loser.stage(store)
    with pytest.raises(ArchiveMismatchError, match=r"part-0000\d\.parquet is not the part"):
        publish(store, loser.seal())
    assert contents(store, PLACE) == before


@pytest.mark.parametrize("name", ["part-00009.parquet", "notes.txt", "deeper/part-00000.parquet"])
def test_c29_a_foreign_file_in_the_place_is_named(store: Store, name: str) -> None:
    """C29: the place must hold exactly the sealed parts; what else lies there is named, and nothing is published."""
    season = packed_draft()
    season.stage(store)
    store.put_new(f"{PLACE}/{name}", b"left by somebody")
    with pytest.raises(ArchiveMismatchError, match=name):
        publish(store, season.seal())
    assert list(contents(store, PLACE)) == [f"{PLACE}/{name}"]


def test_c27_staged_bytes_are_checked_before_they_are_published(tmp_path: Path) -> None:
    """C27: a staged part that is missing, cut short or changed is named by its path and never published."""
    season = packed_draft()
    path = f"staging/daily/s20261204/f1-1/{season.files[1][0].name}"
    original = season.files[1][1]
    for number, data in enumerate([None, original[:-9], original[:-1] + b"?", b""]):
        store = FolderStore(tmp_path / str(number))
        season.stage(store)
        store.delete(path)
        if data is not None:
            store.put_new(path, data)
        with pytest.raises(ArchiveMismatchError, match=path):
            publish(store, season.seal())
        assert list(contents(store, PLACE)) == [f"{PLACE}/part-00000.parquet"]


def test_a_store_that_gives_half_a_part(tmp_path: Path) -> None:
    """A truncated answer is found by size and hash, and a repeat succeeds."""
    season = packed_draft()
    season.stage(FolderStore(tmp_path))
    with pytest.raises(ArchiveMismatchError, match="is not the part"):
        publish(FaultyStore(FolderStore(tmp_path), ".t"), season.seal())
    publish(FolderStore(tmp_path), season.seal())


@pytest.mark.parametrize("letter", "nudkK")
def test_i8_every_fault_at_every_call(tmp_path: Path, letter: str) -> None:
    """I8: whichever call fails, loses its answer or is the last, a run afterwards ends with the sealed parts."""
    season = packed_draft()
    seal = season.seal()
    whole = FaultyStore(open_store("memory://", {}))
    season.stage(whole.inner)
    publish(whole, seal)
    assert len(whole.calls) == 2 + 2 * len(season.files)
    for call in range(len(whole.calls)):
        store = FolderStore(tmp_path / str(call))
        season.stage(store)
        store.put_new(seal.path, build(seal))
        try:
            publish(FaultyStore(store, "." * call + letter), seal)
        except (FinaleError, Killed):
            assert contents(store, PLACE).items() <= contents(whole.inner, PLACE).items()
        publish(store, seal)
        assert contents(store, PLACE) == contents(whole.inner, PLACE)
        assert verify(store, "daily", "s20261204").rows == 10


def test_sweeps_one_attempt_and_only_what_it_can_parse(store: Store) -> None:
    """Other attempts, other seasons and files with foreign names stay."""
    for season in (packed_draft(), packed_draft(attempt="f1-2"), packed_draft("s20261203")):
        season.stage(store)
    foreign = "staging/daily/s20261204/f1-1/notes.txt"
    store.put_new(foreign, b"mine")
    assert staged_attempts(store, "daily", "s20261204") == ["f1-1", "f1-2"]
    kept = {path for path in contents(store) if "/s20261204/f1-1/part-" not in path}
    assert sweep(store, "daily", "s20261204", "f1-1") == 3
    assert set(contents(store)) == kept
    assert foreign in kept
    assert sweep(store, "daily", "s20261204", "f1-1") == 0
    assert staged_attempts(store, "daily", "s20261204") == ["f1-2"]


def test_sizes_are_told_when_the_place_lies(store: Store) -> None:
    """A seal whose size of a part is not the published one is refused with both sizes."""
    season = packed_draft()
    season.publish(store)
    first, *rest = season.facts.parts
    wrong = replace(season.facts, parts=(replace(first, size=first.size + 1), *rest))
    with pytest.raises(ArchiveMismatchError, match=f"{first.size:,} bytes.*{first.size + 1:,}"):
        publish(store, season.seal(facts=wrong))
