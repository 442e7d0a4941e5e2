"""An object of the store as a file that is read in pieces, so that Parquet readers fetch only what they need."""

from __future__ import annotations

import io

from archive.objects import Store

_KEPT = 64 * 1024  #: the largest piece that is kept, in bytes; a reader's first is the end of the file


class RangeFile(io.RawIOBase):
    """A sealed part of ``size`` bytes, opened without asking the store; each read asks for just those bytes.

    The bytes are not compared with the seal's SHA-256: that takes all of them. Reads raise what ``Store.get_range``
    raises. One thread at a time.
    """

    def __init__(self, store: Store, path: str, size: int) -> None:
        super().__init__()
        self._store = store
        self._path = path
        self._size = size
        self._at = 0
        self._kept = (0, b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(start + offset, 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        rest = max(self._size - self._at, 0)
        data = self.read_at(self._at, rest if size < 0 else min(size, rest))
        self._at += len(data)
        return data

    def read_at(self, start: int, length: int) -> bytes:
        """Return ``length`` bytes from ``start`` on, without asking again for what the last small read brought."""
        if not length:
            return b""
        first, kept = self._kept
        if not first <= start <= start + length <= first + len(kept):
            first, kept = start, self._store.get_range(self._path, start, length)
            if length > _KEPT:
                return kept
            self._kept = (first, kept)
        return kept[start - first : start - first + length]
