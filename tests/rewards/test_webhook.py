"""The webhook against real receivers, good and bad: what is signed, and what each answer is taken for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from rewards.delivery import Answer, Batch
from rewards.webhook import Webhook, body_of, signature
from rewards.webhook import _retry_after as retry_after
from tests.support.receivers import SECRET, receiver, reference

PLAYERS = ("ann", "Zoë", "bob")
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def batch(*players: str) -> Batch:
    rows = [
        {
            "grant_id": UUID(int=number),
            "player_id": player.encode(),
            "rule": "top",
            "item": "gems",
            "amount": 2**53 - 1,
            "position": number,
            "rank": 1,
        }
        for number, player in enumerate(players, 1)
    ]
    return Batch("cup", "s1", 0, False, rows)


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client() as opened:
        yield opened


def sent(client: httpx.Client, folder: Path, *script: str, timeout: float = 5) -> tuple[Answer, list[str]]:
    """Return what the webhook makes of the receiver's answer, and the ids that were paid."""
    with receiver(folder, script) as found:
        hook = Webhook(found.url, SECRET.encode(), timedelta(seconds=timeout), client)
        return hook.send(batch(*PLAYERS)), found.ids


def test_the_reference_receiver_takes_what_is_signed(client: httpx.Client, tmp_path: Path) -> None:
    """Every grant accepted by its id, and paid; the same batch again is accepted and pays nothing."""
    with receiver(tmp_path) as found:
        hook = Webhook(found.url, SECRET.encode(), timedelta(seconds=5), client)
        answers = [hook.send(batch(*PLAYERS)) for _ in range(2)]
        assert answers[0] == answers[1] == Answer(frozenset(batch(*PLAYERS).ids))
        assert found.wallet.balance("Zoë", "gems") == 2**53 - 1
        first, second = found.requests
    assert first["headers"]["idempotency-key"] == second["headers"]["idempotency-key"] == batch(*PLAYERS).key
    assert json.loads(first["body"])["grants"][1]["player_id"] == "Zoë"


def test_the_signature_is_over_time_and_body() -> None:
    """What docs/delivery.md describes, checked by the receiver in docs: another byte, secret or time is refused."""
    body = body_of(batch("ann"))
    good = {"finale-timestamp": "1000", "finale-signature": signature(b"key", 1000, body)}
    assert reference.is_genuine(b"key", good, body, 1001)
    assert not reference.is_genuine(b"key", good, body + b" ", 1001)
    assert not reference.is_genuine(b"other", good, body, 1001)
    assert not reference.is_genuine(b"key", {**good, "finale-timestamp": "1001"}, body, 1001)
    assert not reference.is_genuine(b"key", good, body, 1301)
    assert not reference.is_genuine(b"key", {}, body, 1001)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("500", "answered 500"),
        ("404", "answered 404"),
        ("redirect", "redirects are not followed"),
        ("lost", "connection broke"),
        ("garbage", "no JSON"),
        ("nothing", "no JSON"),
        ("list", "no JSON object"),
        ("huge", "longer than"),
    ],
)
def test_bad_answers_acknowledge_nothing(client: httpx.Client, tmp_path: Path, word: str, said: str) -> None:
    """Whatever it is but a 2xx that names ids: nothing is taken for delivered, and nothing is raised."""
    answer, _ = sent(client, tmp_path, word)
    assert said in answer.failure
    assert answer.silent


def test_an_answer_after_the_timeout_is_none(client: httpx.Client, tmp_path: Path) -> None:
    """The receiver has paid; what it says too late is not heard."""
    answer, paid = sent(client, tmp_path, "late", timeout=0.3)
    assert answer.silent and "no answer within 0.3 s" in answer.failure
    assert paid == batch(*PLAYERS).ids


def test_who_says_nothing_of_a_grant_has_not_taken_it(client: httpx.Client, tmp_path: Path) -> None:
    """Only ids that are named are acknowledged."""
    answer, _ = sent(client, tmp_path, "half")
    assert answer.accepted == {batch(*PLAYERS).ids[0]} and not answer.rejected


def test_an_answer_given_twice_is_never_taken_for_another_batch(client: httpx.Client, tmp_path: Path) -> None:
    """The second copy of an answer may meet the next request on the connection: it names ids that were not sent."""
    with receiver(tmp_path, ["twice"]) as found:
        hook = Webhook(found.url, SECRET.encode(), timedelta(seconds=5), client)
        first, other = batch("ann"), Batch("cup", "s1", 0, False, batch("ann", "bob").rows[1:])
        assert hook.send(first).accepted == set(first.ids)
        for _ in range(3):
            answer = hook.send(other)
            assert answer.accepted <= set(other.ids)
        assert answer.accepted == set(other.ids)


def test_nobody_listening(client: httpx.Client) -> None:
    """A refused connection is a failure like any other, told without the URL, which may hold a token."""
    hook = Webhook("http://127.0.0.1:1/s3cr3t-path", b"k" * 16, timedelta(seconds=1), client)
    answer = hook.send(batch("ann"))
    assert answer == Answer(failure="no connection")
    assert "s3cr3t" not in repr(hook) + hook.name and hook.name == "the webhook at 127.0.0.1:1"


def test_retry_after_in_seconds_or_as_a_date(client: httpx.Client, tmp_path: Path) -> None:
    """Both forms of RFC 9110; anything else says nothing."""
    answer, _ = sent(client, tmp_path, "429 7")
    assert answer.failure == "answered 429" and answer.wait == timedelta(seconds=7)
    assert retry_after({"retry-after": "Tue, 01 Dec 2026 00:01:00 GMT"}, NOW) == timedelta(minutes=1)
    assert retry_after({"retry-after": "Tue, 01 Dec 2020 00:01:00 GMT"}, NOW) == timedelta(0)
    assert retry_after({"retry-after": "9" * 5_000}, NOW) == timedelta(days=1)
    for nonsense in (
        "soon",
        "Fri, 31 Dec 99999999999999999999 23:59:59 GMT",
        "Tue, 01 Dec 2026 00:01:00 +99999999999999",
    ):
        assert retry_after({"retry-after": nonsense}, NOW) is None
    assert retry_after({}, NOW) is None
