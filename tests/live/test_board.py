"""The live board's answers: order, ranks, neighbours, exact scores, every client and every kind of member."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from math import copysign
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

import live.board as live_module
from leaderboard.errors import InputError
from leaderboard.standing import Standing
from live.errors import WrongTypeError
from tests.live.boards import KEY, Total, board, brute_force, connected, content, live, write

TIES: tuple[Any, ...] = ("shared", "member", "first_to_reach")
MEMBERS = st.one_of(
    st.binary(max_size=3), st.sampled_from([b"", b"P1", b"p10", b"p100", b"p9", b"\xff", b"\0", b"a\r\nb", b"$-1\r\n"])
)


def told(rows: Sequence[Standing]) -> list[tuple[Any, ...]]:
    return [(row.position, row.rank, row.player_id, row.points, row.reached_at) for row in rows]


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("order", ["high", "low"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_c08_c75_answers_equal_a_brute_force(redis_url: str, order: str, ties: str, data: st.DataObject) -> None:
    """C08, C75: after any batches of writes and removals, top, player and around are what sorting everything gives."""
    of = board(order=order, ties=ties)
    points = st.integers(0 if of.packed else -3, 4)
    batches = data.draw(st.lists(st.dictionaries(MEMBERS, st.builds(Total, points, st.integers(0, 2))), max_size=3))
    totals: dict[bytes, Total] = {}
    with connected(redis_url) as client:
        client.flushall()
        for batch in batches:
            removed = data.draw(st.sets(st.sampled_from(sorted(totals)))) - set(batch) if totals else set()
            write(client, {player: total.score(of) for player, total in batch.items()}, removed)
            totals = {player: total for player, total in (totals | batch).items() if player not in removed}
        expected = brute_force(of, totals)
        reader = live(client, order=order, ties=ties)
        assert reader.count() == len(totals)
        assert reader.exists() is bool(totals)
        for k in (0, 1, 3, len(totals), len(totals) + 2):
            assert told(reader.top(k)) == expected[:k]
        for at, row in enumerate(expected):
            found = reader.player(row[2])
            assert found is not None
            assert told([found]) == [row]
            rank = reader.rank(row[2])
            assert rank is not None
            assert (rank.rank, rank.players, rank.error) == (row[1], len(totals), 0)
            assert reader.percentile(row[2]) == 100 * row[1] / len(totals)
            assert reader.score(row[2]) == rank.score == totals[row[2]].score(of)
            assert told(reader.page(at, 2)) == expected[at : at + 2]
            for n in (0, 1, 3):
                assert told(reader.around(row[2], n)) == expected[max(0, at - n) : at + n + 1]


def test_equal_scores_share_a_rank_and_the_next_rank_is_left_out(client: Redis) -> None:
    """Ranks are 1, 1, 3, also in a window that begins among the equal ones."""
    write(client, {b"a": 5, b"b": 5, b"c": 4, b"d": 4, b"e": 1})
    reader = live(client, ties="shared")
    assert [(row.player_id, row.rank) for row in reader.top(5)] == [
        (b"b", 1),
        (b"a", 1),
        (b"d", 3),
        (b"c", 3),
        (b"e", 5),
    ]
    assert [(row.position, row.rank) for row in reader.around(b"e", 1)] == [(4, 3), (5, 5)]


def test_c05_c07_c10_every_client_gives_the_same_answers(any_client: Redis) -> None:
    """C05, C07, C10: protocol 2, 3 and the default, decoding or not, read bytes, whole points and the same ranks."""
    write(any_client, {b"\xff": 10**15, b"a\r\nb": 10**15, b"\0": 0.0, b"": -7})
    reader = live(any_client, ties="shared", member="binary")
    expected = [
        (1, 1, b"\xff", 10**15, None),
        (2, 1, b"a\r\nb", 10**15, None),
        (3, 3, b"\0", 0, None),
        (4, 4, b"", -7, None),
    ]
    assert told(reader.top(10)) == expected
    assert told(reader.around(b"\0", 1)) == expected[1:]
    assert (reader.count(), reader.exists()) == (4, True)
    assert all(type(row.points) is int and type(row.score) is float for row in reader.top(10))


def test_scores_are_exact_up_to_the_ceiling(any_client: Redis) -> None:
    """C01: 2^53-1 and its neighbour stay apart, written and read; so do fractions."""
    write(any_client, {b"most": 2**53 - 1, b"next": 2**53 - 2, b"least": -(2**53 - 1)})
    assert [row.points for row in live(any_client, ties="shared").top(3)] == [2**53 - 1, 2**53 - 2, -(2**53 - 1)]
    write(any_client, {b"most": 0.1 + 0.2, b"next": 0.3, b"least": 5e-324})
    fractions = live(any_client, ties="shared", points="fraction", ledger="none").top(3)
    assert [(row.rank, row.points) for row in fractions] == [(1, 0.1 + 0.2), (2, 0.3), (3, 5e-324)]


@pytest.mark.parametrize("length", [1, 100])
def test_minus_zero_is_zero(client: Redis, length: int) -> None:
    """-0 and 0 share a rank and read as 0, written by Finale or by somebody else, in both of Redis's encodings."""
    a, b, c = (letter * length for letter in (b"a", b"b", b"c"))
    write(client, {a: -0.0, b: 0.0})
    assert [copysign(1, score) for _, score in content(client)] == [1.0, 1.0]
    client.zadd(KEY, {c: -0.0})
    rows = live(client, ties="shared", points="fraction", ledger="none").top(3)
    assert [(row.rank, row.points, copysign(1, row.points), copysign(1, row.score)) for row in rows] == [
        (1, 0, 1, 1)
    ] * 3


def test_earlier_at_equal_points_stands_first(client: Redis) -> None:
    """The time of reaching decides at the board's unit, and is told floored to it."""
    of = board(ties={"by": "first_to_reach", "unit": "minute"})
    reader = live(client, ties={"by": "first_to_reach", "unit": "minute"})
    write(client, {b"late": Total(14, 7200).score(of), b"early": Total(14, 3599).score(of)})
    assert told(reader.top(2)) == [
        (1, 1, b"early", 14, datetime(2026, 1, 1, 0, 59, tzinfo=UTC)),
        (2, 2, b"late", 14, datetime(2026, 1, 1, 2, 0, tzinfo=UTC)),
    ]


def test_a_board_without_a_key_is_empty(any_client: Redis) -> None:
    """A missing key is an empty board; so is an unknown player's neighbourhood."""
    reader = live(any_client)
    assert (reader.top(5), reader.player(b"x"), reader.around(b"x", 2)) == ([], None, [])
    assert (reader.rank(b"x"), reader.percentile(b"x"), reader.score(b"x"), reader.page(7, 2)) == (None, None, None, [])
    assert (reader.count(), reader.exists()) == (0, False)


def test_an_unknown_player_is_not_on_the_board(client: Redis) -> None:
    """A player without a score has no row and no neighbours, though the board has some."""
    write(client, {b"a": 0})
    reader = live(client, ties="shared")
    assert (reader.player(b"b"), reader.around(b"b", 3)) == (None, [])
    assert reader.player(b"a") == Standing(1, 1, b"a", 0, None, 0.0)


def test_a_long_top_is_read_in_pages(client: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks go on across the border between pages, also where it falls among equal scores."""
    monkeypatch.setattr(live_module, "PAGE", 4)
    write(client, {f"p{at}".encode(): at // 3 for at in range(13)})
    rows = live(client, ties="shared").top(100)
    assert [row.position for row in rows] == list(range(1, 14))
    assert [row.rank for row in rows] == [1, *[2] * 3, *[5] * 3, *[8] * 3, *[11] * 3]
    assert len(live(client, ties="shared").top(8)) == 8


def test_a_window_is_one_version_of_the_set(redis_url: str, client: Redis) -> None:
    """While a player jumps from end to end, nobody ever sees him twice, or the neighbours out of order."""
    write(client, {f"p{at}".encode(): at for at in range(20)})
    done = threading.Event()

    def jump() -> None:
        with connected(redis_url) as writer:
            while not done.is_set():
                writer.zadd(KEY, {b"jumper": 100})
                writer.zadd(KEY, {b"jumper": -100})

    thread = threading.Thread(target=jump)
    thread.start()
    try:
        reader = live(client, ties="shared")
        for _ in range(300):
            rows = reader.around(b"p10", 3)
            ids = [row.player_id for row in rows]
            assert ids == [f"p{at}".encode() for at in range(13, 6, -1)]
            assert rows[0].position in (7, 8)
            assert [row.rank for row in rows] == [row.position for row in rows]
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("call", ["top", "page", "player", "rank", "score", "around", "count", "exists"])
def test_a_key_of_another_type_is_named(any_client: Redis, call: str) -> None:
    """A key that is not a sorted set is an error that names it and what it is."""
    any_client.set(KEY, "x")
    arguments = {"top": (1,), "page": (0, 1), "around": (b"a", 1)}.get(call, ())
    if call in ("player", "rank", "score"):
        arguments = (b"a",)
    with pytest.raises(WrongTypeError, match=f"'{KEY}' is a string, not a zset"):
        getattr(live(any_client), call)(*arguments)


@pytest.mark.parametrize("score", [1.5, 2.0**53, float("inf"), float("-inf")])
def test_c05_a_score_that_the_board_cannot_have_is_named(client: Redis, score: float) -> None:
    """C01, C05: nothing is rounded or truncated; the error says whose score it is."""
    client.zadd(KEY, {b"fine": 3, b"odd": score})
    with pytest.raises(InputError, match=rf"{KEY}, player b'odd': .*{abs(score)}"):
        live(client, ties="shared").top(2)


def test_unreasonable_sizes_are_refused(client: Redis) -> None:
    """A negative count, or a neighbourhood that would hold the server up, is an error."""
    reader = live(client)
    for wrong in (
        lambda: reader.top(-1),
        lambda: reader.page(-1, 1),
        lambda: reader.around(b"a", -1),
        lambda: reader.around(b"a", 10**6),
    ):
        with pytest.raises(InputError):
            wrong()


def test_json_of_a_standing() -> None:
    """Text as it is, binary as hex, a time with Z, and wrong UTF-8 shown and kept."""
    reached = datetime(2026, 1, 1, 2, 3, tzinfo=UTC)
    row = Standing(1, 1, "Zoë".encode(), 3, reached, 3.0)
    expected = {"position": 1, "rank": 1, "player_id": "Zoë", "points": 3, "reached_at": "2026-01-01T02:03:00Z"}
    assert row.to_json() == expected
    assert list(row.to_json()) == list(expected)
    assert row.to_json(binary=True)["player_id"] == "5a6fc3ab"
    broken = Standing(1, 1, b"a\xff\0", 3, None, 3.0).to_json()
    assert (broken["player_id"], broken["player_id_hex"], broken["reached_at"]) == ("a\\xff\0", "61ff00", None)
    json.dumps(broken, ensure_ascii=False).encode()
