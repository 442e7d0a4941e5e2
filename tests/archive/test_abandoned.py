"""Sweeping staging by age: dead attempts and nothing else."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from archive.abandoned import Verdict, sweep_abandoned, verdicts
from archive.facts import encode_facts, put_facts
from archive.seal import build
from archive.store import FolderStore, Store, open_store
from leaderboard.errors import ArchiveMismatchError
from tests.archive.sealed import packed_draft, with_grants
from tests.support.faulty_store import FaultyStore

WEEK = timedelta(days=7)
LATER = datetime.now(UTC) + timedelta(days=8)
EXCLUDED = pa.table({"player_id": ["p1", "p2"], "reason": ["cheat", "bot"], "source": ["list", "list"]})


def paths(store: Store) -> set[str]:
    return {stored.path for stored in store.list("")}


def told(found: list[Verdict]) -> dict[str, tuple[bool, str]]:
    """Return, by season and attempt, whether it is removed and why."""
    return {f"{one.left.season}/{one.left.attempt or one.left.facts}": (one.removed, one.reason) for one in found}


def test_dead_attempts_go_and_nothing_else(store: Store) -> None:
    """Of sealed seasons and of others; seals, published parts, reports and what cannot be parsed stay."""
    packed_draft(attempt="f2-1").publish(store, sealed_at=LATER)
    packed_draft(attempt="f1-1").stage(store)
    for attempt in ("f1-1", "f2-1"):
        packed_draft("s20261203", attempt=attempt).stage(store)
    kept = [
        "staging/daily/s20261204/f1-1/notes.txt",
        "staging/daily/s20261204/part-00000.parquet",
        "staging/daily/s20261204/f1-1/deeper/part-00000.parquet",
        "staging/daily/s20261204/F1/part-00000.parquet",
        "staging/epoch/s20261204/f1-1/part-00000.parquet",
        "staging/part-00000.parquet",
        "reports/daily/s20261204/drift.json",
    ]
    for path in kept:
        store.put_new(path, b"mine")
    before = paths(store)
    dry = verdicts(store, WEEK, LATER)
    assert paths(store) == before
    assert told(dry) == {
        "s20261204/f1-1": (True, "the season is sealed"),
        "s20261204/f2-1": (True, "the season is sealed"),
        "s20261203/f1-1": (True, "abandoned"),
        "s20261203/f2-1": (False, "the newest of a season that is not sealed: a hold may wait for it"),
    }
    assert sweep_abandoned(store, WEEK, LATER) == dry
    gone = {part.path for one in dry if one.removed for part in one.left.objects}
    assert len(gone) == 9
    assert paths(store) == before - gone
    assert told(sweep_abandoned(store, WEEK, LATER)).keys() == {"s20261203/f2-1"}
    assert told(sweep_abandoned(store, WEEK, LATER, unsealed=True)) == {"s20261203/f2-1": (True, "abandoned")}
    assert {path for path in paths(store) if path.startswith("staging/")} == set(kept[:-1])


def test_young_attempts_stay(store: Store) -> None:
    """An attempt counts from its newest part, so one that is still being written is never touched."""
    packed_draft().stage(store)
    (written,) = verdicts(store, WEEK, LATER)
    at = written.left.modified + WEEK
    assert told(verdicts(store, WEEK, at - timedelta(microseconds=1), unsealed=True)) == {
        "s20261204/f1-1": (False, "too young")
    }
    assert told(verdicts(store, WEEK, at, unsealed=True)) == {"s20261204/f1-1": (True, "abandoned")}


def test_an_attempt_lives_as_long_as_its_newest_part(tmp_path: Path) -> None:
    """Old first parts do not make an attempt old."""
    store = FolderStore(tmp_path)
    packed_draft().stage(store)
    os.utime(tmp_path / "staging/daily/s20261204/f1-1/part-00000.parquet", (0, 0))
    assert sweep_abandoned(store, WEEK, datetime.now(UTC), unsealed=True)[0].reason == "too young"
    assert len(paths(store)) == 3


def test_what_may_be_the_only_copy_stays(store: Store) -> None:
    """I2: a seal names its staging until all its parts are in their place, however old it is."""
    season = packed_draft(attempt="f1-1")
    season.stage(store)
    packed_draft(attempt="f0-1").stage(store)
    store.put_new(season.seal().path, build(season.seal(sealed_at=LATER)))
    part, data = season.files[0]
    store.put_new(f"{season.seal().place}/{part.name}", data)
    assert told(sweep_abandoned(store, WEEK, LATER, unsealed=True)) == {
        "s20261204/f0-1": (True, "the season is sealed"),
        "s20261204/f1-1": (False, "sealed, but not yet all in its place"),
    }
    assert len([path for path in paths(store) if path.startswith("staging/")]) == len(season.files)


def test_what_a_committed_seal_may_need_stays(store: Store) -> None:
    """I8: after the last seal another may be committed, and its runner have died before it was put."""
    packed_draft(attempt="f2-1").publish(store, sealed_at=datetime.now(UTC) - WEEK)
    for attempt in ("f3-1", "f4-1"):
        packed_draft(attempt=attempt).stage(store)
    put_facts(store, "daily", "s20261204", *encode_facts("excluded", EXCLUDED, "cheaters.csv"))
    name = encode_facts("excluded", EXCLUDED, "")[0].name
    found = told(verdicts(store, WEEK, LATER))
    assert {name: removed for name, (removed, _) in found.items()} == {
        "s20261204/f2-1": True,
        "s20261204/f3-1": True,
        "s20261204/f4-1": False,
        f"s20261204/{name}": False,
    }
    assert "an attempt since its last seal" in found[f"s20261204/{name}"][1]
    assert all(removed for removed, _ in told(verdicts(store, WEEK, LATER, unsealed=True)).values())


def test_facts_that_no_seal_names_go(store: Store) -> None:
    """Facts of a dead attempt are removed once they are old; those of seals, and what is no file of facts, never."""
    season = packed_draft(attempt="f1-1")
    season.publish(store)
    named, data = encode_facts("excluded", EXCLUDED, "cheaters.csv")
    put_facts(store, "daily", "s20261204", named, data)
    with_grants(store, season, "0" * 64, (named,), sealed_at=LATER)
    dead, other = encode_facts("excluded", EXCLUDED.slice(1), "cheaters.csv")
    put_facts(store, "daily", "s20261204", dead, other)
    folder = "facts/board=daily/season=s20261204"
    kept = [
        f"{folder}/notes.txt",
        f"{folder}/deeper/{dead.name}",
        f"{folder}/excluded-0123456789abcdeg.parquet",
        f"facts/board=daily/season=epoch/{dead.name}",
        f"facts/{dead.name}",
    ]
    for path in kept:
        store.put_new(path, b"mine")
    before = paths(store)
    assert told(verdicts(store, WEEK, datetime.now(UTC)))[f"s20261204/{dead.name}"] == (False, "too young")
    found = told(sweep_abandoned(store, WEEK, LATER))
    assert found[f"s20261204/{dead.name}"] == (True, "the season is sealed")
    assert f"s20261204/{named.name}" not in found
    gone = {path for path in before - paths(store) if not path.startswith("staging/")}
    assert gone == {f"{folder}/{dead.name}"}


def test_a_seal_that_cannot_be_read_stops_the_sweep() -> None:
    """It might name an attempt."""
    store = open_store("memory://", {})
    packed_draft().stage(store)
    store.put_new("seals/daily/s20261204/standings.json", b"{")
    with pytest.raises(ArchiveMismatchError, match="not every seal"):
        sweep_abandoned(store, WEEK, LATER, unsealed=True)
    assert len(list(store.list("staging"))) == 3


def test_empty_folders_go_too(tmp_path: Path) -> None:
    """A folder store is left without the folders that held the attempts."""
    store = FolderStore(tmp_path)
    packed_draft().stage(store)
    sweep_abandoned(store, WEEK, LATER, unsealed=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".incoming"]


@pytest.mark.parametrize("letter", "nud")
def test_i8_a_sweep_that_fails_is_done_by_the_next(tmp_path: Path, letter: str) -> None:
    """I8: whichever removal fails, a second sweep ends with the same store."""
    for call in range(2, 5):
        folder = FolderStore(tmp_path / str(call))
        packed_draft().stage(folder)
        faulty = FaultyStore(folder, "." * call + letter)
        with pytest.raises(Exception, match="scripted"):
            sweep_abandoned(faulty, WEEK, LATER, unsealed=True)
        sweep_abandoned(folder, WEEK, LATER, unsealed=True)
        assert paths(folder) == set()
