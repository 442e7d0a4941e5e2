"""Reads one sorted set, in board order: each answer by one script, so from one version of the set."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from redis import Redis

from leaderboard.errors import UnavailableError
from live.rows import Place, Rows
from live.scripts import ask, run

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SingleSet:
    """One sorted set on ``client``, whose shared views may be read from ``replica``, a little behind it.

    A question may be asked twice: where a connection has broken, as after a failover, a new one is asked once more.
    """

    client: Redis
    key: str
    order: str  #: high | low
    replica: Redis | None = None

    def window(self, first: int, last: int) -> Rows | None:
        """Return the rows from index ``first`` to ``last``; from the replica, if there is one that answers.

        Above the first row of all there is nobody to be counted, so that a top is a plain command.
        """
        if last < first:
            return None
        if first:
            return rows_of(self._shared(lambda client: self._run(client, "window", self.order, first, last)))
        ids, scores = columns(self._shared(lambda client: self._top(client, last)))
        return Rows(0, 0, ids, scores) if ids else None

    def _top(self, client: Redis, last: int) -> Any:
        words = ("REV", "WITHSCORES") if self.order == "high" else ("WITHSCORES",)
        return ask(client, {self.key: "zset"}, "ZRANGE", self.key, 0, last, *words)

    def around(self, member: bytes, before: int, after: int) -> Rows | None:
        """Return the member's row with so many before and after, from the primary."""
        return rows_of(self._own("window", self.order, before, after, member))

    def place(self, member: bytes, *, by_member: bool) -> Place | None:
        """Return where the member stands, from the primary; ahead are those strictly better, or all before her."""
        reply = self._own("place", self.order, member, *(("member",) if by_member else ()))
        if not reply:
            return None
        ahead, players, score = reply
        return Place(ahead, players, float(score) + 0.0)

    def score(self, member: bytes) -> float | None:
        """Return the member's raw score, from the primary."""
        reply = self._asked("ZSCORE", self.key, member)
        return None if reply is None else float(reply) + 0.0

    def count(self) -> int:
        """Return how many members there are, from the primary."""
        return int(self._asked("ZCARD", self.key))

    def _asked(self, *command: bytes | str) -> Any:
        keys = {self.key: "zset"}
        try:
            return ask(self.client, keys, *command)
        except UnavailableError:  # as ``asked`` does
            return ask(self.client, keys, *command)

    def _own(self, script: str, *arguments: bytes | str | int) -> Any:
        try:
            return self._run(self.client, script, *arguments)
        except UnavailableError:
            return self._run(self.client, script, *arguments)

    def _run(self, client: Redis, script: str, *arguments: bytes | str | int) -> Any:
        return run(client, script, {self.key: "zset"}, *arguments)

    def _shared(self, question: Callable[[Redis], T]) -> T:
        if self.replica is not None:
            replica = self.replica
            with suppress(UnavailableError):  # the primary has what it has
                return asked(lambda: question(replica))
        try:
            return question(self.client)
        except UnavailableError:
            return question(self.client)


def asked(question: Callable[[], T]) -> T:
    """Return the answer to a question that changes nothing, asked once more where no answer came."""
    try:
        return question()
    except UnavailableError:
        return question()


def columns(reply: Any) -> tuple[list[bytes], list[float]]:
    """Return the members and the scores of a WITHSCORES reply of either protocol."""
    if reply and isinstance(reply[0], list | tuple):
        return [member for member, _ in reply], [float(score) + 0.0 for _, score in reply]
    return reply[0::2], [float(score) + 0.0 for score in reply[1::2]]


def rows_of(reply: Any) -> Rows | None:
    """Return the reply of ``window.lua`` as rows; None where it is empty."""
    if not reply:
        return None
    index, above, flat = reply
    return Rows(index, above, *columns(flat))
