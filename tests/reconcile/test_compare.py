"""The comparison finds exactly the drift that was planted, adds up to both sides, and keeps whole numbers whole."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderboard.errors import UnavailableError
from reconcile.compare import RepeatedPlayersError, Rule, Unit, compare, compared
from reconcile.drift import CLASSES, rows_of
from tests.reconcile.sides import EPOCH, MINUTE, Planted, Side, batches, planted, reader, season

PLAYERS = 3_000
TIMED = Rule(Unit(EPOCH, MINUTE))


def found(sides: Planted, rule: Rule = TIMED) -> tuple[dict[bytes, str], dict[str, int]]:
    """Return the class of every drifting player, and the counts."""
    with compared(batches(sides.redis), reader(sides.ledger), rule) as result:
        rows = list(rows_of(result.batches()))
        assert [row.player_id for row in rows] == sorted(row.player_id for row in rows if row.player_id is not None)
        counts = result.counts
    assert counts.players_in_redis == len(sides.redis)
    assert counts.players_in_ledger == len(sides.ledger)
    assert counts.redis_points == sum(points or 0 for points, _ in sides.redis.values())
    assert counts.ledger_points == sum(points or 0 for points, _ in sides.ledger.values())
    for row in rows:
        assert row.player_id is not None
        assert (row.redis_points, row.redis_reached_at) == sides.redis.get(row.player_id, (None, None))
        assert (row.ledger_points, row.ledger_reached_at) == sides.ledger.get(row.player_id, (None, None))
    return {row.player_id: row.kind for row in rows if row.player_id}, {name: getattr(counts, name) for name in CLASSES}


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("share", ["one", "1 %", "all"])
def test_c84_every_class_of_drift_is_found_and_no_more(kind: str, share: str) -> None:
    """C84: one player, one in a hundred, or all: exactly the planted ones, in their class, adding up to both sides."""
    sides = planted(PLAYERS)
    count = {"one": 1, "1 %": PLAYERS // 100, "all": PLAYERS}[share]
    sides.plant(kind, random.Random(share).sample(sorted(sides.ledger), count))
    drift, counts = found(sides)
    assert drift == sides.expected
    assert counts == {name: count if name == kind else 0 for name in CLASSES}


def test_all_classes_at_once() -> None:
    sides = planted(PLAYERS)
    chosen = random.Random(7).sample(sorted(sides.ledger), 40)
    for number, kind in enumerate(CLASSES):
        sides.plant(kind, chosen[number * 10 : number * 10 + 10])
    drift, counts = found(sides)
    assert drift == sides.expected
    assert set(counts.values()) == {10}


def test_no_drift_is_none() -> None:
    assert found(planted(PLAYERS)) == ({}, dict.fromkeys(CLASSES, 0))
    assert found(planted(0)) == ({}, dict.fromkeys(CLASSES, 0))


def test_two_players_swapped_have_equal_sums_and_still_drift() -> None:
    """Counts and sums of both sides agree, and the two players are named."""
    sides = planted(PLAYERS)
    sides.ledger[b"ann"], sides.ledger[b"bob"] = (100, EPOCH), (200, EPOCH)
    sides.redis[b"ann"], sides.redis[b"bob"] = (200, EPOCH), (100, EPOCH)
    drift, counts = found(sides)
    assert drift == {b"ann": "points_differ", b"bob": "points_differ"}
    assert counts["points_differ"] == 2


def test_a_lost_part_of_the_players_is_missing_whole() -> None:
    """Every player of one part in eight, as when one shard of the board is lost."""
    sides = planted(PLAYERS)
    lost = [name for name in sorted(sides.ledger) if int(name[-7:]) % 8 == 3]
    sides.plant("only_ledger", lost)
    drift, _ = found(sides)
    assert drift == dict.fromkeys(lost, "only_ledger")


def test_c86_times_are_compared_at_the_codecs_unit() -> None:
    """C86: the ledger's microseconds are floored to the unit from the season's start, before it too; no phantoms."""
    times = {b"a": EPOCH + MINUTE - 1, b"b": EPOCH + MINUTE, b"c": EPOCH - 1, b"d": EPOCH - MINUTE, b"e": EPOCH}
    floored = {b"a": EPOCH, b"b": EPOCH + MINUTE, b"c": EPOCH - MINUTE, b"d": EPOCH - MINUTE, b"e": EPOCH}
    ledger: Side = {name: (1, at) for name, at in times.items()}
    redis: Side = {name: (1, at) for name, at in floored.items()}
    assert compare(batches(redis), reader(ledger), TIMED).equal == 5
    redis[b"a"] = (1, EPOCH + MINUTE)
    assert compare(batches(redis), reader(ledger), TIMED).reached_at_differs == 1


def test_on_plain_boards_times_do_not_count() -> None:
    """Redis does not know when points were reached; a standing without a time is equal to a total with one."""
    ledger = season(50)
    redis: Side = {name: (points, None) for name, (points, _) in ledger.items()}
    assert compare(batches(redis), reader(ledger), Rule()).drift == 0
    assert compare(batches(redis), reader(ledger), TIMED).reached_at_differs == 50


def test_c86_nothing_is_tolerated_unless_declared() -> None:
    """C86: one point is drift; with a tolerance of 2, differences of up to 2 are counted apart, and 3 is drift."""
    sides = planted(100)
    for number, name in enumerate(sorted(sides.ledger)[:4]):
        points, at = sides.ledger[name]
        assert points is not None
        sides.redis[name] = (points + number, at)
    exact = compare(batches(sides.redis), reader(sides.ledger), TIMED)
    assert (exact.points_differ, exact.tolerated, exact.equal) == (3, 0, 97)
    lenient = compare(batches(sides.redis), reader(sides.ledger), Rule(TIMED.unit, tolerance=2))
    assert (lenient.points_differ, lenient.tolerated, lenient.equal) == (1, 2, 97)


def test_c84_null_is_not_a_missing_row() -> None:
    """C84: a value that is NULL on both sides is equal, on one it differs; neither is a missing row."""
    ledger: Side = {b"both": (None, None), b"one": (None, EPOCH), b"there": (1, EPOCH)}
    redis: Side = {b"both": (None, None), b"one": (3, EPOCH)}
    counts = compare(batches(redis), reader(ledger), TIMED)
    assert (counts.equal, counts.points_differ, counts.only_ledger, counts.only_redis) == (1, 1, 1, 0)


def test_c84_rows_without_an_id_are_counted() -> None:
    """C84: a NULL id matches nothing, not even another NULL; it is drift, and the classes still add up."""
    rows = [(b"ann", 1, EPOCH), (None, 2, EPOCH), (None, 3, EPOCH)]
    counts = compare(batches({b"ann": (1, EPOCH)}), reader(rows), TIMED)
    assert (counts.equal, counts.only_ledger, counts.only_redis, counts.null_ids) == (1, 2, 0, 2)
    assert counts.ledger_points == 6


def test_c01_c72_whole_numbers_at_the_ceiling_and_their_sums() -> None:
    """C01, C72: neighbours next to 2^53 stay apart, and sums beyond 64 bits are exact."""
    top = 2**53 - 1
    ledger: Side = {b"%d" % number: (top - number % 2, EPOCH) for number in range(2_000)}
    redis = dict(ledger)
    redis[b"7"] = (top, EPOCH)
    counts = compare(batches(redis), reader(ledger), TIMED)
    assert (counts.points_differ, counts.equal) == (1, 1_999)
    assert counts.ledger_points == 2_000 * top - 1_000 > 2**63
    assert counts.redis_points == counts.ledger_points + 1


def test_ids_are_bytes_and_nothing_else() -> None:
    """C08, C10, C86: case, accents, trailing blanks and bytes that are no text tell players apart."""
    names = [b"ann", b"Ann", b"ann ", b"\xff\x00", b"", "é".encode(), "e\u0301".encode(), b"1", b"01", b"1.0"]
    ledger: Side = dict.fromkeys(names, (5, EPOCH))
    assert compare(batches(ledger), reader(ledger), TIMED).equal == len(names)
    for name in names:
        counts = compare(batches({**ledger, name: (6, EPOCH)}), reader(ledger), TIMED)
        assert [drift.player_id for drift in counts.examples] == [name]


@pytest.mark.parametrize("points", [5, 6])
def test_a_player_who_stands_twice_is_an_error(points: int) -> None:
    """Whether the second row is the same or another: the two sides would not add up."""
    rows = [(b"ann", 5, EPOCH), (b"ann", points, EPOCH), (b"bob", 1, EPOCH)]
    redis: Side = {b"ann": (5, EPOCH), b"bob": (1, EPOCH)}
    with pytest.raises(RepeatedPlayersError, match="more than once"):
        compare(batches(redis), reader(rows), TIMED)


def test_the_hash_of_a_difference_is_the_differences_alone() -> None:
    """Not of order, batches, or players who agree; another player, class, number, time or season gives another."""

    def hashed(sides: Planted, name: str = "cup/one", rows: int = 700) -> str:
        with compared(batches(sides.redis, rows), reader(sides.ledger), TIMED) as result:
            return result.difference(name)

    def made(kind: str = "points_differ", count: int = 30, players: int = PLAYERS) -> Planted:
        sides = planted(players)
        sides.plant(kind, sorted(sides.ledger)[:count])
        return sides

    first = hashed(made())
    assert hashed(made(), rows=13) == first
    more = made()
    more.ledger[b"zoe"] = more.redis[b"zoe"] = (1, EPOCH)
    assert hashed(more) == first
    other = made()
    name = sorted(other.ledger)[0]
    points, at = other.redis[name]
    assert points is not None and at is not None
    other.redis[name] = (points + 1, at)
    later = made()
    later.redis[name] = (points, at + MINUTE)
    different = [hashed(made(count=29)), hashed(made(kind="only_ledger")), hashed(other), hashed(later)]
    assert len({first, hashed(made(), "cup/two"), *different}) == 6


def test_a_join_larger_than_its_memory_spills_and_finds_the_same(tmp_path: Path) -> None:
    """With 40 MB for 200,000 players of long ids, the rest goes to the folder, which is empty again afterwards."""
    ledger: Side = {b"player %0200d" % number: (number, EPOCH) for number in range(200_000)}
    redis = dict(ledger)
    for number in range(0, 200_000, 1_000):
        redis[b"player %0200d" % number] = (number + 1, EPOCH)
    rule = Rule(TIMED.unit, folder=tmp_path, memory="40MB")
    with compared(batches(redis, 10_000), batches(ledger, 10_000), rule) as result:
        assert result.counts.points_differ == 200
        assert len(list(result.players())) == 200
    assert list(tmp_path.rglob("*")) == []
    with pytest.raises(UnavailableError, match="not enough room"):
        compare(batches(redis, 10_000), batches(ledger, 10_000), Rule(TIMED.unit, memory="40MB"))


small = st.dictionaries(
    st.binary(min_size=0, max_size=2),
    st.tuples(st.integers(-3, 3), st.integers(-3, 3).map(lambda n: EPOCH + n)),
    max_size=12,
)


@settings(max_examples=50, deadline=None)
@given(redis=small, ledger=small)
def test_against_plain_python(redis: Side, ledger: Side) -> None:
    """Any two small sides: the same players in the same classes as a loop over both finds."""
    expected = {}
    for name in redis.keys() | ledger.keys():
        if name not in ledger:
            expected[name] = "only_redis"
        elif name not in redis:
            expected[name] = "only_ledger"
        elif redis[name][0] != ledger[name][0]:
            expected[name] = "points_differ"
        elif redis[name][1] != ledger[name][1]:
            expected[name] = "reached_at_differs"
    with compared(batches(redis), reader(ledger), Rule(Unit(EPOCH, 1))) as result:
        assert {row.player_id: row.kind for row in rows_of(result.batches())} == expected
        assert result.counts.equal == len(redis.keys() & ledger.keys()) - sum(
            kind in ("points_differ", "reached_at_differs") for kind in expected.values()
        )
