"""Commands sent to Redis and their replies read, on every connection: also on proof connections, and in pages.

A command that is "not done" is swallowed, and whatever follows it on that connection, as on one that has broken.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from redis import exceptions as redis_errors
from redis.connection import AbstractConnection

from archive.parser import ColumnParser
from live import scripts
from tests.harness.calls import Calls, Fate
from tests.harness.plan import Deed

_SCRIPTS = (
    *("apply", "claim", "current", "fence", "near", "place", "recount", "settle", "stream", "window"),
    *("withdraw", "withdraw_fence"),
)


class _Sent:
    """The fates of the commands that one socket has sent and not yet been answered; kept by its parser."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.fates: deque[Fate] = deque()
        self.broken: Deed | None = None

    @classmethod
    def by(cls, parser: Any) -> _Sent:
        """Return the fates of the parser's present socket."""
        sent = getattr(parser, "_harness", None)
        if not isinstance(sent, cls) or sent.socket is not parser._sock:
            sent = parser._harness = cls(parser._sock)
        return sent

    def check(self) -> None:
        """Raise the driver's error if the connection is to count as broken."""
        if self.broken:
            raise _redis_error(self.broken)


def _redis_error(lost: Deed) -> redis_errors.RedisError:
    kind = redis_errors.TimeoutError if lost == "timeout" else redis_errors.ConnectionError
    return kind(f"planned {lost}")


def install(calls: Calls) -> None:
    """Count every command."""
    connections: Any = AbstractConnection
    pages: Any = ColumnParser
    send, read = connections.send_packed_command, connections.read_response
    wait, receive, take = pages.await_reply, pages.receive_page, pages.take_page
    digests = {scripts.load(name).digest: name for name in _SCRIPTS}

    def hooked_send(self: Any, command: Any, check_health: bool = True) -> None:
        if not self._sock:
            self.connect_check_health(check_health=False)
        fate = calls.begin("redis", _command_text(command, digests))
        sent = _Sent.by(self._parser)
        sent.fates.append(fate)
        sent.broken = sent.broken or fate.before
        if not sent.broken:
            send(self, command, check_health)

    def hooked_read(self: Any, *args: Any, **options: Any) -> Any:
        sent = _Sent.by(self._parser)
        fate = sent.fates.popleft() if sent.fates else Fate()
        try:
            sent.check()
            try:
                return read(self, *args, **options)
            finally:
                answered(sent, fate)
        except (redis_errors.ConnectionError, redis_errors.TimeoutError):
            self.disconnect()
            raise

    def answered(sent: _Sent, fate: Fate) -> None:
        """Let the fate of a command whose reply was read come about."""
        calls.end(fate)
        if fate.after in ("fail", "timeout"):
            sent.broken = fate.after
        sent.check()

    def hooked_wait(self: Any) -> None:
        _Sent.by(self).check()
        wait(self)

    def hooked_receive(self: Any, rows: int) -> Any:
        _Sent.by(self).check()
        return receive(self, rows)

    def hooked_take(self: Any, rows: int) -> Any:
        page = take(self, rows)
        if page is not None:  # else the whole reply is still to be read as any other
            sent = _Sent.by(self)
            answered(sent, sent.fates.popleft())
        return page

    connections.send_packed_command, connections.read_response = hooked_send, hooked_read
    pages.await_reply, pages.receive_page, pages.take_page = hooked_wait, hooked_receive, hooked_take


def _command_text(packed: Any, digests: dict[str, str]) -> str:
    """Return the first words of a packed command, and for a script its name."""
    data = b"".join(packed) if isinstance(packed, list | tuple) else packed
    data = data.encode() if isinstance(data, str) else data
    words = [line.decode(errors="backslashreplace") for line in data[:400].split(b"\r\n")[2::2]]
    if words[0] == "EVALSHA":
        words[1] = digests[words[1]]
        words = words[:4] if words[1] == "stream" else words  # what follows are ids of entries, which are times
    elif words[0] == "ZRANGE":
        words = words[:2]  # where a page ends depends on how busy the server is
    elif words[0] == "XRANGE":
        words = words[:2]  # ids of entries are times
    elif words[0] == "EVAL":
        words = [words[0], "a script"]
    return " ".join(words[:5])[:120]
