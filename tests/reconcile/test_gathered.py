"""Drift of a whole board, gathered chunk by chunk: told as drift that is listed in memory, which it does not fill."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random

from reconcile.compare import Rule
from reconcile.drift import Drift, Listed, Row
from reconcile.gathered import gathering


def chunks(seed: int) -> Iterator[list[Drift]]:
    """Make drift in no order; some players are met again, with other numbers."""
    chance = Random(seed)
    for _ in range(7):
        names = [b"p%03d" % chance.randrange(300) for _ in range(chance.randrange(60))]
        yield [
            chance.choice(
                [
                    Drift("only_redis", name, chance.randrange(50), None, None, None),
                    Drift("points_differ", name, chance.randrange(50), chance.randrange(50), 7, 8),
                    Drift("no_score", name, None, 4, None, 8, (Row("key", "inf"),)),
                ]
            )
            for name in dict.fromkeys(names)
        ]


def test_what_is_gathered_is_told_as_what_is_listed() -> None:
    """The same players in the same order, the same hash, the same first ones, the same counts; each as met last."""
    for seed in range(20):
        listed = Listed(list({one.player_id: one for chunk in chunks(seed) for one in chunk}.values()))
        with gathering(Rule()) as found:
            for chunk in chunks(seed):
                found.add(chunk)
            assert list(found.every()) == list(listed.every())
            assert found.difference("cup/one") == listed.difference("cup/one")
            assert found.rows(10) == listed.rows(10) and found.rows(0) == []
            assert found.kinds() == listed.kinds()
            assert list(found.players()) == list(listed.players())


def test_the_hash_of_a_difference_is_the_one_it_always_was() -> None:
    """An acceptance and the name of a report outlive a new version: hashes of two differences, written down."""
    time = 1_767_268_800_000_000
    drift = [
        Drift("only_ledger", None, None, 3, None, time),
        Drift("only_ledger", b"ann", None, 5, None, time),
        Drift("only_redis", b"bob", -7, None, None, None),
        Drift("points_differ", b"cid", 9, 4, time, time),
        Drift("no_score", b"dan", None, 6, None, None, (Row("key:1", "inf"),)),
        Drift("several_shards", b"eve", 8, 6, None, None, (Row("key:1", "8.0"), Row("key:2", "6.0"))),
        Drift("reached_at_differs", b"fay", 1, 1, time, time + 1),
    ]
    whole, without_rows = Listed(drift).difference("cup/one"), Listed(drift[:4]).difference("cup/one")
    assert whole == "25ed9fa0bbf6ceb97a8f1879a7021d393429dc4b9b202becb7be0190f8921708"
    assert without_rows == "e4301662860837e92e6d6ab02edc21fb12f848bc21a5ded42a2e36adbe77fae0"


def test_nothing_gathered_is_no_drift() -> None:
    """A board without drift has no player, no class, and the hash of nothing."""
    with gathering(Rule()) as found:
        found.add([])
        assert not list(found.batches()) and not found.kinds() and found.rows(5) == []
        assert found.difference("cup/one") == Listed([]).difference("cup/one")


def test_drift_of_a_whole_board_is_not_held_in_memory(tmp_path: Path) -> None:
    """200,000 drifting players, found 5,000 at a time, hashed and read: few of them are objects at once."""
    tracemalloc.start()
    try:
        with gathering(Rule(folder=tmp_path, memory="50MB")) as found:
            for start in range(0, 200_000, 5_000):
                found.add([Drift("only_ledger", b"%09d" % n, None, n, None, n) for n in range(start, start + 5_000)])
            found.difference("cup/one")
            assert found.kinds() == {"only_ledger": 200_000}
            assert sum(1 for _ in found.players()) == 200_000
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 20_000_000
