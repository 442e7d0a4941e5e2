"""A Redis stream that a game consumes: entries appended in batches, each once also when an answer was lost.

Whoever appends remembers where the stream ended before its first try (``end``). A later try looks at what was appended
since, and a script appends what is missing: looking and appending are one, so a try that arrives late adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis import Redis

from live.scripts import run, send
from live.translate import translated

START = "0-0"  #: before the first entry of any stream
_PAGE = 1_000  # entries looked at in one call


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream. Every method raises UnavailableError, AccessError or WrongTypeError."""

    client: Redis = field(repr=False)
    key: str

    def end(self) -> str:
        """Return the id of the last entry, ``START`` of a stream without any."""
        reply = self._call("XREVRANGE", self.key.encode(), "+", "-", "COUNT", 1)
        return reply[0][0].decode() if reply else START

    def append(self, entries: Sequence[Mapping[str, bytes | str]], since: str) -> int:
        """Append the entries that no entry after ``since`` is; return how many that were. Safe to repeat.

        All entries have the same fields; the first tells which entry it is. After an error it has been done whole, or
        not at all.
        """
        names = list(entries[0])
        wanted = {_bytes(entry[names[0]]): entry for entry in entries}
        while wanted:
            seen, since = self._look(names[0].encode(), since)
            wanted = {name: entry for name, entry in wanted.items() if name not in seen}
            if not wanted:
                break
            values = [value for entry in wanted.values() for value in entry.values()]
            reply = run(self.client, "stream", {self.key: "stream"}, since, _PAGE, len(names), *names, *values)
            if reply != b"moved":
                return int(reply)
        return 0

    def _look(self, name: bytes, since: str) -> tuple[set[bytes], str]:
        """Return the values of the field ``name`` in all entries after ``since``, and the id of the last of them."""
        seen: set[bytes] = set()
        while page := self._call("XRANGE", self.key.encode(), f"({since}", "+", "COUNT", _PAGE):
            seen |= {fields[name] for _, fields in page if name in fields}
            since = page[-1][0].decode()
        return seen, since

    def _call(self, *command: bytes | str | int) -> Any:
        with translated(self.client, {self.key: "stream"}):
            return send(self.client, *command)


def _bytes(value: bytes | str) -> bytes:
    return value if isinstance(value, bytes) else value.encode()
