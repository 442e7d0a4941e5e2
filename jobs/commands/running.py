"""finale run: the scheduler as a process that stays; finale metrics: what there is to be seen, for cron."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from jobs import output
from jobs.commands.common import As, named_path, wired, wired_ledger
from leaderboard.errors import FinaleError

#: Set where a thread is still in a step that is another runner's by now. The interpreter would wait for it at its end,
#: while it goes on working: the process must end like a kill, which every step stands.
left_behind = threading.Event()


def run(
    port: Annotated[
        int | None,
        typer.Option("--metrics", metavar="PORT", min=0, max=65_535, help="Serve /metrics, /healthz, /readyz there."),
    ] = None,
    host: Annotated[str, typer.Option("--metrics-host", metavar="HOST", help="On this address.")] = "127.0.0.1",
    operator: As = None,
) -> None:
    """Run all boards: wake up at every bound and on a short interval, and do what is due, until SIGTERM or SIGINT.

    Any number of them may run, on any number of machines. SIGTERM lets the steps under way finish, or hands them over.

    Example: finale run --as scheduler --metrics 9464
    """
    from jobs.clock import check_clock
    from jobs.identity import operator as named
    from jobs.scheduler.daemon import Daemon
    from jobs.scheduler.health import Health, served
    from jobs.scheduler.notify import notifier
    from jobs.scheduler.pool import BRIEF, Pool
    from jobs.scheduler.servers import watched
    from jobs.scheduler.telling import Telling
    from jobs.version import VERSION
    from leaderboard.walltime import zone_data_version
    from ledger import monitoring
    from ledger.migrate import check

    who = named(operator, os.environ, lever=False)
    with wired() as outside, ExitStack() as stack:
        check(outside.database)
        check_clock(outside)
        notes = notifier(os.environ, lambda why: output.log().warning("notify.failed", why=why))
        if notes:
            stack.enter_context(notes)
        health = None
        if port is not None:
            pool = Pool(outside, BRIEF)
            stack.callback(pool.close)

            def look() -> monitoring.Seen:
                with pool.taken() as mine:
                    return monitoring.look(mine.database, mine.boards)

            health = Health(patience=max(60.0, 6 * outside.runner.interval.total_seconds()))
            listening = stack.enter_context(served(health, look, host, port))
            output.log().info("metrics.served", host=host, port=listening)
        telling = Telling(health, notes)
        stack.enter_context(watched(outside, telling.server))
        daemon = Daemon(outside, who=who, observer=telling)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: daemon.stop())
        boards, zone_data = sorted(outside.boards), zone_data_version()
        output.log().info("run.started", version=VERSION, boards=boards, zone_data=zone_data)
        try:
            daemon.run()
        finally:  # also where its clock is wrong, or nobody foresaw what is
            if not daemon.finished:
                left_behind.set()
            output.log().info("run.stopped", finished=daemon.finished)


def metrics(
    file: Annotated[
        Path | None,
        typer.Option("--textfile", parser=named_path, metavar="FILE", help="Write them there, whole or not at all."),
    ] = None,
) -> None:
    """Tell what there is to be seen as Prometheus metrics, for cron and the node exporter's textfile collector.

    Where the ledger cannot be read it is finale_up 0 alone that is written, and the exit code says why.

    Example: finale metrics --textfile /var/lib/node_exporter/finale.prom
    """
    from archive.appearing import appearing, place_of
    from jobs.scheduler.metrics import text
    from ledger import monitoring

    if file is not None:
        place_of(file, force=True)
    seen: monitoring.Seen | None = None
    failed: FinaleError | None = None
    try:
        with wired_ledger() as found:
            seen = monitoring.look(found.database, found.boards)
    except FinaleError as error:
        failed = error  # told after the file is written: an old one would go on saying that all is well
    if file is None:
        output.out.file.write(text(seen).decode())
    else:
        with appearing(file, force=True) as whole:
            whole.write(text(seen))
    if failed:
        raise failed
