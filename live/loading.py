"""Builds a sorted set at the pace of mass insertion: commands encoded from columns, many under way on one connection.

The set is built under a private name beside the live key and takes its place in one script, on the same connection: if
anything that was sent before was lost in a failover, so is the swap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from redis import Redis
from redis.exceptions import AskError, MovedError

from leaderboard.bands import Scale
from leaderboard.errors import LeaseLostError, OutcomeUnknownError, UnavailableError
from leaderboard.keys import building_keys, helper_key
from leaderboard.marks import Mark, new_token
from live.errors import LostWritesError
from live.nodes import serving
from live.scripts import load
from live.translate import address, translated

ROWS = 500  #: a command; the server answers others between two of them
_SENT = 16  # commands that go out together, before the replies to those before them are read
_LENGTHS = 1 << 16  # members whose length line is looked up; longer ones are no players'

Doubles = NDArray[np.float64]


def encode(members: Any, scores: Doubles) -> tuple[memoryview, NDArray[np.int32]]:
    """Return score and member of every row as a command has them, one after another, and where each row begins.

    ``members`` is an Arrow array of binary, ``scores`` whole numbers below 2^53. Rule: Redis serialization protocol.
    """
    text = pa.array(scores.astype(np.int64)).cast(pa.string()).cast(pa.binary())
    rows = pc.binary_join_element_wise(
        _header(b"", text), text, _header(b"\r\n", members), members, pa.scalar(b"\r\n"), pa.scalar(b"")
    )
    offsets = np.frombuffer(rows.buffers()[1], np.int32, len(rows) + 1, rows.offset * 4)
    return memoryview(rows.buffers()[2]), offsets


def _header(before: bytes, values: Any) -> Any:
    """Return what stands before each value: the end of the line ``before``, and its length."""
    lengths = pc.binary_length(values)
    most = max(pc.max(lengths).as_py() or 0, 0)
    if most < _LENGTHS:
        lines = pa.array([b"%b$%d\r\n" % (before, length) for length in range(most + 1)], pa.binary())
        return lines.take(lengths)
    return pa.array([b"%b$%d\r\n" % (before, length) for length in lengths.to_pylist()], pa.binary())


@dataclass(frozen=True, slots=True)
class Place:
    """A live key that is built anew, the name its helpers stand beside, and the runner's fence."""

    live: str
    own: str
    fence: int

    @property
    def built(self) -> str:
        """The private name of what is being built."""
        return self.names[0]

    @property
    def names(self) -> tuple[str, str, str]:
        """All names that an attempt may leave behind."""
        return building_keys(self.own, self.fence)


class Building:
    """One sorted set under construction, over one connection that is never opened a second time.

    Every method raises UnavailableError or AccessError; nothing that players see has changed then.
    """

    def __init__(self, client: Redis, place: Place) -> None:
        self.place = place
        self.rows = 0
        self._server = serving(client, place.live)
        self._pool: Any = self._server.connection_pool
        with translated(self._server, {}):
            self._connection: Any = self._pool.get_connection()
        self._expected = 0
        self._waiting = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self._connection.disconnect()
        self._pool.release(self._connection)

    def add(self, rows: tuple[memoryview, NDArray[np.int32]]) -> None:
        """Send the rows that :func:`encode` made; no member is sent twice."""
        data, offsets = rows
        key = self.place.built.encode()
        commands = []
        for first in range(0, len(offsets) - 1, ROWS):
            last = min(first + ROWS, len(offsets) - 1)
            header = b"*%d\r\n$4\r\nZADD\r\n$%d\r\n%b\r\n" % (2 * (last - first) + 2, len(key), key)
            commands.append((header, data[offsets[first] : offsets[last]]))
        for at in range(0, len(commands), _SENT):
            group = commands[at : at + _SENT]
            with self._told():
                self._connection.send_packed_command([part for pair in group for part in pair], check_health=False)
            self._read(self._waiting)
            self._waiting = len(group)
        self._expected += len(offsets) - 1

    def finish(self, scale: Scale | None) -> None:
        """See that every row has arrived, and count the players of each band. Raises UnavailableError for too few."""
        self._read(self._waiting)
        self._waiting = 0
        if self.rows != self._expected:
            raise UnavailableError(
                f"{self.place.built} has {self.rows:,} of {self._expected:,} players",
                hint="something else writes to that name, or a player was sent twice: run the command again",
            )
        if scale is not None:
            names = self.place.names[:2]
            self._command("EVAL", load("recount").source, 2, *names, scale.text, "repair")

    def swap(self, buckets: Mapping[int, tuple[int, Mark]]) -> dict[int, Mark]:
        """Let what was built take the live key's place, and return how far each bucket has got with that.

        ``buckets`` has the fence of every bucket and how far it was written. Raises LeaseLostError for another's fence
        and LostWritesError where the server has lost what was built; then all is as it was. OutcomeUnknownError: the
        answer was lost; build again.
        """
        place = self.place
        names = [place.live, place.built, *place.names[1:]]
        names += [helper_key(place.own, kind) for kind in ("fence", "applied", "bands", "moving")]
        tokens = {bucket: new_token(fence) for bucket, (fence, _) in buckets.items()}
        told = [
            value for bucket, (fence, mark) in buckets.items() for value in (bucket, fence, mark.number, tokens[bucket])
        ]
        try:
            reply = self._command("EVAL", load("swap").source, len(names), *names, place.fence, self.rows, *told)
        except UnavailableError as error:
            raise OutcomeUnknownError(
                f"{place.live} was to be replaced, and whether it was is not known",
                detail=error.detail,
                hint="run the command again: it builds the board anew",
            ) from error
        word = reply[0]
        if word == b"rows":
            raise LostWritesError(
                f"{place.built} has {reply[1]:,} of {self.rows:,} players: the server has lost some",
                hint="nothing was changed; run the command again",
            )
        if word != b"swapped":
            raise LeaseLostError(
                f"{place.live} was not replaced: another has taken over",
                detail="the season" if word == b"fenced" else f"bucket {int(reply[1])} of its players",
                hint="nothing was changed; run the command again when the other is done",
            )
        return {bucket: Mark(mark.number + 1, tokens[bucket].hex()) for bucket, (_, mark) in buckets.items()}

    def _read(self, replies: int) -> None:
        with self._told():
            for _ in range(replies):
                self.rows += self._connection.read_response(disable_decoding=True)

    def _command(self, *words: Any) -> Any:
        with self._told():
            self._connection.send_packed_command(self._connection.pack_command(*words), check_health=False)
            return self._connection.read_response(disable_decoding=True)

    @contextmanager
    def _told(self) -> Iterator[None]:
        with translated(self._server, {self.place.built: "zset"}):
            try:
                yield
            except (MovedError, AskError) as error:
                raise UnavailableError(
                    f"{address(self._server)} serves {self.place.live} no more: its slot is moving",
                    hint="run the command again",
                ) from error


def forget(client: Redis, names: Sequence[str]) -> int:
    """UNLINK what earlier attempts have left, key by key; return how many there were."""
    with translated(client, {}):
        return sum(int(client.unlink(name)) for name in names)
