"""I9: a daemon that ends while a step outlasts ``stop_within``, for whatever reason, is gone, and so is its lease."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest

from tests.support import watching
from tests.support.cli import MAIN, World, started

#: Lets the snapshot hang, and once it does, a round find what ``{rounds}`` makes of it.
HANGING = """
import threading
from datetime import UTC, datetime, timedelta
from jobs import clock
from jobs.scheduler import daemon
from jobs.seasons import runner

class Later(datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.now(UTC) + timedelta(seconds=6)

def broken(*_):
    raise ZeroDivisionError

take = runner._Running._take

def hanging(self, season, step):
    if step == "snapshot":
        {rounds}
        threading.Event().wait()
    return take(self, season, step)

runner._Running._take = hanging
"""


@pytest.mark.parametrize(
    ("rounds", "code", "words"),
    [
        ("clock.datetime = Later", 16, "seconds ahead of PostgreSQL's"),
        ("daemon.boards_wanting = broken", 1, "this should not have happened: ZeroDivisionError"),
    ],
    ids=["clock", "unforeseen"],
)
def test_i9_a_daemon_that_stops_by_itself_leaves_no_step_under_way(
    world: World, rounds: str, code: int, words: str
) -> None:
    """I9: its clock is stepped, or a round breaks, within a step: handed over, told, and the process gone at once."""
    watching.ended_season(world)
    head = '[runner]\ninterval = "1s"\nlease = "5m"\nstop_within = "1s"\n'
    world.config.write_text(head + world.config.read_text())
    with started("run", code=HANGING.format(rounds=rounds) + MAIN) as daemon, ExitStack() as stack:
        stack.callback(daemon.kill)
        said = daemon.communicate(timeout=30)[1].decode()
    assert daemon.returncode == code, said
    assert words in said and "Traceback" not in said
    events = [json.loads(line)["event"] for line in said.splitlines() if line.startswith("{")]
    assert events[-2:] == ["run.handed_over", "run.stopped"]
    assert world.sql("select count(*) from finale.lease where expires_at > clock_timestamp()") == [(0,)]
    assert world.state("cup", "one") == "frozen"
