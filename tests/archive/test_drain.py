"""Pages come out as redis-py would read them, whatever the protocol, the members and the scores, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archive.columns import decode_reply
from archive.digest import StandingDigest
from archive.drain import DrainError, pages
from archive.once import proof_factory
from archive.proof import DisturbedError, ProofConnection
from tests.archive.boards import (
    KEY,
    ODD_MEMBERS,
    ODD_SCORES,
    connector,
    drained,
    fill,
    members,
    plain_rows,
    rows_of,
    scores,
)


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as made:
        yield made


def bits(rows: list[tuple[bytes, float]]) -> list[tuple[bytes, bytes]]:
    return [(member, np.float64(score).tobytes()) for member, score in rows]


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("decode_responses", [True, False])
@pytest.mark.parametrize("protocol", [2, 3, None])
def test_c07_c10_every_protocol_gives_the_same_rows(
    client: redis.Redis, redis_url: str, protocol: int | None, decode_responses: bool, descending: bool
) -> None:
    """C07, C10, C04: protocol and decoding of the client change nothing; bytes stay bytes, scores bit for bit."""
    client.zadd(KEY, dict(zip(ODD_MEMBERS, ODD_SCORES, strict=False)))
    options: dict[str, Any] = {"decode_responses": decode_responses} | ({"protocol": protocol} if protocol else {})
    with redis.Redis.from_url(redis_url, **options) as other, connector(other)() as proof:
        proof.watch(KEY)
        found = drained(proof, descending=descending, page_rows=3)
        proof.exec()
    assert bits(found) == bits(plain_rows(client, descending=descending))
    assert len(found) == len(ODD_SCORES)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    board=st.dictionaries(members, scores, max_size=30),
    page_rows=st.integers(1, 12),
    protocol=st.sampled_from([2, 3]),
    descending=st.booleans(),
)
def test_c04_c08_any_board_comes_out_as_redis_py_reads_it(
    client: redis.Redis, board: dict[bytes, float], page_rows: int, protocol: int, descending: bool
) -> None:
    """C04, C08: any members and scores, in Redis's own order among ties, bit for bit, in pages of any size."""
    client.unlink(KEY)
    if board:
        client.zadd(KEY, board)
    kwargs = {**client.connection_pool.connection_kwargs, "protocol": protocol}
    pool = redis.ConnectionPool(connection_class=client.connection_pool.connection_class, **kwargs)
    with redis.Redis(connection_pool=pool) as other, connector(other)() as proof:
        proof.watch(KEY)
        found = drained(proof, descending=descending, page_rows=page_rows)
        proof.exec()
    pool.close()
    assert bits(found) == bits(plain_rows(client, descending=descending))


def test_c08_ties_stand_in_the_order_of_their_bytes(client: redis.Redis) -> None:
    """C08: equal scores are ordered by bytes, descending with REV: not by number, not by locale."""
    client.zadd(KEY, dict.fromkeys([b"", b"P1", b"p10", b"p100", b"p9", b"\xff"], 5))
    with connector(client)() as proof:
        proof.watch(KEY)
        assert [member for member, _ in drained(proof, page_rows=2)] == [b"\xff", b"p9", b"p100", b"p10", b"P1", b""]


@pytest.mark.parametrize("page_rows", [1, 7, 25, 100])
def test_i3_rows_and_digest_do_not_depend_on_the_page_size(client: redis.Redis, page_rows: int) -> None:
    """I3: the standing and its digest are the board's, not the paging's."""
    fill(client)
    with connector(client)() as proof:
        proof.watch(KEY)
        digests = []
        for rows in (10, page_rows):
            digest = StandingDigest()
            for page in pages(proof, KEY, descending=True, page_rows=rows):
                digest.update(page.members, page.scores)
            digests.append((digest.rows, digest.hexdigest()))
    assert digests[0] == digests[1]
    assert digests[0][0] == 25


def test_c12_pages_are_bounded(client: redis.Redis) -> None:
    """C12: no reply is larger than the page that was asked for, and no other command than ZRANGE reads rows."""
    fill(client)
    client.config_resetstat()
    with connector(client)() as proof:
        proof.watch(KEY)
        sizes = [len(page) for page in pages(proof, KEY, descending=True, page_rows=10)]
    assert sizes == [10, 10, 5]
    assert client.info("commandstats")["cmdstat_zrange"]["calls"] == 3


def test_an_empty_or_missing_key_has_no_page(client: redis.Redis) -> None:
    """A missing key gives no row; Redis has no empty sorted set."""
    with connector(client)() as proof:
        proof.watch(KEY)
        assert drained(proof) == []
        proof.exec()


@pytest.mark.parametrize("page", [0, 1])
def test_i3_a_write_that_shifts_the_pages_is_a_disturbance(client: redis.Redis, page: int) -> None:
    """I3: pages that do not fit because somebody wrote are told as that, not as a broken server."""
    fill(client, rows=50)
    with connector(client)() as proof:
        proof.watch(KEY)
        read = pages(proof, KEY, descending=True, page_rows=10)
        for _ in range(page + 1):
            next(read)
        client.zremrangebyrank(KEY, 0, 40)
        with pytest.raises(DisturbedError):
            list(read)


def test_i3_a_key_that_becomes_a_string_is_a_disturbance(client: redis.Redis) -> None:
    """I3: a board replaced by another type while it is read is a disturbance."""
    fill(client, rows=50)
    with connector(client)() as proof:
        proof.watch(KEY)
        read = pages(proof, KEY, descending=True, page_rows=10)
        next(read)
        client.set(KEY, "text")
        with pytest.raises(DisturbedError):
            list(read)


class Altered(ProofConnection):
    """A proof connection over a network that changes the second page."""

    def __init__(self, client: redis.Redis, alter: Any) -> None:
        super().__init__(proof_factory(client))
        self._alter, self._pages = alter, 0

    def page(self, rows: int) -> Any:
        page = super().page(rows)
        self._pages += 1
        pairs: list[Any] = [list(row) for row in rows_of([page])]
        return self._alter(pairs) if self._pages == 2 else page


@pytest.mark.parametrize(
    "alter",
    [
        lambda reply: reply[:-1],
        lambda reply: [*reply, reply[-1]],
        lambda reply: [reply[1], reply[0], *reply[2:]],
        lambda reply: [reply[0], *reply[:-1]],
        lambda reply: [[b"zz", 99.0], *reply[1:]],
        lambda reply: [[reply[0][0]], *reply[1:]],
        lambda reply: None,
        lambda reply: [[b"x", b"no number"], *reply[1:]],
    ],
    ids=["short", "long", "swapped", "repeated", "border", "half a row", "nothing", "no score"],
)
def test_a_page_that_does_not_fit_stops_the_drain(redis_url: str, alter: Any) -> None:
    """A page with other rows, another order or a wrong border is refused, with its place, though nobody wrote."""
    with redis.Redis.from_url(redis_url, protocol=3) as client:
        fill(client, rows=30)
        with Altered(client, alter) as proof:
            proof.watch(KEY)
            with pytest.raises(DrainError, match="position 11"):
                drained(proof)


def test_an_odd_flat_reply_is_no_page() -> None:
    """A flat reply in which a score is missing is refused."""
    with pytest.raises(ValueError, match="2 members came with 1 scores"):
        decode_reply([b"a", b"1", b"b"])


def test_c05_scores_are_doubles_never_whole_numbers() -> None:
    """C05: exponents, fractions and infinities are read as the doubles they are, in both protocols."""
    texts = [b"1e+17", b"1.5", b"inf", b"3.2999999999999998"]
    flat = rows_of([decode_reply([part for text in texts for part in (b"m", text)])])
    pairs = rows_of([decode_reply([[b"m", float(text)] for text in texts])])
    assert flat == pairs == [(b"m", 1e17), (b"m", 1.5), (b"m", float("inf")), (b"m", 3.3)]
