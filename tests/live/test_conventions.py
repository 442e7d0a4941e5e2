"""What the known leaderboard libraries do, and what Finale does: see docs/boards.md where it answers otherwise.

The conventions are those of agoragames/leaderboard and its ports, Nakama's leaderboards and Redis itself.
"""

from __future__ import annotations

import pytest
from redis import Redis

from live.board import Rank
from tests.live.boards import live, write

#: The example that the libraries show: 20 members, of which two share 30 points and two share 10.
SCORES = {b"m%02d" % number: float(points) for number, points in enumerate([50, 40, 30, 30, 10, 10, 0])}


@pytest.mark.parametrize(
    ("ties", "ranks"),
    [("shared", [1, 2, 3, 3, 5, 5, 7]), ("member", [1, 2, 3, 4, 5, 6, 7]), ("first_to_reach", [1, 2, 3, 3, 5, 5, 7])],
)
def test_c74_the_rank_convention_is_the_boards(client: Redis, ties: str, ranks: list[int]) -> None:
    """C74: 1224 ("standard competition") where scores share a rank, 1234 by member; the season stores which.

    1223 ("dense") is not offered: a rank then no longer says how many are better.
    """
    of = live(client, ties=ties)
    factor = 2**24 if ties == "first_to_reach" else 1
    write(client, {member: points * factor for member, points in SCORES.items()})
    assert [row.rank for row in of.top(10)] == ranks
    for row in of.top(10):
        assert of.rank(row.player_id) == Rank(row.rank, 7, row.score)


@pytest.mark.parametrize("order", ["high", "low"])
def test_c75_zero_is_a_score(client: Redis, order: str) -> None:
    """C75: a member with 0 has a rank, the same alone, among neighbours and in the list; nobody else has one."""
    write(client, {b"none": 0, b"some": 5, b"less": -5})
    of = live(client, ties="shared", order=order)
    assert of.rank(b"none") == Rank(2, 3, 0.0)
    assert of.score(b"none") == 0.0
    assert of.percentile(b"none") == pytest.approx(200 / 3)
    (row,) = of.around(b"none", 0)
    assert (row.rank, row.points) == (2, 0)
    assert [one.rank for one in of.top(3) if one.player_id == b"none"] == [2]
    assert (of.rank(b"absent"), of.score(b"absent"), of.percentile(b"absent")) == (None, None, None)
    write(client, {b"only": 0}, [b"none", b"some", b"less"])
    assert of.rank(b"only") == Rank(1, 1, 0.0)


def test_c75_adding_nothing_changes_no_rank(client: Redis) -> None:
    """C75: the same score written again leaves "me" and the list where they were."""
    write(client, {b"a": 3, b"b": 3, b"c": 1})
    of = live(client, ties="shared")
    before = of.top(3), of.rank(b"b")
    write(client, {b"b": 3})
    assert (of.top(3), of.rank(b"b")) == before


def test_pages(client: Redis) -> None:
    """Pages follow one another without gap or repeat; one past the end is empty, the last one short."""
    write(client, {b"p%03d" % number: number // 3 for number in range(60)})
    of = live(client, ties="shared")
    whole = of.top(60)
    assert [row for offset in range(0, 75, 25) for row in of.page(offset, 25)] == whole
    assert (len(of.page(50, 25)), of.page(75, 25), of.page(0, 0)) == (10, [], [])


def test_around_at_either_end_is_cut_off_not_shifted(client: Redis) -> None:
    """Around the first are those behind, no more; agoragames fills the page up instead. Docs say why."""
    write(client, {b"p%02d" % number: number for number in range(20)})
    of = live(client, ties="shared")
    assert [row.position for row in of.around(b"p19", 3)] == [1, 2, 3, 4]
    assert [row.position for row in of.around(b"p00", 3)] == [17, 18, 19, 20]
    assert [row.position for row in of.around(b"p10", 2)] == [8, 9, 10, 11, 12]


def test_removing_closes_the_gap_and_a_change_of_score_moves(client: Redis) -> None:
    """After a removal nobody keeps a rank that is no more; a new score replaces the old, better or worse."""
    write(client, {b"a": 30, b"b": 20, b"c": 10})
    of = live(client, ties="shared")
    write(client, {}, [b"a"])
    assert [(row.player_id, row.rank) for row in of.top(3)] == [(b"b", 1), (b"c", 2)]
    write(client, {b"b": 5})
    assert [(row.player_id, row.rank) for row in of.top(3)] == [(b"c", 1), (b"b", 2)]
    write(client, {}, [b"never there"])
    assert of.count() == 2


def test_the_percentile_is_the_top_percent(client: Redis) -> None:
    """Of 200 the second is among the top 1 percent; the last among the top 100; nobody is among the top 0."""
    write(client, {b"p%03d" % number: number for number in range(200)})
    of = live(client, ties="shared")
    assert [of.percentile(member) for member in (b"p199", b"p198", b"p100", b"p000")] == [0.5, 1.0, 50.0, 100.0]


def test_first_to_reach_stands_first(client: Redis) -> None:
    """Equal points: the earlier time is the better rank, not the id, and not a shared one."""
    of = live(client)
    codec = of.codec
    start = int(of.bounds.starts_at.timestamp()) * 1_000_000
    write(client, {b"a": codec.encode(7, start + 9_000_000), b"z": codec.encode(7, start + 5_000_000)})
    assert [(row.player_id, row.rank) for row in of.top(2)] == [(b"z", 1), (b"a", 2)]
