"""What is news to a notifier: each hold that the ledger calls new, other trouble once, whichever thread tells it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from jobs.scheduler.notify import Note, Notifier
from jobs.scheduler.telling import Telling
from tests.support import watching
from tests.support.cli import World, finale


@pytest.fixture
def ended(world: World) -> World:
    """A season that has ended an hour ago and is due."""
    return watching.ended_season(world)


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The URL of a webhook, and what it has been sent."""
    with watching.webhook() as found:
        yield found


@pytest.fixture
def hasty() -> Iterator[None]:
    """Let threads interrupt each other at nearly every instruction."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def test_a_season_held_again_for_the_same_reason_is_told_again(
    ended: World, webhook: tuple[str, list[dict[str, Any]]]
) -> None:
    """One daemon that goes on running: released after the wrong remedy and held with the same words is news."""
    url, bodies = webhook
    with Notifier(url, "generic") as told_by, ended.outside() as wired:
        observer = Telling(notifier=told_by)
        for _ in range(2):
            finale("season", "hold", "cup", "one", "--because", "3 players differ", "--as", "ana").ok()
            for _ in range(2):
                observer.round_done(wired, 0)
            finale("season", "release", "cup", "one", "--as", "ana").ok()
    assert [(body["event"], body["message"]) for body in bodies] == [("season.hold", "3 players differ")] * 2


@pytest.mark.usefixtures("hasty")
def test_many_threads_tell_the_same_trouble_once() -> None:
    """Boards fail side by side while others are done: the same note comes once from all of them."""
    told_by = Notifier("http://127.0.0.1:1", "generic")  # its thread is not started, so nothing is sent
    begin = threading.Barrier(8)

    def tell(thread: int) -> None:
        begin.wait()
        for number in range(200):
            told_by.tell(Note("failure", "cup/one", "seal", f"no store {number}"))
            told_by.tell(Note("done", f"cup/other{thread}", "seal", str(number)))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(tell, range(8)))
    notes = [told_by._notes.get_nowait() for _ in range(told_by._notes.qsize())]
    assert len([note for note in notes if note and note.kind == "failure"]) == 200
