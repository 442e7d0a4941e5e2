"""Appending to a stream: each entry once, also when the answer of an earlier try was lost."""

from __future__ import annotations

import pytest
from redis import Redis

from live.errors import WrongTypeError
from live.stream import START, Stream


def entries(*names: str) -> list[dict[str, bytes | str]]:
    return [{"grant_id": name, "player_id": b"\xff\r\n" + name.encode(), "amount": "-5"} for name in names]


def ids(client: Redis, key: str = "grants") -> list[str]:
    return [entry[b"grant_id"].decode() for _, entry in client.xrange(key)]


@pytest.fixture
def client(redis_url: str) -> Redis:
    return Redis.from_url(redis_url)


def test_entries_are_appended_with_their_bytes(client: Redis) -> None:
    """Every field as it was given, ids of players that are not text too."""
    stream = Stream(client, "grants")
    assert stream.end() == START
    assert stream.append(entries("a", "b"), START) == 2
    assert client.xrange("grants")[1][1] == {b"grant_id": b"b", b"player_id": b"\xff\r\nb", b"amount": b"-5"}
    assert stream.end() == client.xrange("grants")[1][0].decode()


def test_i5_a_repeated_append_adds_what_is_missing_only(client: Redis) -> None:
    """I5: after a lost answer the same batch, or another with some of it, adds no entry twice."""
    stream = Stream(client, "grants")
    stream.append(entries("other"), START)
    mark = stream.end()
    assert stream.append(entries("a", "b"), mark) == 2
    assert stream.append(entries("a", "b"), mark) == 0
    assert stream.append(entries("b", "c"), mark) == 1
    assert ids(client) == ["other", "a", "b", "c"]


def test_i5_also_when_thousands_were_appended_in_between(client: Redis) -> None:
    """I5: a try that comes back after a long time looks through all that came since, in pages."""
    stream = Stream(client, "grants")
    mark = stream.end()
    stream.append(entries("a", "b"), mark)
    for start in range(0, 3_000, 500):
        stream.append(entries(*(f"n{number}" for number in range(start, start + 500))), stream.end())
    assert stream.append(entries("b", "c"), mark) == 1
    assert ids(client).count("b") == 1 and len(ids(client)) == 3_003


def test_i9_a_late_try_adds_nothing(client: Redis) -> None:
    """I9: a deliverer slept between looking and appending, another has appended meanwhile: the script looks again."""
    slow, quick = Stream(client, "grants"), Stream(client, "grants")
    mark = slow.end()
    look = Stream._look

    def slept(self: Stream, name: bytes, since: str) -> tuple[set[bytes], str]:
        seen = look(self, name, since)
        if self is slow and not client.exists("grants"):
            for start in range(0, 1_200, 400):
                quick.append(entries(*(f"a{number}" for number in range(start, start + 400))), mark)
        return seen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stream, "_look", slept)
        assert slow.append(entries("a7", "a1199", "z"), mark) == 1
    assert len(ids(client)) == len(set(ids(client))) == 1_201


def test_a_key_of_another_type_is_told(client: Redis) -> None:
    """Nothing is written over what somebody else keeps there."""
    client.set("grants", "mine")
    for call in (Stream(client, "grants").end, lambda: Stream(client, "grants").append(entries("a"), START)):
        with pytest.raises(WrongTypeError, match="is a string, not a stream"):
            call()
