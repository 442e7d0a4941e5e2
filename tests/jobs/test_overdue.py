"""What is overdue: one rule for the metric and the note, and neither cries wolf over what is about to be done."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import cast

import pytest

from jobs.scheduler.notify import Note, Notifier
from jobs.scheduler.telling import Telling
from jobs.wiring import Outside
from leaderboard.errors import UnavailableError
from ledger import leases, monitoring
from ledger.monitoring import Seen
from tests.support import watching
from tests.support.cli import World, finale
from tests.support.watching import told

MINUTE = timedelta(minutes=1)
METRIC = ("finale_season_overdue_seconds", "cup", "one", "open")


@pytest.fixture
def ended(world: World) -> World:
    """A season whose start passed three hours ago, and which nobody has opened."""
    return watching.ended_season(world)


def overdue(world: World) -> float:
    return told(finale("metrics").ok().out)[METRIC]


def test_what_is_paused_held_or_worked_on_is_not_overdue(ended: World) -> None:
    """The metric is 0 while a person is waited for or a runner takes the step; one that failed counts again."""
    assert overdue(ended) > 600
    finale("pause", "--because", "x", "--as", "ana").ok()
    assert overdue(ended) == 0
    finale("resume", "--as", "ana").ok()
    assert overdue(ended) > 600
    finale("season", "hold", "cup", "one", "--because", "x", "--as", "ana").ok()
    assert overdue(ended) == 0
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    with ended.outside() as outside:
        ((key,),) = ended.sql("select season_id from finale.season")
        lease = leases.acquire(outside.database, key, "cup/one", "somebody", MINUTE)
        assert overdue(ended) == 0
        ended.sql("update finale.season set attempts = 1")
        assert overdue(ended) > 600  # it is tried again, and was not done in time
        leases.give_back(outside.database, lease)
    assert overdue(ended) > 600


class Rounds:
    """A daemon's rounds a minute apart by PostgreSQL's clock, and the seasons that it told to be overdue in each."""

    def __init__(self, outside: Outside, patched: pytest.MonkeyPatch) -> None:
        self._outside, self._passed = outside, timedelta(0)
        self._notes: list[Note] = []
        self.telling = Telling(notifier=cast("Notifier", SimpleNamespace(tell=self._notes.append)))
        look = monitoring.look_at_seasons

        def later(*asked: object) -> Seen:
            seen = look(*asked)  # type: ignore[arg-type]  # handed on as they come
            return replace(seen, now=seen.now + self._passed)

        patched.setattr(monitoring, "look_at_seasons", later)

    def next(self, after: timedelta = MINUTE) -> list[str]:
        self._passed += after
        self._notes.clear()
        self.telling.round_done(self._outside, 0)
        return [note.season for note in self._notes if note.kind == "overdue"]


def test_who_comes_back_is_about_to_do_what_is_due(ended: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a start, a resume, a release and an outage of the ledger the first rounds tell of nothing overdue."""
    with ended.outside() as outside:
        rounds = Rounds(outside, monkeypatch)
        assert rounds.next() == []
        finale("pause", "--because", "x", "--as", "ana").ok()
        assert rounds.next() == rounds.next() == []
        finale("resume", "--as", "ana").ok()
        assert rounds.next() == []
        finale("season", "hold", "cup", "one", "--because", "x", "--as", "ana").ok()
        assert rounds.next() == []
        finale("season", "release", "cup", "one", "--as", "ana").ok()
        assert rounds.next() == []
        rounds.telling.round_failed(UnavailableError("no ledger"))
        assert rounds.next() == []
        assert rounds.next(timedelta(seconds=1)) == []  # a round that follows at once, as one does when a board is done


def test_what_stays_overdue_is_told(ended: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A season that every round of a minute finds overdue is told of, with the time since which it is due."""
    with ended.outside() as outside:
        rounds = Rounds(outside, monkeypatch)
        assert [rounds.next(), rounds.next()] == [[], ["cup/one"]]
        (note,) = (note for note in rounds._notes if note.kind == "overdue")
    ((starts_at,),) = ended.sql("select starts_at at time zone 'UTC' from finale.season")
    assert (note.step, note.message) == ("open", f"due since {starts_at:%Y-%m-%d %H:%M:%S} UTC")


def test_ten_minutes_are_ten(ended: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a daemon that has been there all the time: nothing before the tenth minute, and no minute more after it."""
    ended.sql(
        "update finale.season set starts_at = clock_timestamp(), ends_at = clock_timestamp() + interval '1h',"
        " closes_at = clock_timestamp() + interval '2h'"
    )
    with ended.outside() as outside:
        rounds = Rounds(outside, monkeypatch)
        told_of = [rounds.next() for _ in range(11)]
    assert told_of[:9] == [[]] * 9 and ["cup/one"] in told_of[9:]
