"""Pages read from a connection: the same whatever pieces the bytes come in, by columns or by hiredis."""

from __future__ import annotations

import socket
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis
from redis.connection import Connection

from archive import once
from archive.columns import Page, decode_reply
from archive.drain import pages
from archive.parser import ColumnParser
from archive.proof import ProofConnection
from archive.refusals import WrongTypeError
from leaderboard.errors import UnavailableError
from tests.archive.boards import KEY, connector, fill
from tests.archive.replies import Row, content, rendered

PROTOCOLS = pytest.mark.parametrize("protocol", [2, 3])
PLAIN: list[list[Row]] = [[(b"bb", b"2.5"), (b"a", b"1e+17")], [(b"", b"-0"), (b"$5", b"inf"), (b"x" * 11, b"7")]]
BROKEN: list[list[Row]] = [[(b"b\r\n$1", b"2"), (b"\n\n\n\n\n\n", b"1")], [(b"*2\r\n", b"1"), (b"c", b"0")]]


class Piecewise(ColumnParser):
    """A parser to which the next piece of the stream comes only when it looks for more."""

    def __init__(self, socket_read_size: int, far: socket.socket, pieces: list[bytes]) -> None:
        super().__init__(socket_read_size)
        self.far, self.pieces, self.columns = far, pieces, 0

    def can_read(self, timeout: float = 0) -> bool:
        self._deliver()
        return super().can_read(timeout)

    def _receive(self) -> None:
        if not super().can_read(0):
            self._deliver()
        super()._receive()

    def read_from_socket(self, *given: Any, **named: Any) -> Any:
        self._deliver()
        return super().read_from_socket(*given, **named)

    def take_page(self, rows: int) -> Page | None:
        page = super().take_page(rows)
        self.columns += page is not None
        return page

    def _deliver(self) -> None:
        if self.pieces:
            self.far.sendall(self.pieces.pop(0))


class Piped(Connection):
    """A connection over one end of a pair of sockets, without a handshake."""

    def __init__(self, near: socket.socket, **options: Any) -> None:
        super().__init__(**options, redis_connect_func=lambda made: made._parser.on_connect(made))
        self._near = near

    def _connect(self) -> socket.socket:
        self._near.settimeout(self.socket_timeout)
        return self._near


@contextmanager
def stream(pieces: list[bytes], protocol: int, timeout: float = 10) -> Iterator[tuple[ProofConnection, Piecewise]]:
    """Yield a connection from which ``pieces`` can be read, and its parser."""
    near, far = socket.socketpair()
    with near, far:
        parsers: list[Piecewise] = []

        def parser(socket_read_size: int) -> Piecewise:
            parsers.append(Piecewise(socket_read_size, far, list(pieces)))
            return parsers[-1]

        made = once._once(Piped)
        with ProofConnection(
            lambda: made(near=near, protocol=protocol, parser_class=parser, socket_timeout=timeout)  # type: ignore[call-arg]  # made at run time
        ) as proof:
            yield proof, parsers[-1]


def taken(proof: ProofConnection, rows: int) -> Page:
    """Return the next page as the drain takes it, with a command sent in between."""
    proof.send("ZRANGE")
    proof.receive_page(rows)
    found = proof.page(rows)
    return found if isinstance(found, Page) else decode_reply(found)


def expected(rows: list[Row]) -> tuple[list[bytes], bytes]:
    return content(decode_reply([part for row in rows for part in row]))


@PROTOCOLS
@pytest.mark.parametrize(("streamed", "by_columns"), [(PLAIN, 2), (BROKEN, 0)], ids=["plain", "line breaks in members"])
def test_pages_are_the_same_wherever_the_stream_is_split(protocol, streamed, by_columns):
    """At every position: what came before a split is kept, and what hiredis must read it reads from its beginning."""
    whole = [rendered(page, protocol) for page in streamed]
    for split in range(1, len(whole[0])):
        pieces = [whole[0][:split], whole[0][split:], *whole[1:]]
        with stream(pieces, protocol) as (proof, parser):
            assert [content(taken(proof, len(page))) for page in streamed] == [expected(page) for page in streamed]
            assert parser.columns == by_columns


@PROTOCOLS
def test_pages_come_byte_by_byte(protocol):
    """A stream of single bytes gives the same pages, by columns."""
    pieces = [bytes([byte]) for page in PLAIN for byte in rendered(page, protocol)]
    with stream(pieces, protocol) as (proof, parser):
        assert [content(taken(proof, len(page))) for page in PLAIN] == [expected(page) for page in PLAIN]
        assert parser.columns == 2


@PROTOCOLS
def test_a_page_larger_than_the_buffer(protocol):
    """A reply of 3 MB in pieces of 64 KB comes by columns, and so does the page after it."""
    sent = [[(b"%07d" % number + b"x" * 30_000, b"1") for number in range(100)], PLAIN[0]]
    large, small = (rendered(page, protocol) for page in sent)
    with stream([*(large[at : at + 65_536] for at in range(0, len(large), 65_536)), small], protocol) as (
        proof,
        parser,
    ):
        assert [content(taken(proof, len(page))) for page in sent] == [expected(page) for page in sent]
        assert parser.columns == 2


def test_connections_that_wait_take_no_memory():
    """256 shards have 256 connections, all open before the first page: redis-py's own 64 KB each, and no more."""
    tracemalloc.start()
    try:
        made = [ColumnParser(65_536) for _ in range(256)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(made) == 256
    assert held < 20 * 2**20


@PROTOCOLS
def test_a_buffer_follows_the_pages(protocol):
    """What one long page needed is given back when short ones come, and everything once there is no more."""
    sent = [[(b"%03d" % number + b"x" * 30_000, b"1") for number in range(100)], PLAIN[0], PLAIN[1]]
    large = rendered(sent[0], protocol)
    pieces = [large[at : at + 65_536] for at in range(0, len(large), 65_536)]
    with stream([*pieces, *(rendered(page, protocol) for page in sent[1:])], protocol) as (proof, parser):
        sizes = []
        for page in sent:
            taken(proof, len(page))
            sizes.append(len(parser._page))
        assert sizes[0] >= 3_000_000
        assert max(sizes[1:]) <= 65_536
        proof.rest()
        assert len(parser._page) == 0


@pytest.mark.parametrize("rows", [0, 9, 50])
def test_a_drain_gives_its_buffer_back(redis_url, rows):
    """Whoever has read a key to its end keeps nothing but the connection, and can read it again."""
    with redis.Redis.from_url(redis_url) as client:
        if rows:
            fill(client, rows=rows)
        with connector(client)() as proof:
            proof.watch(KEY)
            for _ in range(2):
                assert sum(len(page) for page in pages(proof, KEY, descending=True, page_rows=10)) == rows
                assert len(proof._connection.columns._page) == 0
            proof.exec()


@PROTOCOLS
def test_two_replies_in_one_piece(protocol):
    """A reply that comes together with the one before is kept for its turn, and comes by columns too."""
    whole = b"".join(rendered(page, protocol) for page in [*PLAIN, PLAIN[0]])
    with stream([whole], protocol) as (proof, parser):
        for page in [*PLAIN, PLAIN[0]]:
            assert content(taken(proof, len(page))) == expected(page)
        assert parser.columns == 3


@PROTOCOLS
def test_what_is_held_of_the_next_reply_goes_to_hiredis_too(protocol):
    """When a page turns out to be hiredis's, the bytes behind it are not lost, whatever they are."""
    whole = b"".join(rendered(page, protocol) for page in [BROKEN[0], PLAIN[0], PLAIN[1]])
    with stream([whole[:-3], whole[-3:]], protocol) as (proof, parser):
        for page in [BROKEN[0], *PLAIN]:
            assert content(taken(proof, len(page))) == expected(page)
        assert parser.columns == 0


@pytest.mark.parametrize("at", ["before", "behind", "alone"])
def test_pushes_between_pages_are_no_pages(at):
    """RESP3: a push before, behind or between two pages changes none of them."""
    push = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$4\r\nboar\r\n"
    first, second = (rendered(page, 3) for page in PLAIN)
    pieces = {"before": [push + first, second], "behind": [first + push, second], "alone": [first, push, second]}[at]
    with stream(pieces, 3) as (proof, _):
        assert [content(taken(proof, len(page))) for page in PLAIN] == [expected(page) for page in PLAIN]


@PROTOCOLS
def test_an_error_in_place_of_a_page_is_told_and_the_next_reply_is_read(protocol):
    """An error reply is what hiredis makes of it; the connection goes on."""
    pieces = [b"-WRONGTYPE Operation against a key\r\n", rendered(PLAIN[0], protocol)]
    with stream(pieces, protocol) as (proof, _):
        with pytest.raises(WrongTypeError):
            taken(proof, 2)
        assert content(taken(proof, 2)) == expected(PLAIN[0])


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        (b"*2\r\n$-1\r\n$1\r\n5\r\n", [None, b"5"]),
        (b"*1\r\n$1\r\n5\r\n", [b"5"]),
        (b"*0\r\n", []),
        (b"$-1\r\n", None),
        (b":12\r\n", 12),
        (b"+OK\r\n", b"OK"),
        (b"*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n", [b"a", b"1", b"b", b"2"]),
    ],
)
def test_replies_of_another_shape_are_as_hiredis_reads_them(reply, result):
    """Nulls (fewer lines than a page has), other counts and other types come at once, not after a timeout."""
    with stream([reply], 2, timeout=60) as (proof, parser):
        proof.send("ZRANGE")
        proof.receive_page(1)
        assert proof.page(1) == result
        assert parser.columns == 0


@PROTOCOLS
@pytest.mark.parametrize("cut", [1, 9, -1])
def test_half_a_page_and_then_nothing_is_unavailable_and_closed(protocol, cut):
    """A reply that stops is given up after the timeout, and its connection is never read again."""
    with stream([rendered(PLAIN[0], protocol)[:cut]], protocol, timeout=0.1) as (proof, _):
        with pytest.raises(UnavailableError, match="did not answer"):
            taken(proof, 2)
        with pytest.raises(UnavailableError, match="never opened again"):
            proof.command("PING")


@PROTOCOLS
def test_half_a_page_and_then_the_end_is_unavailable(protocol):
    """A server that goes away in the middle of a page is told as that."""
    with stream([rendered(PLAIN[0], protocol)[:9]], protocol) as (proof, parser):
        parser._deliver()
        parser.far.shutdown(socket.SHUT_RDWR)
        with pytest.raises(UnavailableError, match="did not answer"):
            taken(proof, 2)


@pytest.mark.parametrize("step", [ProofConnection.receive_page, ProofConnection.page])
def test_a_cancelled_read_discards_the_connection(monkeypatch, redis_url, step: Callable[..., Any]):
    """A read that is broken off, by Ctrl-C for instance, leaves half a reply: the connection is closed."""

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with redis.Redis.from_url(redis_url) as client:
        fill(client)
        with connector(client)() as proof:
            proof.watch(KEY)
            proof.send("ZRANGE", KEY, 0, 4, "WITHSCORES")
            monkeypatch.setattr(ColumnParser, "take_page", interrupted)
            if step is ProofConnection.receive_page:
                monkeypatch.setattr(ColumnParser, "_receive", interrupted)
            with pytest.raises(KeyboardInterrupt):
                proof.receive_page(5)
                proof.page(5)
            with pytest.raises(UnavailableError, match="never opened again"):
                proof.command("PING")


def test_a_server_that_stalls_in_the_middle_of_a_drain_is_unavailable(redis_url):
    """A timeout in the middle of the pages discards the connection."""
    with redis.Redis.from_url(redis_url) as client, redis.Redis.from_url(redis_url, socket_timeout=0.2) as hasty:
        fill(client, rows=50)
        with connector(hasty)() as proof:
            proof.watch(KEY)
            read = pages(proof, KEY, descending=True, page_rows=10)
            next(read)
            next(read)
            client.client_pause(2_000, all=True)
            with pytest.raises(UnavailableError, match="did not answer"):
                list(read)
            with pytest.raises(UnavailableError, match="never opened again"):
                proof.command("PING")
