"""The process from which the harness's commands are forked, so that each starts with everything imported already.

``python -m tests.harness.child FD`` takes requests on the socket FD, a message each: JSON with argv, env, cwd and plan,
and the descriptors of ``FDS``. For each it forks a keeper, which forks the command itself and writes its process id
and then its wait status to the report; so commands run side by side, and each is a process of its own to be killed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress
from typing import Any

import jobs.boards.standings
import jobs.cli
import jobs.results.taking
import jobs.scheduler.tick
import jobs.seasons.closing
from tests.harness import hooks
from tests.harness.calls import Calls
from tests.harness.plan import Plan

FDS = ("out", "err", "log", "report", "arrived", "go_on")
LONGEST = 1 << 16


def serve(control: socket.socket) -> None:
    """Take requests until the other side closes."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, LONGEST, len(FDS))
        if not message:
            return
        if os.fork() == 0:
            control.close()
            _keep(json.loads(message), dict(zip(FDS, descriptors, strict=True)))
        for descriptor in descriptors:
            os.close(descriptor)


def _keep(request: dict[str, Any], fds: dict[str, int]) -> None:
    """Fork the command, wait for it, and report; never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(fds["report"])
        _run(request, fds)
    for name in FDS:
        if name != "report":
            os.close(fds[name])
    os.write(fds["report"], f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):
        os.write(fds["report"], f"{status}\n".encode())
    os._exit(0)


def _run(request: dict[str, Any], fds: dict[str, int]) -> None:
    """Be the command; never returns."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(fds["out"], 1)
    os.dup2(fds["err"], 2)
    code = 70
    try:
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        plan = Plan.from_json(request["plan"]) if request["plan"] else None
        hooks.install(Calls(plan, fds["log"], fds["arrived"], fds["go_on"]), os.environ["FINALE_STORE"])
        sys.argv = ["finale", *request["argv"]]
        jobs.cli.main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
