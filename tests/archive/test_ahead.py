"""Several sorted sets read side by side and ahead: all servers at work, one page each, memory bounded, errors told."""

from __future__ import annotations

import os
import signal
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, ClassVar

import pytest
import redis

import archive.ahead
import archive.instant
import archive.merge
from archive.ahead import Ahead, Reading
from archive.drain import Paging
from archive.instant import Instant
from archive.once import proof_factory
from archive.pacing import PAGE_BUDGET, Pacer
from archive.plan import Span, Task
from archive.proof import ProofConnection
from leaderboard.errors import UnavailableError
from tests.archive.boards import rows_of
from tests.support.servers import ServerFactory, running

KEYS = ("cup:0", "cup:1", "cup:2")
ROWS, PAGE = 3_000, 50
SECONDS = 10.0


@pytest.fixture(scope="module")
def servers(server_factory: ServerFactory) -> Iterator[list[str]]:
    """The addresses of two servers."""
    with ExitStack() as stack:
        yield [stack.enter_context(running(server_factory.redis())).url for _ in range(2)]


@pytest.fixture
def in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of few rows, and hardly anything read ahead of them."""
    monkeypatch.setattr(archive.instant, "TASK_ROWS", 100)
    monkeypatch.setattr(archive.ahead, "AHEAD_BYTES", 1)


@pytest.fixture
def clients(servers: list[str]) -> Iterator[list[redis.Redis]]:
    """The first server has cup:0 and cup:1, the second cup:2: bands of 1,000 rows."""
    with ExitStack() as stack:
        found = [stack.enter_context(redis.Redis.from_url(url)) for url in servers]
        for client in found:
            client.flushall()
        for band, client in enumerate((found[0], found[0], found[1])):
            first = band * 1_000
            client.zadd(KEYS[band], {f"p{number:04}": number for number in range(first, first + 1_000)})
        yield found


class Watching(ProofConnection):
    """Notes how many pages each server has been asked for that have not been received."""

    under_way: ClassVar[defaultdict[str, int]] = defaultdict(int)
    most: ClassVar[defaultdict[str, int]] = defaultdict(int)

    def send(self, *args: Any) -> None:
        if args[0] == "ZRANGE":
            self.under_way[self.address] += 1
            self.most[self.address] = max(self.most[self.address], self.under_way[self.address])
        super().send(*args)

    def receive_page(self, rows: int) -> Any:
        arrival = super().receive_page(rows)
        self.under_way[self.address] -= 1
        return arrival


def connector(clients: list[redis.Redis]) -> Callable[[str], ProofConnection]:
    factories = [proof_factory(client) for client in clients]
    return lambda key: Watching(factories[key == KEYS[2]])


def wait_for(true: Callable[[], bool]) -> None:
    """Wait until another thread has brought it about."""
    event = threading.Event()
    for _ in range(int(SECONDS / 0.01)):
        if true():
            return
        event.wait(0.01)
    raise AssertionError("it never came to be")


def reading_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "finale-read"]


def blocks(instant: Instant, **options: Any) -> Iterator[Any]:
    defaults: dict[str, Any] = {"descending": True, "cuts": [1_000, 2_000], "page_rows": PAGE}
    return instant.blocks(**defaults | options)


def readings(stack: ExitStack, clients: list[redis.Redis]) -> list[Reading]:
    """Return the three sorted sets, watched."""
    proofs = [stack.enter_context(connector(clients)(key)) for key in KEYS]
    for key, proof in zip(KEYS, proofs, strict=True):
        proof.watch(key)
    pacers = {proof.address: Pacer(PAGE, PAGE_BUDGET) for proof in proofs}
    return [
        Reading(proof.address, Paging(proof, key, descending=True, pacer=pacers[proof.address]))
        for key, proof in zip(KEYS, proofs, strict=True)
    ]


def test_a_server_that_stands_still_does_not_keep_the_others_from_being_read(clients: list[redis.Redis]) -> None:
    """The bands of the first server come first, and do not come; that of the other is read to its end meanwhile."""
    tasks = [Task(Span(), tuple(1_000 * (at == n) for n in range(3))) for at in range(3)]
    with ExitStack() as stack:
        first, _, last = found = readings(stack, clients)
        pid = clients[0].info("server")["process_id"]
        os.kill(pid, signal.SIGSTOP)
        try:
            ahead = stack.enter_context(Ahead(found, tasks))
            wait_for(lambda: sum(map(len, list(last.waiting))) == 1_000)
            assert not first.waiting
        finally:
            os.kill(pid, signal.SIGCONT)
        assert [sum(map(len, ahead.pages(one))) for one in found] == [1_000] * 3


def test_the_proof_need_not_wait_for_the_merging(clients: list[redis.Redis]) -> None:
    """I3: once the last page has come, the proof may follow, however little was taken; what comes after is the same."""
    with Instant(connector(clients), KEYS) as instant:
        assert not instant.complete
        found = blocks(instant)
        first = next(found)
        wait_for(lambda: instant.complete)
        instant.prove()
        clients[0].zadd(KEYS[0], {"late": 1})
        rows = rows_of(block.page for block in [first, *found])
    assert rows == [(b"p%04d" % number, float(number)) for number in reversed(range(ROWS))]


def test_players_wait_for_one_page_of_a_server_at_most(clients: list[redis.Redis]) -> None:
    """However many sorted sets a server has, one page of it is under way at a time."""
    Watching.under_way.clear()
    Watching.most.clear()
    for number in range(ROWS):  # by player: every page of a task is wanted at once
        clients[0].zadd(KEYS[number % 2], {f"q{number}": number})
    with Instant(connector(clients), KEYS) as instant:
        total = sum(map(len, blocks(instant, cuts=())))
        instant.prove()
    assert total == 2 * ROWS
    assert set(Watching.most.values()) == {1}
    assert len(Watching.most) == 2


def test_who_falls_behind_is_waited_for(clients: list[redis.Redis], monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded: with nobody to take them, pages come up to the bound and, of each server, one more."""
    monkeypatch.setattr(archive.ahead, "AHEAD_BYTES", 4_000)
    tasks = [Task(Span(), (1_000, 1_000, 1_000))]
    with ExitStack() as stack:
        found = readings(stack, clients)
        ahead = stack.enter_context(Ahead(found, tasks))

        def held() -> int:
            return sum(page.members.nbytes + page.scores.nbytes for one in found for page in list(one.waiting))

        wait_for(lambda: held() >= 4_000)
        asked = -1
        while asked != (asked := sum(one.paging.asked for one in found)):
            threading.Event().wait(0.05)  # nothing tells that nothing more will come
        assert asked < ROWS
        assert held() <= 4_000 + 3 * 2_000
        # One that is wanted comes all the same, page after page, though the bound is reached.
        assert sum(len(page) for page in ahead.pages(found[1])) == 1_000
    assert reading_threads() == []


@pytest.mark.usefixtures("in_step")
def test_a_broken_connection_ends_all_and_leaves_no_thread(clients: list[redis.Redis]) -> None:
    """What one thread met is raised where the rows are taken, though other servers still have some."""
    with pytest.raises(UnavailableError), Instant(connector(clients), KEYS) as instant:
        for block in blocks(instant):
            assert len(block)
            clients[0].client_kill_filter(_type="normal", skipme=True)
    assert reading_threads() == []


@pytest.mark.usefixtures("in_step")
def test_a_reader_who_leaves_early_leaves_no_thread(clients: list[redis.Redis]) -> None:
    with Instant(connector(clients), KEYS) as instant:
        next(blocks(instant))
        assert reading_threads() != []
    assert reading_threads() == []


@pytest.mark.parametrize("least", [1, 3_000, 10**6])
def test_equal_scores_of_any_number_are_merged_from_bounded_memory(
    clients: list[redis.Redis], monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    """One page of each, a few pages, or all at once: the order is the same, with one score or with many."""
    monkeypatch.setattr(archive.merge, "HELD_BYTES", least)
    for client in clients:
        client.flushall()
    expected = []
    for number in range(1_500):
        score = number % 3 if number < 900 else 7
        member = f"{number * 7919 % 1_500:05}"
        (clients[1] if number % 3 == 2 else clients[0]).zadd(KEYS[number % 3], {member: score})
        expected.append((float(score), member.encode()))
    with Instant(connector(clients), KEYS) as instant:
        found = [(score, member) for block in blocks(instant, cuts=()) for member, score in rows_of([block.page])]
        instant.prove()
    assert found == sorted(expected, reverse=True)
