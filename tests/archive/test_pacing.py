"""Pages keep to a budget of server time, and to bounds of rows and bytes."""

from __future__ import annotations

import itertools
import statistics
from datetime import timedelta
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from archive.columns import Page
from archive.drain import pages
from archive.once import proof_factory
from archive.pacing import PAGE_BUDGET, PAGE_BYTES, PAGE_ROWS, Pacer
from archive.parser import Arrival, ColumnParser
from archive.proof import ProofConnection
from tests.archive.boards import KEY, connector, plain_rows, rows_of

WIDTH = 40  # bytes a row


def drain(pacer: Pacer, cost: Any, pages: int) -> list[int]:
    """Return the sizes of ``pages`` pages whose rows take ``cost`` seconds each, or what ``cost`` says of a page."""
    sizes = []
    for number in range(pages):
        rows = pacer.rows
        sizes.append(rows)
        if pacer.measure:
            pacer.measured(rows, cost(number, rows) if callable(cost) else cost * rows)
        pacer.came(rows, rows * WIDTH)
    return sizes


def test_pages_grow_to_the_budget_and_stay_there():
    """From a small first page, at most doubling, to as many rows as the server makes in 2 ms."""
    sizes = drain(Pacer(PAGE_ROWS, PAGE_BUDGET), 0.4e-6, 10)
    assert sizes == [500, 1000, 2000, 4000, 5000, 5000, 5000, 5000, 5000, 5000]


@pytest.mark.parametrize(("cost", "rows"), [(1e-9, PAGE_ROWS), (1.0, 100), (0.5e-6, 4000), (4e-6, 500)])
def test_pages_keep_to_the_bounds_in_rows(cost, rows):
    """However fast or slow the server, a page has at least 100 rows and at most those of the setting."""
    assert drain(Pacer(PAGE_ROWS, PAGE_BUDGET), cost, 20)[-1] == rows


def test_a_setting_below_the_least_is_kept():
    """``page_rows`` bounds the first page and all others."""
    assert drain(Pacer(10, PAGE_BUDGET), 1e-9, 5) == [10] * 5


def test_one_slow_page_does_not_make_pages_small():
    """A page that waited for another client's command, or for the network, is not what a row costs."""
    slow = iter([False, False, False, False, True, False, True] * 50)
    sizes = drain(Pacer(PAGE_ROWS, PAGE_BUDGET), lambda _, rows: rows * 0.4e-6 + next(slow) * 0.02, 200)
    assert set(sizes[10:]) == {5000}


def test_a_server_that_becomes_slow_is_asked_for_less():
    """When every page takes longer than its budget, pages shrink with the third that is measured."""
    sizes = drain(Pacer(PAGE_ROWS, PAGE_BUDGET), lambda number, rows: rows * (0.4e-6 if number < 20 else 2e-6), 100)
    assert (sizes[19], sizes[-1]) == (5000, 1000)
    assert sizes.index(1000, 20) <= 20 + 3 * 21


def test_pages_are_measured_while_they_grow_and_then_now_and_again():
    """A measured page is one that the server has to itself, so there are few of them."""
    pacer = Pacer(PAGE_ROWS, PAGE_BUDGET)
    measured = []
    for number in range(50):
        measured += [number] if pacer.measure else []
        drain(pacer, 0.4e-6, 1)
    assert measured == [0, 1, 2, 3, 23, 43]


@given(st.lists(st.tuples(st.integers(1, 100_000), st.floats(0, 1)), max_size=50), st.integers(1, 20_000))
def test_c12_no_page_passes_a_bound(replies, most):
    """C12: whatever came before, the next page has 1 to ``page_rows`` rows, and few bytes if rows stay as wide."""
    pacer = Pacer(most, PAGE_BUDGET)
    for width, seconds in replies:
        rows = pacer.rows
        assert 1 <= rows <= most
        pacer.measured(rows, seconds)
        pacer.came(rows, rows * width)
        assert pacer.rows * width <= max(PAGE_BYTES, width)


def test_hiredis_tells_the_width_of_rows_late():
    """Bytes that only hiredis has read bound the next pages too."""
    pacer = Pacer(PAGE_ROWS, PAGE_BUDGET)
    pacer.came(500, 0)
    pacer.decoded(500, 500 * 65_536)
    assert pacer.rows == 64
    pacer.came(64, 0)
    assert pacer.rows == 128


class Watching(ProofConnection):
    """A proof connection that records what was done with it, and the bytes of each page."""

    def __init__(self, client: redis.Redis) -> None:
        self.events: list[str] = []
        self.sizes: list[int] = []
        super().__init__(proof_factory(client))

    def send(self, *args: Any) -> None:
        self.events.append(str(args[0]))
        super().send(*args)

    def receive_page(self, rows: int) -> Arrival:
        arrival = super().receive_page(rows)
        self.events.append("received")
        self.sizes.append(arrival.size)
        return arrival

    def page(self, rows: int) -> Any:
        self.events.append("decoded")
        return super().page(rows)


def test_c12_long_members_make_small_replies(redis_url):
    """C12: 4,000 members of 16 KB, 64 MB, come in replies of 4 MB after the first, never in one."""
    with redis.Redis.from_url(redis_url) as client:
        for first in range(0, 4_000, 500):
            client.zadd(KEY, {b"%05d" % number + b"x" * 16_384: number for number in range(first, first + 500)})
        with Watching(client) as proof:
            proof.watch(KEY)
            rows = sum(len(page) for page in pages(proof, KEY, descending=True))
            proof.exec()
        client.flushall()
    assert rows == 4_000
    assert proof.sizes[0] > PAGE_BYTES
    assert max(proof.sizes[1:]) <= 1.01 * PAGE_BYTES


@pytest.fixture
def patient(monkeypatch):
    """A reply that a busy machine brings in pieces is still read as columns, and not given to hiredis."""
    monkeypatch.setattr("archive.parser._PATIENCE", 30)


@pytest.mark.usefixtures("patient")
def test_the_next_page_is_requested_before_this_one_is_decoded(redis_url):
    """The server works on the next page, and on that one alone, while this one is taken apart."""
    with redis.Redis.from_url(redis_url) as client:
        client.zadd(KEY, {b"p%d" % number: number for number in range(45)})
        with Watching(client) as proof:
            proof.watch(KEY)
            proof.events.clear()
            assert sum(len(page) for page in pages(proof, KEY, descending=True, page_rows=10)) == 45
    at = {name: [index for index, event in enumerate(proof.events) if event == name] for name in proof.events}
    assert [len(found) for found in at.values()] == [5, 5, 5]
    assert all(requested < decoded for requested, decoded in zip(at["ZRANGE"][1:], at["decoded"], strict=False))
    under_way = itertools.accumulate({"ZRANGE": 1, "received": -1}.get(event, 0) for event in proof.events)
    assert max(under_way) == 1


def test_the_server_time_of_a_page_is_measured(redis_url):
    """The time told for a page is about what the server itself says it worked, not what the client takes to look."""
    with redis.Redis.from_url(redis_url) as client:
        client.zadd(KEY, {b"p%06d" % number: number for number in range(100_000)})
        client.config_resetstat()
        measured = []
        with Watching(client) as proof:
            proof.watch(KEY)
            for _ in range(20):
                proof.send("ZRANGE", KEY, 0, 49_999, "WITHSCORES")
                measured.append(proof.await_page())
                proof.receive_page(50_000)
                assert len(proof.page(50_000)) == 50_000
        worked = client.info("commandstats")["cmdstat_zrange"]["usec_per_call"] / 1e6
    known = [seconds for seconds in measured if seconds is not None]  # the others came before the client got to look
    assert 0.2 * worked < statistics.median(known) < 5 * worked + 0.01


@pytest.mark.usefixtures("patient")
def test_hiredis_keeps_nothing_of_the_page_after_its_own(redis_url, monkeypatch):
    """A page that hiredis had to finish is taken before the next is requested, and that one comes by columns again."""
    taken = []
    take_page = ColumnParser.take_page

    def noted(self: ColumnParser, rows: int) -> Page | None:
        taken.append(page := take_page(self, rows))
        return page

    monkeypatch.setattr(ColumnParser, "take_page", noted)
    with redis.Redis.from_url(redis_url) as client:
        client.zadd(KEY, {b"p%04d" % number: number for number in range(3_000)})
        client.zadd(KEY, {b"\n\n\n\n\n\n": 2_001.5})
        with connector(client)() as proof:
            proof.watch(KEY)
            assert rows_of(pages(proof, KEY, descending=True, page_rows=300)) == plain_rows(client)
    assert len(taken) == 11
    assert taken[3] is None
    # The next was requested before the fourth was found out, so hiredis may have its beginning.
    assert all(page is not None for page in [*taken[:3], *taken[5:]])


def test_a_budget_is_a_duration():
    """The budget is handed down as a length of time: twice of it, twice the rows."""
    assert drain(Pacer(PAGE_ROWS, timedelta(milliseconds=4)), 0.4e-6, 10)[-1] == PAGE_ROWS
    assert drain(Pacer(PAGE_ROWS, timedelta(milliseconds=1)), 0.4e-6, 10)[-1] == 2500
