"""A receiver of grants that does all that docs/delivery.md asks for, with Python's standard library alone.

    FINALE_WEBHOOK_SECRET=… python docs/receiver.py 127.0.0.1:8080 wallet.sqlite3

Take it as a model: what matters is that checking the id, storing it and paying are one transaction.
"""

from __future__ import annotations

import hmac
import json
import os
import sqlite3
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MOST_BYTES = 32 * 2**20
MOST_SECONDS = 300  # how old a signed request may be
SCHEMA = """
create table if not exists granted (
    grant_id text primary key, player_id text not null, item text not null, amount integer not null
);
create table if not exists wallet (
    player_id text, item text, amount integer not null, primary key (player_id, item)
);
"""


def is_genuine(secret: bytes, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Return whether Finale signed this body, and not long ago."""
    timestamp, given = headers.get("finale-timestamp", ""), headers.get("finale-signature", "")
    if not (timestamp.isascii() and timestamp.isdecimal()) or abs(now - int(timestamp)) > MOST_SECONDS:
        return False
    wanted = "v1=" + hmac.new(secret, timestamp.encode() + b"." + body, sha256).hexdigest()
    return hmac.compare_digest(wanted.encode(), given.encode(errors="replace"))


class Wallet:
    """Balances, and the ids of all grants that made them."""

    def __init__(self, path: str, items: frozenset[str] | None = None) -> None:
        self._path = path
        self._items = items  # the items that this game knows; None: all
        with closing(self._open()) as database:
            database.executescript(SCHEMA)

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=30, isolation_level=None)

    def take(self, grants: list[dict[str, Any]]) -> dict[str, Any]:
        """Pay each grant that was not paid before, all in one transaction, and say which are accepted.

        A grant that came before is accepted again, and pays nothing. Amounts are added: those of corrections may be
        negative, and may come before what they correct.
        """
        accepted, rejected = [], []
        with closing(self._open()) as database:
            database.execute("begin immediate")
            for grant in grants:
                if self._items is not None and grant["item"] not in self._items:
                    rejected.append({"grant_id": grant["grant_id"], "reason": f"no item {grant['item']} here"})
                    continue
                new = database.execute(
                    "insert into granted values (:grant_id, :player_id, :item, :amount) on conflict do nothing", grant
                ).rowcount
                if new:
                    database.execute(
                        "insert into wallet values (:player_id, :item, :amount)"
                        " on conflict (player_id, item) do update set amount = amount + excluded.amount",
                        grant,
                    )
                accepted.append(grant["grant_id"])
            database.execute("commit")  # only then may it be acknowledged
        return {"accepted": accepted, "rejected": rejected}

    def balance(self, player_id: str, item: str) -> int:
        """Return what a player has of an item."""
        with closing(self._open()) as database:
            row = database.execute(
                "select amount from wallet where player_id = ? and item = ?", (player_id, item)
            ).fetchone()
        return row[0] if row else 0

    def granted(self) -> list[str]:
        """Return the ids of all grants that were paid."""
        with closing(self._open()) as database:
            return [row[0] for row in database.execute("select grant_id from granted order by grant_id")]


def server(host: str, port: int, secret: bytes, wallet: Wallet) -> ThreadingHTTPServer:
    """Return a server that takes grants for ``wallet``; ``port`` 0 takes any that is free."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            if length > MOST_BYTES:
                return self._answer(413, {"error": "too large"})
            body = self.rfile.read(length)
            if not is_genuine(secret, {name.lower(): value for name, value in self.headers.items()}, body, time.time()):
                return self._answer(401, {"error": "not signed by Finale, or too old"})
            return self._answer(200, wallet.take(json.loads(body)["grants"]))

        def _answer(self, status: int, value: dict[str, Any]) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as http.server calls it
            """Keep quiet: ids of players are no matter for a log."""

    return ThreadingHTTPServer((host, port), Receiver)


if __name__ == "__main__":
    host, _, port = sys.argv[1].rpartition(":")
    with server(host, int(port), os.environ["FINALE_WEBHOOK_SECRET"].encode(), Wallet(sys.argv[2])) as running:
        running.serve_forever()
