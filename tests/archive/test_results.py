"""Seals of match results that were pruned: found side by side, and what is none of them told by its file."""

from __future__ import annotations

import threading

from archive.results import ResultsSeal, every
from archive.store import Store, open_store
from tests.archive.sealed import SEALED_AT
from tests.support.counting_store import CountingStore


def seal(season: str, board: str = "cup") -> ResultsSeal:
    return ResultsSeal(board, season, "s", 0, (), "0" * 64, "0.1.0", SEALED_AT)


class Together(CountingStore):
    """A store that gives nothing before two ask at once."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._barrier = threading.Barrier(2)

    def get(self, path: str) -> bytes:
        self._barrier.wait(20)
        return super().get(path)


def test_several_are_asked_for_at_once() -> None:
    """A bucket answers each request late: none waits for the one before."""
    store = open_store("memory://", {})
    sealed = [seal(season) for season in ("one", "three", "two", "zwei")]
    for one in sealed:
        store.put_new(one.path, one.to_bytes())
    assert every(Together(store)) == (sealed, [])


def test_what_is_no_seal_of_results_or_another_is_told() -> None:
    """One broken, one of another season; those beside them are found, and of one season or board only its own."""
    store = open_store("memory://", {})
    for one in (seal("one"), seal("one", "league")):
        store.put_new(one.path, one.to_bytes())
    store.put_new("seals/cup/three/results.json", b"{")
    store.put_new("seals/cup/two/results.json", seal("one").to_bytes())
    seals, faults = every(store)
    assert seals == [seal("one"), seal("one", "league")]
    assert [(fault.file, fault.expected, fault.found) for fault in faults] == [
        ("seals/cup/three/results.json", "a seal of results", None),
        ("seals/cup/two/results.json", "seals/cup/two/results.json", "seals/cup/one/results.json"),
    ]
    assert "holds the seal of the results of cup/one" in str(faults[1])
    assert every(store, "league") == ([seal("one", "league")], [])
    assert every(store, "cup", "one") == ([seal("one")], [])
