"""Whoever watches a daemon: reads its port, has a webhook that it tells, and a season for it to close."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.support.cli import World

Samples = dict[tuple[str, ...], float]


def get(port: int, path: str) -> tuple[int, str]:
    """Return status and text of what the daemon's port answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def told(text: str) -> Samples:
    """Return every sample: its name and its labels' values, and its value."""
    families = text_string_to_metric_families(text)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def metrics(port: int) -> Samples:
    """Return what the daemon's port tells now."""
    return told(get(port, "/metrics")[1])


def port_of(log: str) -> int:
    """Return the port that the daemon's log names; 0 while it does not."""
    events = [
        json.loads(line) for line in log.splitlines(keepends=True) if line.startswith("{") and line.endswith("\n")
    ]
    return next((int(event["port"]) for event in events if event["event"] == "metrics.served"), 0)


@contextmanager
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the URL of a webhook, and the list of what it is sent; below ``/broken`` it answers 500."""
    bodies: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(500 if self.path == "/broken" else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ended_season(world: World) -> World:
    """Configure the board ``cup``, with rewards, and play its season, which has ended an hour ago and is due."""
    now, hour = datetime.now(UTC).replace(microsecond=0), timedelta(hours=1)
    season = f"starts_at = {(now - 3 * hour).isoformat()}, ends_at = {(now - hour).isoformat()}"
    world.configure(
        '[board.cup]\nties = "shared"\ngrace = "0s"\nkeep_live = "7d"\nrewards = "cup.toml"\n'
        f'calendar = {{ seasons = [{{ id = "one", {season} }}] }}',
        cup='version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n',
    )
    world.seen("cup", now - 2 * hour)
    world.played("cup", f"m1,ann,5,{(now - 2 * hour).isoformat()}")
    return world
