"""A delivery at a slow rate keeps nothing else waiting: a tick sends for one interval, and the next goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger import outbox, seasons
from tests.jobs.test_cli_delivery import BOARD, CLOSE, TABLE, all_arrived, granted, played, webhook
from tests.support.cli import World, finale
from tests.support.receivers import SECRET, Receiver, receiver
from tests.support.watching import told

RUNNER = '[runner]\nworkers = 1\ninterval = "1s"\n'
SECOND = BOARD.replace("[board.cup]", "[board.dash]").replace("deliver = {{ {deliver} }}\n", "")
SLOW = 'batch = 10, rate = "1/s"'  # a rest of a second after each grant, which is all of the interval
TICK = ("tick", "--as", "cron")


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAME_SECRET", SECRET)


@pytest.fixture
def paid(world: World, tmp_path: Path) -> Iterator[Receiver]:
    with receiver(tmp_path) as found:
        yield found


def overdue(world: World) -> float:
    return told(finale("metrics").ok().out)["finale_season_overdue_seconds", "cup", "s1", "deliver"]


def let_rest_pass(world: World) -> None:
    world.sql("update finale.delivery set paused_until = now() where paused_until is not null")


def test_a_slow_delivery_ends_a_tick_and_blocks_no_other_board(world: World, paid: Receiver) -> None:
    """C57: with one worker, a board that takes 41 seconds to deliver; the tick goes no further than its interval.

    The other board is closed by that tick, and the next tick goes on where the delivery stood.
    """
    played(world, webhook(paid, SLOW), RUNNER + BOARD + SECOND)
    world.played("dash", "m1,ann,5,2026-01-05T10:00:00Z")
    for board, step in (("cup", "reward"), ("dash", "seal")):
        finale("close", board, "s1", "--until", step, "--as", "ops").ok()
    assert "cup/s1: 40 grants wait" in finale(*TICK).ok().out
    assert len(paid.requests) == 1
    assert (world.state("cup", "s1"), world.state("dash", "s1")) == ("rewarded", "cleaned")
    let_rest_pass(world)
    finale(*TICK).ok()
    assert len(paid.requests) == 2


def test_a_delivery_that_gets_on_is_not_overdue(world: World, paid: Receiver) -> None:
    """Between two turns nobody has the season's lease; a target that takes nothing, or one left alone, is overdue."""
    played(world, webhook(paid, SLOW), RUNNER + BOARD)
    finale(*CLOSE, "--until", "reward").ok()
    assert overdue(world) > 600
    finale(*TICK).ok()
    assert overdue(world) == 0
    world.sql("update finale.lease set acquired_at = acquired_at - interval '6 minutes'")
    assert overdue(world) > 600
    let_rest_pass(world)
    paid.script.append("503")
    finale(*TICK).ok()
    assert len(paid.requests) == 2 and overdue(world) > 600


def test_what_is_owed_ends_a_tick_too(world: World, paid: Receiver) -> None:
    """Dead letters that are sent again, of a season past its deliver step, take no longer than the interval either."""
    board = RUNNER + BOARD
    played(world, webhook(paid, 'rate = "1000000/s", tries = 1'), board)
    paid.script.append("500")
    finale(*CLOSE).ok()
    world.configure(board.format(deliver=webhook(paid, SLOW)), cup=TABLE)
    with world.outside() as outside:
        outbox.retry(outside.database, seasons.find(outside.database, "cup", "s1").key, who="ana")
    for requests in (2, 3):
        finale(*TICK).ok()
        assert len(paid.requests) == requests
        let_rest_pass(world)


def test_a_person_waits_for_all_of_it(world: World, paid: Receiver) -> None:
    """What a close by hand begins it ends, however many intervals that takes."""
    played(world, webhook(paid, 'batch = 10, rate = "30/s"'), RUNNER + BOARD)
    finale(*CLOSE, "--until", "reward").ok()
    finale(*TICK).ok()
    sent = len(paid.requests)
    assert 1 < sent < 5
    finale(*CLOSE).ok()
    all_arrived(world, paid)


def test_the_last_batch_of_a_turn_is_the_end(world: World, paid: Receiver) -> None:
    """Where nothing is left to send, the rest that the rate asks for keeps the season from nothing."""
    played(world, webhook(paid, 'batch = 100, rate = "41/s"'), RUNNER + BOARD)
    finale(*CLOSE, "--until", "reward").ok()
    finale(*TICK).ok()
    assert paid.ids == granted(world) and world.state("cup", "s1") == "cleaned"
