"""A store that counts the bytes it gives out."""

from __future__ import annotations

from collections.abc import Iterator

from archive.store import Store, StoredObject


class CountingStore:
    """Passes calls on to ``inner``; ``read`` has the bytes given out of each path, ``whole`` the paths got whole."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.read: dict[str, int] = {}
        self.whole: list[str] = []

    @property
    def url(self) -> str:
        return self.inner.url

    def put_new(self, path: str, data: bytes) -> None:
        self.inner.put_new(path, data)

    def get(self, path: str) -> bytes:
        self.whole.append(path)
        return self._counted(path, self.inner.get(path))

    def get_range(self, path: str, start: int, length: int) -> bytes:
        return self._counted(path, self.inner.get_range(path, start, length))

    def list(self, prefix: str) -> Iterator[StoredObject]:
        return self.inner.list(prefix)

    def delete(self, path: str) -> None:
        self.inner.delete(path)

    def _counted(self, path: str, data: bytes) -> bytes:
        self.read[path] = self.read.get(path, 0) + len(data)
        return data
