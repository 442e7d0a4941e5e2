"""A store whose calls go wrong as a script says, one letter a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from archive.store import ObjectExistsError, Store, StoredObject
from leaderboard.errors import OutcomeUnknownError, UnavailableError

T = TypeVar("T")


class Killed(BaseException):
    """The process ended here."""


class FaultyStore:
    """Passes calls on to ``inner``; after the script's last letter everything goes well.

    ``.`` goes well; ``n`` fails, not done; ``u`` answer lost, not done; ``d`` answer lost, done; ``t`` gives half of
    the bytes; ``k`` killed before; ``K`` killed after; ``c`` and ``C`` say that something is there, not done and done
    (of a put: 409 or 412); ``s`` lists every object a byte longer than it is. ``calls`` lists what was asked, as
    ``put_new path``.
    """

    def __init__(self, inner: Store, script: str = "") -> None:
        self.inner = inner
        self.calls: list[str] = []
        self._script = iter(script)

    @property
    def url(self) -> str:
        return self.inner.url

    def put_new(self, path: str, data: bytes) -> None:
        self._scripted(f"put_new {path}", lambda: self.inner.put_new(path, data), OutcomeUnknownError)

    def get(self, path: str) -> bytes:
        return self._scripted(f"get {path}", lambda: self.inner.get(path), UnavailableError)

    def get_range(self, path: str, start: int, length: int) -> bytes:
        call = f"get_range {path} {start} {length}"
        return self._scripted(call, lambda: self.inner.get_range(path, start, length), UnavailableError)

    def list(self, prefix: str) -> Iterator[StoredObject]:
        yield from self._scripted(f"list {prefix}", lambda: [*self.inner.list(prefix)], UnavailableError)

    def delete(self, path: str) -> None:
        self._scripted(f"delete {path}", lambda: self.inner.delete(path), OutcomeUnknownError)

    def _scripted(self, call: str, act: Callable[[], T], lost: type[Exception]) -> T:
        self.calls.append(call)
        letter = next(self._script, ".")
        if letter == "n":
            raise UnavailableError(f"{call}: scripted, not done")
        if letter == "u":
            raise lost(f"{call}: scripted, not done, answer lost")
        if letter == "k":
            raise Killed(call)
        if letter == "c":
            raise ObjectExistsError(f"{call}: scripted, a conflict")
        result = act()
        if letter == "C":
            raise ObjectExistsError(f"{call}: scripted, done")
        if letter == "s":
            assert isinstance(result, list)
            return [replace(found, size=found.size + 1) for found in result]  # type: ignore[return-value]  # T is a list
        if letter == "d":
            raise lost(f"{call}: scripted, done, answer lost")
        if letter == "K":
            raise Killed(call)
        if letter == "t":
            assert isinstance(result, bytes)
            return result[: len(result) // 2]  # type: ignore[return-value]  # T is bytes here
        return result
