"""Batches reach the board once and in order, whatever is lost, late, repeated or taken over (I6, I9)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import ConnectionPool, Redis, UnixDomainSocketConnection
from redis import TimeoutError as RedisTimeout
from redis.backoff import NoBackoff
from redis.retry import Retry

from jobs.embedded.redis_server import RedisServer
from leaderboard.errors import FinaleError, InputError, UnavailableError
from leaderboard.keys import helper_key
from leaderboard.marks import Mark
from live.apply import apply, claim, withdraw, written
from live.errors import FencedError, LostWritesError, RolledBackError, UnclaimedError
from tests.live.boards import KEY, connected, content, write
from tests.support.servers import ServerFactory, running

APPLIED = helper_key(KEY, "applied")


def numbers_of(marks: list[Mark]) -> list[int]:
    return [mark.number for mark in marks]


def batch(client: Redis, number: int, scores: dict[bytes, float], fence: int = 1, bucket: int = 0) -> None:
    """Apply scores as this batch, with no claim before it."""
    members, values = list(scores), list(scores.values())
    apply(client, KEY, bucket=bucket, fence=fence, number=number, members=members, scores=values, removed=[])


def test_claims_and_batches(any_client: Redis) -> None:
    """A claim tells the running number of each bucket, and each batch counts one on."""
    assert numbers_of(claim(any_client, KEY, 3, 7)) == [0]
    batch(any_client, 1, {b"a": 1, b"b": 2}, fence=7, bucket=3)
    apply(any_client, KEY, bucket=3, fence=7, number=2, members=[b"c"], scores=[3], removed=[b"a", b"unknown"])
    batch(any_client, 3, {}, fence=7, bucket=3)
    assert numbers_of(claim(any_client, KEY, [2, 3], [1, 8])) == [0, 3]
    assert numbers_of(claim(any_client, KEY, [2, 3], 8)) == [0, 3]
    assert any_client.zcard(KEY) == 2


def test_i9_a_claim_that_came_too_late_is_withdrawn(any_client: Redis) -> None:
    """I9: of a season that was cleaned meanwhile, nothing comes back; another's claim, or one in use, stays."""
    claim(any_client, KEY, [1, 2, 3], [5, 5, 6])
    batch(any_client, 1, {b"a": 1}, fence=5, bucket=2)
    for bucket in (1, 2, 3):
        withdraw(any_client, KEY, bucket, 5)
        withdraw(any_client, KEY, bucket, 5)
    assert sorted(any_client.hkeys(APPLIED)) in ([b"f2", b"f3", b"n2", b"t2"], ["f2", "f3", "n2", "t2"])
    any_client.delete(APPLIED)
    claim(any_client, KEY, 1, 5)
    withdraw(any_client, KEY, 1, 5)
    assert not any_client.exists(APPLIED)


def test_content_is_absolute_and_exact(client: Redis) -> None:
    """The last score of a member stands, bit for bit, in any bytes."""
    write(client, {b"\0": 1, b"a\r\nb": 2**53 - 1, b"": 0.1 + 0.2, b"x" * 65_536: -0.0})
    write(client, {b"\0": -(2**53 - 1)}, [b""])
    assert content(client) == [(b"\0", -(2**53 - 1)), (b"x" * 65_536, 0.0), (b"a\r\nb", 2**53 - 1)]


def test_a_big_batch_is_one_call(client: Redis) -> None:
    """5,000 members written and 5,001 taken out, past what Lua can unpack at once."""
    write(client, {f"old{at}".encode(): at for at in range(5_001)})
    write(client, {f"new{at}".encode(): at for at in range(5_000)}, [f"old{at}".encode() for at in range(5_001)])
    assert content(client) == [(f"new{at}".encode(), at) for at in range(5_000)]
    assert numbers_of(claim(client, KEY, 0, 1)) == [2]


def test_the_last_removal_leaves_no_key(client: Redis) -> None:
    """A board whose every player was voided is an empty board."""
    write(client, {b"a": 1})
    write(client, {}, [b"a"])
    assert client.exists(KEY) == 0


def test_i9_a_late_older_write_after_a_take_over_is_refused(client: Redis) -> None:
    """I9: A claims, B takes over and applies, A's batch arrives late: refused, and the board is B's."""
    claim(client, KEY, 0, 1)
    claim(client, KEY, 0, 2)
    batch(client, 1, {b"p": 20}, fence=2)
    for number in (1, 2):
        with pytest.raises(FencedError, match=r"bucket 0 is held by another applier.*its fence is 2, this one's 1"):
            batch(client, number, {b"p": 10}, fence=1)
    assert content(client) == [(b"p", 20)]


def test_i9_a_take_over_is_felt_before_the_first_batch(client: Redis) -> None:
    """I9: the claim alone shuts the former holder out, of this bucket and no other."""
    claim(client, KEY, [0, 1], 1)
    claim(client, KEY, 1, 2)
    with pytest.raises(FencedError):
        batch(client, 1, {b"p": 1}, bucket=1)
    batch(client, 1, {b"q": 1}, bucket=0)
    assert content(client) == [(b"q", 1)]


def test_an_old_claim_is_refused_whole(client: Redis) -> None:
    """A claim with a lower fence for one bucket of several changes none of them."""
    claim(client, KEY, 1, 5)
    with pytest.raises(FencedError, match=r"bucket 1 .*fence is 5, this one's 4"):
        claim(client, KEY, [0, 1], 4)
    assert client.hgetall(APPLIED) == {b"f1": b"5"}


def test_numbers_out_of_order_are_refused(client: Redis) -> None:
    """A batch that is not the next one changes nothing, and the error carries the stored number."""
    write(client, {b"p": 1})
    for number in (0, 1, 3):
        with pytest.raises(RolledBackError, match="bucket 0 stands at batch 1") as caught:
            batch(client, number, {b"p": 99})
        assert caught.value.stored == 1
    assert content(client) == [(b"p", 1)]


def test_c19_lost_writes_are_noticed(client: Redis) -> None:
    """C19: a server that went back a batch, as a failover does, refuses the next one."""
    write(client, {b"p": 1})
    before = {key: client.dump(key) for key in (KEY, APPLIED)}
    write(client, {b"p": 2})
    for key, dump in before.items():
        client.restore(key, 0, dump, replace=True)
    with pytest.raises(RolledBackError) as caught:
        batch(client, 3, {b"p": 3})
    assert caught.value.stored == 1
    assert content(client) == [(b"p", 1)]


def test_a_cleaned_board_is_not_resurrected(client: Redis) -> None:
    """I1: once the live key and its helpers are gone, a late batch brings nothing back."""
    write(client, {b"p": 1})
    client.unlink(KEY, APPLIED)
    with pytest.raises(UnclaimedError, match="does not know the claim on bucket 0 under fence 1"):
        batch(client, 2, {b"p": 2})
    assert client.keys() == []


def test_a_claim_lost_in_a_failover_is_claimed_again(client: Redis) -> None:
    """A lower fence than ours means that the server lost our claim, not that somebody took over."""
    claim(client, KEY, 0, 4)
    before = client.dump(APPLIED)
    claim(client, KEY, 0, 5)
    client.restore(APPLIED, 0, before, replace=True)
    with pytest.raises(UnclaimedError, match="it has fence 4"):
        batch(client, 1, {b"p": 1}, fence=5)
    claim(client, KEY, 0, 5)
    batch(client, 1, {b"p": 1}, fence=5)


def test_a_server_that_restarts_empty_knows_no_claim(server_factory: ServerFactory) -> None:
    """C19: a server killed without an append-only file forgets all: it says so, and batches are refused."""
    with running(server_factory.redis("--appendonly", "no")) as server, connected(server.url) as client:
        write(client, {b"p": 1})
        server.kill()
        server.start()
        assert written(client, KEY, [0]) == [Mark()]
        with pytest.raises(UnclaimedError, match="it has none"):
            batch(client, 2, {b"p": 2})
        assert client.keys() == []


def test_what_was_applied_outlives_a_kill(redis_server: RedisServer) -> None:
    """Scores and their number are written together: after a crash either both are there or neither."""
    with connected(redis_server.url) as client:
        write(client, {b"p": 1})
        redis_server.kill()
        redis_server.start()
        assert content(client) == [(b"p", 1)]
        assert numbers_of(claim(client, KEY, 0, 1)) == [1]


def test_each_batch_has_a_token_of_its_own(any_client: Redis) -> None:
    """What apply returns is what a claim, and a look without one, tell afterwards; no two tokens are alike."""
    claim(any_client, KEY, 3, 1)
    kept = [
        apply(any_client, KEY, bucket=3, fence=1, number=at, members=[b"a"], scores=[at], removed=[]) for at in (1, 2)
    ]
    assert [mark.number for mark in kept] == [1, 2]
    assert len({mark.token for mark in kept}) == 2
    assert written(any_client, KEY, [2, 3]) == [Mark(), kept[1]]
    assert claim(any_client, KEY, [2, 3], 2) == [Mark(), kept[1]]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_no_number_changes_nothing(client: Redis, score: float) -> None:
    """Nothing of a batch with a bad score is written, and its number is still free."""
    claim(client, KEY, 0, 1)
    with pytest.raises(InputError, match="not a finite number"):
        batch(client, 1, {b"a": 1, b"b": score})
    assert content(client) == []
    batch(client, 1, {b"a": 1})


def test_a_live_key_of_another_type_changes_nothing(client: Redis) -> None:
    """A batch on a key that is a list is an error that names it, and does not count as applied."""
    client.rpush(KEY, "x")
    claim(client, KEY, 0, 1)
    with pytest.raises(InputError, match=f"'{KEY}' is a list, not a zset"):
        batch(client, 1, {b"a": 1})
    client.delete(KEY)
    batch(client, 1, {b"a": 1})


class LosesAnAnswer(UnixDomainSocketConnection):
    """A connection on which the first script runs and its answer never comes."""

    armed = False

    def send_command(self, *args: Any, **kwargs: Any) -> None:
        self.is_script = args[0] in ("EVAL", "EVALSHA")
        super().send_command(*args, **kwargs)

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        reply = super().read_response(*args, **kwargs)
        if LosesAnAnswer.armed and self.is_script:
            LosesAnAnswer.armed = False
            self.disconnect()
            raise RedisTimeout("Timeout reading from socket")
        return reply


@pytest.fixture
def losing(redis_url: str) -> Any:
    """Return a function that makes a client which repeats a command so many times after a lost answer."""
    path = redis_url.removeprefix("unix://")
    return lambda retries: Redis(
        connection_pool=ConnectionPool(LosesAnAnswer, path=path, retry=Retry(NoBackoff(), retries))
    )


def test_c21_a_client_that_repeats_a_lost_call_is_answered(losing: Any) -> None:
    """C21: the same call sent twice by the driver itself counts once and succeeds."""
    with losing(1) as client:
        claim(client, KEY, 0, 1)
        batch(client, 1, {b"p": 1})
        LosesAnAnswer.armed = True
        batch(client, 2, {b"p": 2})
        assert not LosesAnAnswer.armed
        assert numbers_of(claim(client, KEY, 0, 1)) == [2]
        assert content(client) == [(b"p", 2)]


def test_a_lost_answer_is_settled_by_claiming_again(losing: Any) -> None:
    """Without the driver's repeats the outcome is unknown, and a claim tells it; another batch 2 is refused."""
    with losing(0) as client:
        claim(client, KEY, 0, 1)
        batch(client, 1, {b"p": 1})
        LosesAnAnswer.armed = True
        with pytest.raises(UnavailableError, match="did not answer"):
            batch(client, 2, {b"p": 2})
        with pytest.raises(RolledBackError) as caught:
            batch(client, 2, {b"p": 3})
        assert caught.value.stored == 2
        assert numbers_of(claim(client, KEY, 0, 1)) == [2]


STEPS = st.lists(
    st.tuples(st.sampled_from(["claim", "apply", "late", "lose", "clean"]), st.integers(0, 2), st.integers(0, 1)),
    min_size=4,
    max_size=25,
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_i6_i9_any_interleaving_leaves_what_the_accepted_batches_say(redis_url: str, steps: Any) -> None:
    """I6, I9: with three appliers on two buckets, late copies, rollbacks and cleaning, only the rule decides.

    The rule: a batch counts if its fence is the bucket's and its number the next; the board is what counted.
    """
    with connected(redis_url) as client:
        client.flushall()
        fences: dict[int, int] = {}
        numbers: dict[int, int] = {}
        board: dict[bytes, float] = {}
        saved: tuple[Any, ...] = ({}, {}, {}, {})
        held: dict[tuple[int, int], tuple[int, int]] = {}  # applier, bucket: its fence and the number it knows
        sent: list[tuple[int, int, int, float]] = []
        for turn, (what, applier, bucket) in enumerate(steps, 1):
            mine = applier, bucket
            if what == "claim":
                saved = fences.copy(), numbers.copy(), board.copy(), {key: client.dump(key) for key in (KEY, APPLIED)}
                fences[bucket] = turn
                held[mine] = turn, numbers.get(bucket, 0)
                assert claim(client, KEY, bucket, turn)[0].number == numbers.get(bucket, 0)
            elif what == "clean":
                client.unlink(KEY, APPLIED)
                fences, numbers, board = {}, {}, {}
            elif what == "lose":
                fences, numbers, board = saved[0].copy(), saved[1].copy(), saved[2].copy()
                client.unlink(KEY, APPLIED)
                for key, dump in saved[3].items():
                    if dump:
                        client.restore(key, 0, dump)
            elif (what == "apply" and mine in held) or (what == "late" and sent):
                if what == "apply":
                    fence, known = held[mine]
                    held[mine] = fence, known + 1
                    sent.append((bucket, fence, known + 1, turn))
                call = sent[-1] if what == "apply" else sent[applier % len(sent)]
                to, fence, number, score = call
                counts = fences.get(to) == fence and numbers.get(to, 0) == number - 1
                write_it = partial(batch, client, number, {f"p{to}".encode(): score}, fence, to)
                if counts:
                    write_it()
                    numbers[to] = number
                    board[f"p{to}".encode()] = score
                else:
                    with pytest.raises((FencedError, LostWritesError)) as caught:
                        write_it()
                    assert isinstance(caught.value, FinaleError)
            assert dict(content(client)) == board
