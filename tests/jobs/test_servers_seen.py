"""Redis and the store that do not answer: named in readiness, metrics, log and one notification."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobs.scheduler import servers
from jobs.scheduler.health import Health
from jobs.scheduler.notify import Note, Notifier
from jobs.scheduler.telling import Telling
from leaderboard.errors import AccessError, FinaleError, UnavailableError
from tests.ledger.support import await_that
from tests.support import watching
from tests.support.cli import World, started
from tests.support.watching import get, metrics


@pytest.fixture
def ended(world: World) -> World:
    """A season that has ended an hour ago and is due."""
    return watching.ended_season(world)


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The URL of a webhook, and what it has been sent."""
    with watching.webhook() as found:
        yield found


def test_a_server_that_hangs_is_named_everywhere(
    ended: World, webhook: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis accepts and says nothing: not ready, by name; the metric; one notification, and none for each season."""
    url, bodies = webhook
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("FINALE_REDIS", f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        monkeypatch.setenv("FINALE_NOTIFY_URL", url)
        ended.config.write_text('[runner]\ninterval = "1s"\nredis_timeout = "1s"\n' + ended.config.read_text())
        with started("run", "--metrics", "0") as daemon, ExitStack() as stack:
            stack.callback(daemon.kill)
            assert daemon.stderr is not None
            log = ""
            while '"server.away"' not in log or ('"step.failed"' not in log and '"tick.failed"' not in log):
                log += daemon.stderr.readline().decode()
            port = watching.port_of(log)
            await_that(lambda: get(port, "/readyz") == (503, "Service Unavailable: no answer from redis\n"))
            seen = metrics(port)
            assert seen["finale_server_up", "redis"] == 0
            assert (seen["finale_server_up", "postgres"], seen["finale_server_up", "store"]) == (1, 1)
            daemon.terminate()
            daemon.communicate(timeout=60)
    assert [(body["event"], body["season"]) for body in bodies] == [("redis.away", "")]
    assert "did not answer" in bodies[0]["message"]


def test_a_server_that_is_back_is_told_once() -> None:
    """Away, away, back: one note and one line of each; a refusal is an answer."""
    answers = iter([UnavailableError("no"), UnavailableError("no"), None, AccessError("not you"), None])
    told_of: list[FinaleError | None] = []
    done = threading.Event()

    def ask() -> None:
        if (error := next(answers)) is not None:
            raise error

    def heard(_: str, error: FinaleError | None) -> None:
        told_of.append(error)
        if len(told_of) == 4:
            done.set()

    with servers.asked({"store": ask}, 0.001, heard):
        assert done.wait(10)
    assert [error is None for error in told_of[:4]] == [False, False, True, True]
    notes: list[Note] = []
    telling = Telling(Health(patience=60), cast("Notifier", SimpleNamespace(tell=notes.append)))
    for error in told_of[:4]:
        telling.server("store", error)
    assert [(note.body("generic")["event"], note.body("slack")["text"]) for note in notes] == [
        ("store.away", "*Finale* cannot ask its store: no"),
        ("store.back", "*Finale* can ask its store again"),
    ]
    board, nowhere = Note("failure", "cup", "", "x"), Note("failure", "", "", "x", server="round")
    assert [note.body("generic")["event"] for note in (board, nowhere)] == ["board.failure", "round.failure"]
