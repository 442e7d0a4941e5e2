"""The receiver of docs/receiver.py, made to misbehave: it stores as it should, and answers as it must not."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

SECRET = "0123456789abcdef-of-a-test"


def _reference() -> Any:
    path = Path(__file__).parents[2] / "docs/receiver.py"
    spec = importlib.util.spec_from_file_location("receiver", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = _reference()


@dataclass
class Receiver:
    """A running receiver. ``script`` says, a word a request, how each is answered; "ok" once it has run out.

    ``meanwhile`` is done once, while the next request waits for its answer.
    """

    url: str
    wallet: Any
    script: list[str]
    requests: list[dict[str, Any]] = field(default_factory=list)  #: the bodies that came, with their headers
    released: threading.Event = field(default_factory=threading.Event)
    meanwhile: Callable[[], object] | None = None

    def forget(self, folder: Path) -> None:
        """Begin anew with an empty wallet in this folder."""
        self.wallet = reference.Wallet(str(folder / f"wallet-{uuid4().hex[:8]}.sqlite3"))

    @property
    def ids(self) -> list[str]:
        """The ids of all grants that were paid, each once as it must be."""
        found: list[str] = self.wallet.granted()
        return found

    def balances(self) -> dict[tuple[str, str], int]:
        """Return what every player has of every item."""
        with sqlite3.connect(self.wallet._path) as database:
            rows = database.execute("select player_id, item, amount from wallet").fetchall()
        return {(player, item): amount for player, item, amount in rows}


@contextmanager
def receiver(folder: Path, script: Sequence[str] = (), items: frozenset[str] | None = None) -> Iterator[Receiver]:
    """Run a receiver on a free port for the length of the block."""
    wallet = reference.Wallet(str(folder / "wallet.sqlite3"), items)
    state = Receiver("", wallet, list(script))
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock:
                state.requests.append({"headers": headers, "body": body})
                word = state.script.pop(0) if state.script else "ok"
                meanwhile, state.meanwhile = state.meanwhile, None
            if meanwhile is not None:
                meanwhile()
            code, extra, answer = self._decide(word, headers, body)
            if answer is None:
                self.close_connection = True
                return
            head = "".join(f"{name}: {value}\r\n" for name, value in extra.items())
            message = f"HTTP/1.1 {code} Fine\r\n{head}content-length: {len(answer)}\r\n\r\n".encode() + answer
            with suppress(OSError):
                self.wfile.write(message * (2 if word == "twice" else 1))

        def _decide(self, word: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes | None]:
            if word.isdecimal():
                return int(word), {}, b"no"
            if word.startswith("429 "):
                return 429, {"retry-after": word[4:]}, b"slow down"
            if word == "redirect":
                return 307, {"location": state.url + "elsewhere"}, b""
            if not reference.is_genuine(SECRET.encode(), headers, body, int(headers["finale-timestamp"])):
                return 401, {}, b"who are you"
            grants = json.loads(body)["grants"]
            if word == "half":  # takes the first half, and says nothing of the rest
                grants = grants[: len(grants) // 2]
            answer = state.wallet.take(grants)
            return 200, {}, self._answer(word, answer)

        def _answer(self, word: str, answer: dict[str, Any]) -> bytes | None:
            if word == "lost":
                return None
            if word == "late":
                state.released.wait(30)
            elif word == "huge":
                return json.dumps({**answer, "padding": "x" * 3_000_000}).encode()
            elif word == "garbage":
                return b"<html>it worked!"
            elif word == "nothing":
                return b""
            elif word == "list":
                return json.dumps(answer["accepted"]).encode()
            return json.dumps(answer).encode()

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that was killed is no error of the receiver."""

    with Server(("127.0.0.1", 0), Handler) as server:
        host, port = server.server_address[:2]
        state.url = f"http://{host!s}:{port}/"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield state
        finally:
            state.released.set()
            server.shutdown()
            thread.join()
