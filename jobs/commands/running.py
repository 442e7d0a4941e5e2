"""finale run: the scheduler as a process that stays."""

from __future__ import annotations

import os
import signal
import sys

import typer

from jobs import output
from jobs.commands.common import As, wired


def run(operator: As = None) -> None:
    """Run all boards: wake up at every bound and on a short interval, and do what is due, until SIGTERM or SIGINT.

    Any number of them may run, on any number of machines. SIGTERM lets the steps under way finish, or hands them over.

    Example: finale run --as scheduler
    """
    from jobs.clock import check_clock
    from jobs.daemon import Daemon
    from jobs.identity import operator as named
    from jobs.logged import Logged
    from jobs.version import VERSION
    from leaderboard.walltime import zone_data_version
    from ledger.migrate import check

    who = named(operator, os.environ, lever=False)
    with wired() as outside:
        check(outside.database)
        check_clock(outside)
        daemon = Daemon(outside, who=who, observer=Logged())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: daemon.stop())
        output.log().info("run.started", version=VERSION, boards=sorted(outside.boards), zone_data=zone_data_version())
        finished = daemon.run()
        output.log().info("run.stopped", finished=finished)
    if not finished:
        # A thread is still in a step that is another runner's now; like a kill, which every step stands.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    raise typer.Exit
