"""A command that uses the embedded servers of a home: run as a process of its own by the tests.

    python -m tests.support.embedded_user HOME [--as UID] [--programs REDIS POSTGRES_BIN]

It says ``in`` and its servers' process ids once it has them, and ends when it is sent a line.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path
from unittest import mock

import psycopg
import redis

from jobs.embedded import EmbeddedHome, session
from jobs.embedded.binaries import Programs


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("--as", type=int, dest="uid")
    parser.add_argument("--programs", type=Path, nargs=2)
    arguments = parser.parse_args()
    if arguments.programs:
        redis_program, postgres_programs = arguments.programs
        # The wheels may be out of that user's reach.
        mock.patch.object(Programs, "redis", lambda self: redis_program).start()
        mock.patch.object(Programs, "postgres", lambda self: postgres_programs).start()
    if arguments.uid is not None:
        _import_everything()
        os.setgroups([])
        os.setgid(arguments.uid)
        os.setuid(arguments.uid)
    with session(EmbeddedHome(arguments.home, durable=False)) as endpoints:
        with redis.Redis.from_url(endpoints.redis_url) as client:
            redis_pid = client.info("server")["process_id"]
        with psycopg.connect(endpoints.postgres_url) as connection:
            row = connection.execute("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)").fetchone()
        sys.stdout.write(f"in {redis_pid} {row[0] if row else ''}\n")
        sys.stdout.flush()
        sys.stdin.readline()


def _import_everything() -> None:
    """Make the drivers import what they import late: the interpreter may be out of the user's reach afterwards."""
    with suppress(redis.ConnectionError), redis.Redis(unix_socket_path="/nonexistent/socket") as client:
        client.ping()
    with suppress(psycopg.OperationalError), psycopg.connect("host=/nonexistent connect_timeout=2"):
        pass


if __name__ == "__main__":
    main()
