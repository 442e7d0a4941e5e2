"""How much room is left where an archive, a database or Finale's own files lie."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from archive.folder import FolderStore
from archive.objects import Store


def free_bytes(store: Store) -> int | None:
    """Return how much room a folder's disk has; None for a bucket, which has no such bound."""
    if not isinstance(store, FolderStore):
        return None
    return free_at(store.root)


def free_at(path: Path) -> int | None:
    """Return the free bytes of the disk that has ``path``, or will have it; None where that cannot be told."""
    for place in (path, *path.parents):
        with suppress(OSError):
            return shutil.disk_usage(place).free
    return None
