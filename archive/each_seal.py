"""Seals of one kind read several at once, each compared with the path where it lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from archive.faults import Fault
from archive.objects import Store
from leaderboard.errors import ArchiveMismatchError

_AT_ONCE = 8  # requests: a bucket answers each after some 30 ms


class AnySeal(Protocol):
    """What a seal of any kind tells: where it belongs, and what it is called."""

    @property
    def path(self) -> str: ...
    @property
    def name(self) -> str: ...


SealT = TypeVar("SealT", bound=AnySeal)


def read_each(
    store: Store, paths: Sequence[str], parse: Callable[[bytes], SealT], expected: str
) -> list[tuple[SealT, bytes] | Fault]:
    """Return of each path the seal and its bytes, or why it is not ``expected``; raises what the store raises."""

    def read(path: str) -> tuple[SealT, bytes] | Fault:
        data = store.get(path)
        try:
            seal = parse(data)
        except ArchiveMismatchError as error:
            return Fault(path, f"{error.message}{f' ({error.detail})' if error.detail else ''}", expected=expected)
        if seal.path != path:
            return Fault(path, f"holds the seal of the {seal.name}", expected=path, found=seal.path)
        return seal, data

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="finale-seals") as pool:
        return list(pool.map(read, paths))
