"""The connection that holds a WATCH, and the proof that it is still the same connection to the same server.

It has no health checks and no retries, and it never reconnects: redis-py's own pipeline reconnects silently on a failed
health check and then executes without the WATCH.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from types import TracebackType
from typing import Any

from redis import exceptions as driver

from archive.columns import Page
from archive.once import Connect
from archive.parser import Arrival
from archive.refusals import WrongTypeError, refused, refused_hello, unanswered
from leaderboard.errors import FinaleError, OutcomeUnknownError, UnavailableError

Argument = str | bytes | int | float
# Replies that redis-py raises as connection errors although the server did answer.
_ANSWERS = (driver.ResponseError, driver.AuthenticationError, driver.BusyLoadingError)


class DisturbedError(FinaleError):
    """Somebody wrote to a watched key, or the proof does not hold any more. Nothing was changed; try again."""

    exit_code = 14


@dataclass(frozen=True, slots=True)
class Identity:
    """Who answers: the connection's number at the server, the server's role and the id of its run."""

    client_id: int
    role: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Watched:
    """What was true when the WATCH was answered: the identity, and the rows of each live key that exists."""

    identity: Identity
    rows: dict[str, int]


class ProofConnection:
    """One connection, connected when made, that watches keys, reads, and executes only if nothing has changed.

    Replies are bytes whatever the client's settings. Every method raises UnavailableError for a timeout or a broken
    connection (which is closed), AccessError for a refusal, WrongTypeError for a key that is not a sorted set.
    """

    def __init__(self, connect: Connect) -> None:
        self._connection = connect()
        self._pending: list[str] = []
        self._watched: Watched | None = None
        self._sent = 0.0
        self._round_trip = inf
        try:
            self._connection.connect()
        except driver.ResponseError as error:
            raise refused_hello(error, self.address) from None
        except driver.AuthenticationError as error:
            raise refused(error, self.address, "AUTH") from None
        except (driver.RedisError, OSError) as error:
            raise unanswered(error, self.address) from None

    def __enter__(self) -> ProofConnection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def address(self) -> str:
        """Where the server is: ``host:port``, the path of its socket, or whose primary the Sentinels did not name."""
        connection = self._connection
        service = getattr(getattr(connection, "connection_pool", None), "service_name", None)
        if service and not connection._sock:  # noqa: SLF001 - until then its host is a default
            return f"the primary of {service}"
        return str(getattr(connection, "path", "")) or f"{connection.host}:{connection.port}"

    @property
    def watched(self) -> Watched:
        """What :meth:`watch` found."""
        if self._watched is None:
            raise RuntimeError("nothing is watched yet")
        return self._watched

    def close(self) -> None:
        """Close the connection; the server forgets its WATCH with it."""
        self._pending.clear()
        self._connection.disconnect()

    def watch(self, *keys: str, beside: Sequence[str] = ()) -> Watched:
        """WATCH the live ``keys``, which must be sorted sets or missing, and keys of any type ``beside`` them.

        Everything is answered when this returns. Raises UnavailableError where the server is not a primary: a replica
        can miss a change that a full resynchronisation brings (final standings are read from the primary).
        """
        for key in (*keys, *beside):
            self.send("WATCH", key)
        for _ in (*keys, *beside):
            self.read()
        identity = _identity(self.command("CLIENT", "ID"), self.command("ROLE"), self.command("INFO", "server"))
        if identity.role != "master":
            raise UnavailableError(
                f"Redis at {self.address} is no primary, its role is {identity.role}",
                hint="name the primary: final standings are read and cleaned only there",
            )
        rows = {}
        for key in keys:
            kind = self.command("TYPE", key).decode()
            if kind == "zset":
                rows[key] = int(self.command("ZCARD", key))
            elif kind != "none":
                raise WrongTypeError(
                    f"the key {key!r} at Redis {self.address} is a key that is not a sorted set, its type is {kind}",
                    hint="check the board's key; nothing of it was touched",
                )
        self._watched = Watched(identity, rows)
        return self._watched

    def send(self, *args: Argument) -> None:
        """Send one command; its reply is read by :meth:`read`, in order."""
        try:
            self._connection.send_packed_command(self._connection.pack_command(*args), check_health=False)
        except (driver.RedisError, OSError) as error:
            self.close()
            raise unanswered(error, self.address) from None
        except BaseException:
            self.close()
            raise
        self._sent = time.monotonic()
        self._pending.append(str(args[0]))

    def read(self) -> Any:
        """Return the reply to the oldest command not yet read."""
        return self._answer(self._pending.pop(0), lambda: self._connection.read_response(disable_decoding=True))

    def await_page(self) -> float | None:
        """Wait until the reply to the one command under way begins; return the seconds that the server took for it.

        None if it had begun before anybody looked.
        """
        at = self._answer(self._pending[0], self._connection.columns.await_reply)
        # What a command that costs the server nothing takes is the way there and back.
        return None if at is None else max(at - self._sent - self._round_trip, 0.0)

    def receive_page(self, rows: int) -> Arrival:
        """Read the bytes of the oldest reply, that to a ZRANGE … WITHSCORES of ``rows`` rows; :meth:`page` decodes it.

        If they came whole, a command may be sent in between, so that the server works meanwhile. Otherwise only after:
        hiredis, which has to read the rest, reads what comes behind it too, and keeps it.
        """
        arrival: Arrival = self._answer(self._pending[0], lambda: self._connection.columns.receive_page(rows))
        return arrival

    def page(self, rows: int) -> Page | Any:
        """Return what was received: a page, or the reply as :meth:`read` gives it where it is no page of columns."""

        def take() -> Any:
            page = self._connection.columns.take_page(rows)
            return self._connection.read_response(disable_decoding=True) if page is None else page

        return self._answer(self._pending.pop(0), take)

    def rest(self) -> None:
        """Give back the memory into which pages were received: there are hundreds of connections of many shards."""
        self._connection.columns.give_back()

    def command(self, *args: Argument) -> Any:
        """Send one command and return its reply."""
        if self._pending:
            raise RuntimeError(f"the replies to {', '.join(self._pending)} are not read yet")
        self.send(*args)
        reply = self.read()
        self._round_trip = min(self._round_trip, time.monotonic() - self._sent)
        return reply

    def _answer(self, command: str, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except _ANSWERS as error:
            raise refused(error, self.address, command) from None
        except (driver.RedisError, OSError) as error:
            self.close()
            raise unanswered(error, self.address) from None
        except BaseException:
            # A read that was broken off leaves half a reply behind.
            self.close()
            raise

    def forget_pending(self) -> None:
        """Read, and drop, the replies that are still under way."""
        while self._pending:
            with suppress(WrongTypeError):
                self.read()

    def exec(self, *commands: Sequence[Argument]) -> list[Any]:
        """Execute ``commands`` in one transaction, if nothing that is watched has changed; return their replies.

        The proof is asked for before MULTI, so that a changed server is never given the commands, and again inside the
        transaction. Raises DisturbedError when EXEC comes back empty or a proof differs, and OutcomeUnknownError when
        commands were given and the answer to EXEC was lost, or came with another proof. The WATCH ends with it.
        """
        watched, proofs = self.watched, self._proofs()
        self._check(watched, proofs)
        self._queue([*proofs, *commands])
        replies = self._execute(writes=bool(commands))
        self._watched = None
        if replies is None:
            raise self._disturbed("a watched key was written to while it was read")
        for reply, command in zip(replies, [*proofs, *commands], strict=True):
            if isinstance(reply, driver.RedisError):
                raise refused(reply, self.address, str(command[0]))
        if difference := _difference(watched, replies):
            raise self._unknown(difference) if commands else self._disturbed(difference)
        return replies[len(proofs) :]

    def unchanged(self) -> None:
        """Prove that nothing watched has changed with a transaction of no commands, which a full server allows.

        For whoever only reads. The proof is asked for before it and after it, on the one connection. Otherwise as
        ``exec`` without commands, whose proof stands in the transaction itself. The WATCH ends with it.
        """
        watched, proofs = self.watched, self._proofs()
        self._check(watched, proofs)
        self._queue([])
        replies = self._execute(writes=False)
        self._watched = None
        if replies is None:
            raise self._disturbed("a watched key was written to while it was read")
        self._check(watched, proofs)

    def _proofs(self) -> list[Sequence[Argument]]:
        return [("CLIENT", "ID"), ("ROLE",), ("INFO", "server"), *(("ZCARD", key) for key in self.watched.rows)]

    def _check(self, watched: Watched, proofs: Sequence[Sequence[Argument]]) -> None:
        """Raise DisturbedError unless the replies to ``proofs`` are what was true at WATCH."""
        try:
            replies = [self.command(*proof) for proof in proofs]
        except WrongTypeError:
            raise self._disturbed("a watched key is not a sorted set any more") from None
        if difference := _difference(watched, replies):
            raise self._disturbed(difference)

    def _queue(self, commands: Sequence[Sequence[Argument]]) -> None:
        """Send MULTI and ``commands``, and see each accepted. A refusal closes the connection: nothing was executed."""
        try:
            self.command("MULTI")
            for command in commands:
                self.send(*command)
            for _ in commands:
                self.read()
        except FinaleError:
            self.close()
            raise

    def _execute(self, *, writes: bool) -> list[Any] | None:
        try:
            self._connection.send_packed_command(self._connection.pack_command("EXEC"), check_health=False)
            reply: list[Any] | None = self._connection.read_response(disable_decoding=True)
        except _ANSWERS as error:
            raise refused(error, self.address, "EXEC") from None
        except (driver.RedisError, OSError) as error:
            self.close()
            if not writes:
                raise unanswered(error, self.address) from None
            raise self._unknown(str(error)) from None
        except BaseException:
            self.close()
            raise
        return reply

    def _unknown(self, detail: str) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            f"Redis at {self.address} was told to execute, and whether it did is not known",
            detail=detail,
            hint="run again: it looks first at what was done",
        )

    def _disturbed(self, detail: str) -> DisturbedError:
        return DisturbedError(
            f"Redis at {self.address}: what was read is not one instant",
            detail=detail,
            hint="run again; if it goes on, stop what writes to the key",
        )


def _identity(client_id: int, role: list[Any], info: bytes) -> Identity:
    """Return the identity in the replies to CLIENT ID, ROLE and INFO server."""
    fields = dict(line.partition(b":")[::2] for line in info.split(b"\r\n"))
    return Identity(int(client_id), role[0].decode(), fields.get(b"run_id", b"").decode())


def _difference(watched: Watched, proofs: list[Any]) -> str:
    """Return what differs between ``watched`` and the replies to the proof commands now; nothing if nothing does."""
    now = _identity(*proofs[:3])
    if now != watched.identity:
        return f"the server that answers is another: {watched.identity} at WATCH, {now} now"
    for (key, rows), count in zip(watched.rows.items(), proofs[3 : 3 + len(watched.rows)], strict=True):
        if count != rows:
            return f"{key} had {rows:,} rows at WATCH and has {count:,} now"
    return ""
