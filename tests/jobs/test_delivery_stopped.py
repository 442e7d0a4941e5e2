"""A delivery under way is stopped by a hold and by a pause, and goes on once they end (I5)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.payout import correcting
from jobs.scheduler.wanting import boards_wanting
from leaderboard.errors import UnavailableError
from ledger import corrections, outbox, pausing, seasons
from tests.jobs.test_cli_delivery import BOARD, CLOSE, QUICK, STATUS, all_arrived, played, webhook
from tests.support.cli import World, finale
from tests.support.receivers import SECRET, Receiver, receiver

KEPT = BOARD.replace('keep_live = "0s"', 'keep_live = "7d"')
RETRY = ("rewards", "retry", "cup", "s1", "--as", "ana", "--yes")
CORRECT = ("rewards", "correct", "cup", "s1", "--as", "ana", "--yes", "--because", "ticket 7", "--exclude", "player 05")
TICK = ("tick", "--as", "cron")


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAME_SECRET", SECRET)


@pytest.fixture
def paid(world: World, tmp_path: Path) -> Iterator[Receiver]:
    with receiver(tmp_path) as found:
        yield found


def hold(world: World) -> None:
    with world.outside() as outside:
        season = seasons.find(outside.database, "cup", "s1")
        seasons.hold_by_hand(outside.database, season, who="ana", because="wrong table")


def pause(world: World) -> None:
    with world.outside() as outside:
        pausing.pause(outside.database, who="ana", because="wrong table")


RELEASE, RESUME = ("season", "release", "cup", "s1", "--as", "ana", "--yes"), ("resume", "--as", "ana", "--yes")
#: What pulls each lever, the exit code of what it stops, and what ends it.
LEVERS = {"hold": (hold, 22, RELEASE), "pause": (pause, 24, RESUME)}


def waiting(world: World) -> int:
    return sum(one["waiting"] for one in finale(*STATUS, "--json").ok().json["deliveries"])


def owing(world: World, paid: Receiver) -> None:
    """Deliver the season to a receiver that takes nothing, and make the dead letters due again, unsent."""
    played(world, webhook(paid, f"{QUICK}, tries = 1"), KEPT)
    paid.script.extend(["500"] * 5)
    finale(*CLOSE, "--until", "deliver").ok()
    with world.outside() as outside:
        season = seasons.find(outside.database, "cup", "s1")
        assert outbox.retry(outside.database, season.key, who="ana") == (41, 0)
    paid.requests.clear()


@pytest.mark.parametrize("lever", LEVERS)
@pytest.mark.parametrize("by", ["close", "tick"])
def test_i5_no_batch_follows_a_hold_or_a_pause(world: World, paid: Receiver, lever: str, by: str) -> None:
    """I5: pulled while the first batch is at the receiver, that one is settled and no second is sent until it ends.

    It is no failed attempt, and whoever waits for the close is told why it stopped and how much is left.
    """
    pull, code, end = LEVERS[lever]
    played(world, webhook(paid))
    finale(*CLOSE, "--until", "reward").ok()
    paid.meanwhile = lambda: pull(world)
    if by == "close":
        finale(*CLOSE).refused(code, "wrong table", "31 grants wait")
    else:
        assert "31 grants wait" in finale(*TICK).ok().out
    finale(*TICK).ok()
    finale(*CLOSE).refused(code, "wrong table")
    finale(*RETRY).refused(code, "wrong table")
    assert len(paid.requests) == 1 and waiting(world) == 31
    assert world.state("cup", "s1") == "rewarded"
    assert world.sql("select attempts, last_error from finale.season where season = 's1'") == [(0, None)]
    told = [(event, who) for event, who, _ in world.journal("cup", "s1") if event not in ("created", "done")]
    assert told == ([("held", "ana")] if lever == "hold" else [])
    finale(*end).ok()
    finale(*TICK).ok()
    all_arrived(world, paid)


def test_a_retry_by_hand_stops_too(world: World, paid: Receiver) -> None:
    """A person who sends dead letters again is told that the season has been put on hold meanwhile."""
    owing(world, paid)
    paid.meanwhile = lambda: hold(world)
    assert "31 grants wait; cup/s1 is on hold: wrong table" in finale(*RETRY).ok().out
    assert len(paid.requests) == 1


@pytest.mark.parametrize("lever", LEVERS)
def test_what_a_delivered_season_owes_stops_too(world: World, paid: Receiver, lever: str) -> None:
    """Dead letters that a tick sends again, of a season past its deliver step: no second batch, until it ends."""
    pull, _, end = LEVERS[lever]
    owing(world, paid)
    paid.meanwhile = lambda: pull(world)
    for _ in range(2):
        finale(*TICK).ok()
    assert len(paid.requests) == 1 and waiting(world) == 31
    finale(*end).ok()
    finale(*TICK).ok()
    all_arrived(world, paid)


def test_a_held_season_owes_nothing_until_its_release(world: World, paid: Receiver) -> None:
    """Its board is not wanted; a correction may be issued meanwhile, is not sent, and goes out after the release."""
    owing(world, paid)
    hold(world)
    assert "to be delivered; cup/s1 is on hold: wrong table" in finale(*CORRECT).ok().out
    with world.outside() as outside:
        assert boards_wanting(outside, outside.database.now()) == []
        assert outbox.owing(outside.database, "cup") == []
    finale(*TICK).ok()
    assert paid.requests == []
    finale(*RELEASE).ok()
    finale(*TICK).ok()
    assert paid.balances()["player 05", "gems"] == 0 and paid.balances()["player 39", "gems"] == 500


@pytest.mark.parametrize("lever", LEVERS)
def test_an_interrupted_correction_is_left_where_it_is(
    world: World, paid: Receiver, lever: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No tick brings it to its end while somebody holds the season or everything is paused; afterwards one does."""
    pull, _, end = LEVERS[lever]
    played(world, webhook(paid), KEPT)
    finale(*CLOSE, "--until", "deliver").ok()

    def away(*_: object) -> None:
        raise UnavailableError("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(correcting, "publish", away)
        finale(*CORRECT).refused(10, "the store is away")
    pull(world)
    with world.outside() as outside:
        assert correcting.finish_all(outside, "cup", who="cron") == []
        assert corrections.unfinished(outside.database, "cup") == ([] if lever == "hold" else [("s1", 1)])
        assert boards_wanting(outside, outside.database.now()) == ([] if lever == "hold" else ["cup"])
    finale(*end).ok()
    finale(*TICK).ok()
    assert paid.balances()["player 05", "gems"] == 0
