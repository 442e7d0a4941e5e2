"""Single rows of sealed standings by their position, without reading what lies between."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import Any

from archive.fetch import sealed_file
from archive.objects import Store
from archive.seal import Seal

_KEPT = 2  # parts in memory


class Positions:
    """Rows of a season's sealed standings. A part is fetched once, compared with its SHA-256, and kept for a while."""

    def __init__(self, store: Store, seal: Seal) -> None:
        self._store, self._seal = store, seal
        self._starts = [0, *accumulate(part.rows for part in seal.facts.parts)]
        self._files: dict[int, Any] = {}
        self._group: tuple[int, int, Any] = (-1, -1, None)

    @property
    def rows(self) -> int:
        return self._seal.facts.rows

    def row(self, position: int) -> dict[str, Any]:
        """Return the row at ``position``, counted from 1, as a dictionary of its columns.

        Raises LookupError for a position that there is not, ArchiveMismatchError for a part that is not as sealed.
        """
        if not 1 <= position <= self.rows:
            raise LookupError(position)
        part = bisect_right(self._starts, position - 1) - 1
        file, at = self._file(part), position - 1 - self._starts[part]
        for group in range(file.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            if at < size:
                break
            at -= size
        if self._group[:2] != (part, group):
            self._group = (part, group, file.read_row_group(group))
        found: dict[str, Any] = self._group[2].slice(at, 1).to_pylist()[0]
        return found

    def _file(self, part: int) -> Any:
        if part not in self._files:
            while len(self._files) >= _KEPT:
                del self._files[next(iter(self._files))]
            self._files[part] = sealed_file(self._store, self._seal, self._seal.facts.parts[part])
        return self._files[part]
