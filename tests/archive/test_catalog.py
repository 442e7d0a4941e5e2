"""Listing what is sealed, what is in its place, and what holds together as a chain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from archive.catalog import places, read_catalog, season_catalog, unpublished
from archive.chain import chain_faults
from archive.publish import publish
from archive.seal import Chain, build, sha256
from archive.sealed_grants import GrantFacts
from archive.store import FolderStore, Store, open_store
from leaderboard.errors import ArchiveMismatchError, UnknownNameError
from tests.archive.sealed import Draft, packed_draft, with_grants

FIRST = Chain(1, None)


def sealed(store: Store, season: Draft, chain: Chain = FIRST) -> str:
    """Seal and publish ``season`` as this link of its board's chain; return the seal's hash."""
    season.stage(store)
    seal = season.seal(chain=chain)
    data = build(seal)
    store.put_new(seal.path, data)
    publish(store, seal)
    return sha256(data)


@pytest.fixture
def memory() -> Store:
    return open_store("memory://", {})


def test_lists_every_seal_by_board_and_number(store: Store) -> None:
    """Seals of all boards, with rows, bytes and hash; other files below seals/ are passed over."""
    first = sealed(store, packed_draft("s20261204"))
    sealed(store, packed_draft("s20261203", rows=3), Chain(2, first))
    season = packed_draft(name="arena")
    grants = with_grants(store, season, sealed(store, season))
    for path in ("seals/notes.txt", "seals/daily/s20261204/notes.json", "seals/Daily/s1/standings.json"):
        store.put_new(path, b"{}")
    found = read_catalog(store)
    assert [(one.seal.board_name, one.seal.bounds.id, one.seal.kind) for one in found.seals] == [
        ("arena", "s20261204", "standings"),
        ("arena", "s20261204", "grants"),
        ("daily", "s20261204", "standings"),
        ("daily", "s20261203", "standings"),
    ]
    assert found.faults == ()
    daily = found.seals[2]
    assert daily.sha256 == first == sha256(store.get(daily.seal.path))
    assert daily.size == sum(stored.size for stored in store.list(daily.seal.place))
    assert found.seals[1].seal.facts == grants.facts
    assert [one.seal.board_name for one in read_catalog(store, "daily").seals] == ["daily", "daily"]
    assert [one.seal.kind for one in season_catalog(store, "arena", "s20261204").seals] == ["standings", "grants"]
    assert daily.to_json()["bytes"] == daily.size


def test_an_empty_store_has_no_seals(store: Store) -> None:
    assert read_catalog(store).seals == ()
    with pytest.raises(UnknownNameError, match="nothing of board 'daily' is sealed"):
        read_catalog(store, "daily")
    with pytest.raises(UnknownNameError, match="daily/s2026 is not sealed"):
        season_catalog(store, "daily", "s2026")


def test_a_broken_seal_is_named_and_hides_no_other(memory: Store) -> None:
    """What is no seal, or another season's, is told with its path; the others are listed all the same."""
    sealed(memory, packed_draft())
    memory.put_new("seals/daily/s20261203/standings.json", memory.get("seals/daily/s20261204/standings.json"))
    memory.put_new("seals/daily/s20261202/standings.json", b"{")
    found = read_catalog(memory)
    assert len(found.seals) == 1
    with pytest.raises(
        ArchiveMismatchError, match=r"s20261202/standings\.json: .*not JSON.*s20261203.* holds the seal of"
    ):
        found.check()


def test_a_season_that_is_still_being_copied_is_told(tmp_path: Path) -> None:
    """A part that is missing, or of another size, makes the season unpublished, and no other."""
    store = FolderStore(tmp_path)
    season = packed_draft()
    with_grants(store, season, sealed(store, season))
    sealed(store, packed_draft("s20261203"))
    seals = read_catalog(store).seals
    assert unpublished(store, seals) == {}
    (tmp_path / "standings/board=daily/season=s20261204/part-00001.parquet").unlink()
    (tmp_path / "standings/board=daily/season=s20261203/part-00002.parquet").write_bytes(b"")
    place = "standings/board=daily/season="
    assert unpublished(store, seals) == {
        "seals/daily/s20261204/standings.json": f"{place}s20261204 has not part-00001.parquet as sealed",
        "seals/daily/s20261203/standings.json": f"{place}s20261203 has not part-00002.parquet as sealed",
    }
    (damaged,) = places(store, seals).damaged  # no copying leaves that
    assert (damaged.file, damaged.found) == (f"{place}s20261203/part-00002.parquet", 0)


class TestChain:
    @pytest.fixture
    def links(self, memory: Store) -> Store:
        """Three seasons of one board as links 1, 2 and 3, and another board."""
        before = None
        for number, season in enumerate(("s20261202", "s20261203", "s20261204"), 1):
            before = sealed(memory, packed_draft(season), Chain(number, before))
        sealed(memory, packed_draft(name="arena"))
        return memory

    def test_holds(self, links: Store) -> None:
        assert chain_faults(read_catalog(links).seals) == []
        assert chain_faults(()) == []

    def test_a_seal_taken_out_is_missed(self, links: Store) -> None:
        """From the middle and from the front; at the end nothing can be seen, as is documented."""
        seals = read_catalog(links, "daily").seals
        assert chain_faults((seals[0], seals[2])) == [
            "seals/daily/s20261204/standings.json has number 3 in the chain, "
            "after seals/daily/s20261202/standings.json comes 2"
        ]
        assert chain_faults(seals[1:]) == [
            "daily: the chain begins with number 2 (seals/daily/s20261203/standings.json)"
        ]
        assert chain_faults(seals[:2]) == []

    def test_a_seal_changed_afterwards_is_found(self, links: Store) -> None:
        """Another valid seal in the place of one breaks the link of the next."""
        path = "seals/daily/s20261203/standings.json"
        links.delete(path)
        links.put_new(path, build(packed_draft("s20261203", rows=9).seal(chain=Chain(2, "0" * 64))))
        faults = chain_faults(read_catalog(links).seals)
        assert [fault.partition(":")[0] for fault in faults] == [
            "seals/daily/s20261203/standings.json does not follow seals/daily/s20261202/standings.json",
            "seals/daily/s20261204/standings.json does not follow seals/daily/s20261203/standings.json",
        ]

    def test_grants_belong_to_their_standings(self, memory: Store) -> None:
        """Grants that name another seal of standings than their season's are told."""
        season = packed_draft()
        good = with_grants(memory, season, sealed(memory, season))
        standings, grants = read_catalog(memory).seals
        linked = replace(grants, seal=replace(good, chain=Chain(2, standings.sha256)))
        assert chain_faults((standings, linked)) == []
        assert isinstance(good.facts, GrantFacts)
        other = replace(linked.seal, facts=replace(good.facts, standings_seal="0" * 64))
        assert chain_faults((standings, replace(linked, seal=other))) == [
            "seals/daily/s20261204/grants.json was computed from other standings than are sealed"
        ]
