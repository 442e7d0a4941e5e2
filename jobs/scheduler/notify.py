"""Tells a webhook of what a person should hear of: holds, failures, drift, overdue seasons, servers that are away, and
what is done.

Slack's form is one text; the generic one an object a program can read. What cannot be sent is logged and forgotten:
nothing waits for a notification, and none is needed for anything to be right.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from config.texts import read_secret
from leaderboard.errors import ConfigError

Kind = Literal["hold", "failure", "drift", "overdue", "done", "away", "back"]
Format = Literal["slack", "generic"]
_SIGNS: dict[Kind, str] = {
    "hold": "ON HOLD",
    "failure": "failed",
    "drift": "drifts",
    "overdue": "overdue",
    "done": "done",
    "away": "cannot ask its {server}",
    "back": "can ask its {server} again",
}


@dataclass(frozen=True, slots=True)
class Note:
    """``season`` is empty where it is about a server, which is then ``server``, or about no season at all."""

    kind: Kind
    season: str
    step: str
    message: str
    hint: str = ""
    server: str = "ledger"

    @property
    def about(self) -> str:
        """What it is told of: a season, a board, or a server."""
        return self.season or self.server

    def body(self, form: Format) -> dict[str, Any]:
        """Return the JSON that is sent."""
        if form == "slack":
            hint = f"\n_{_escaped(self.hint)}_" if self.hint else ""
            step = f" ({self.step})" if self.step else ""
            message = f": {_escaped(self.message)}" if self.message else ""
            sign = _SIGNS[self.kind].format(server=self.server)
            return {"text": f"*{self.season or 'Finale'}* {sign}{step}{message}{hint}"}
        return {
            "event": f"{self._subject}.{self.kind}",
            "season": self.season,
            "step": self.step,
            "message": self.message,
            "hint": self.hint,
        }

    @property
    def _subject(self) -> str:
        """The first word of the event; seasons are named ``board/season``, and a board has no such name."""
        return self.server if not self.season else "season" if "/" in self.season else "board"


def _escaped(text: str) -> str:
    """Return text as Slack shows it: its three control characters replaced (Slack's reference, formatting)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@dataclass
class Notifier:
    """Sends notes from a thread of its own, each of a season's present trouble once."""

    url: str
    form: Format
    failed: Callable[[str], None] = lambda _: None
    _notes: queue.SimpleQueue[Note | None] = field(default_factory=queue.SimpleQueue)
    _told: set[tuple[str, str, str]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def tell(self, note: Note) -> None:
        """Send the note soon, unless the same has been told since the season's last step was done, the server back.

        A hold is always sent: the ledger knows which are new, and the same reason again is one. Any thread may call it.
        """
        told = (note.about, note.kind, note.message)
        with self._lock:
            if note.kind in ("done", "back"):
                self._told = {one for one in self._told if one[0] != note.about}
            if told in self._told and note.kind != "hold":
                return
            self._told.add(told)
            self._notes.put(note)

    def __enter__(self) -> Notifier:
        self._thread = threading.Thread(target=self._send_all, name="finale-notify", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._notes.put(None)
        if self._thread:
            self._thread.join(20)

    def _send_all(self) -> None:
        import httpx

        with httpx.Client(timeout=5, follow_redirects=False) as client:
            while (note := self._notes.get()) is not None:
                try:
                    client.post(self.url, json=note.body(self.form)).raise_for_status()
                except httpx.HTTPStatusError as error:
                    self.failed(f"the webhook answered {error.response.status_code}")
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    self.failed(f"the webhook did not answer: {type(error).__name__}")


def notifier(environ: Mapping[str, str], failed: Callable[[str], None]) -> Notifier | None:
    """Return the notifier that the environment asks for, None if it asks for none.

    ``FINALE_NOTIFY_URL``, or a file named by ``FINALE_NOTIFY_URL_FILE``, is a secret; ``FINALE_NOTIFY_FORMAT`` is
    ``slack`` or ``generic``. Raises ConfigError that names the variable at fault.
    """
    url = environ.get("FINALE_NOTIFY_URL", "").strip()
    if not url and (file := environ.get("FINALE_NOTIFY_URL_FILE")):
        url = read_secret("FINALE_NOTIFY_URL_FILE", file)
    form = environ.get("FINALE_NOTIFY_FORMAT") or "generic"
    if form not in ("slack", "generic"):
        raise ConfigError(
            f"FINALE_NOTIFY_FORMAT = {form!r} is neither slack nor generic",
            hint="leave it out, or set it to slack or generic",
        )
    if not url:
        return None
    if not url.startswith(("https://", "http://")):
        raise ConfigError("FINALE_NOTIFY_URL is no http or https URL", hint="it is a secret, so it is not shown here")
    return Notifier(url, "slack" if form == "slack" else "generic", failed)
