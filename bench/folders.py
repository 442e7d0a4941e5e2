"""Where a bench has its data: a folder of its own that goes with it, or one that is kept for the next call."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def data_folder(kept: Path | None) -> Iterator[Path]:
    """Yield the folder ``kept``, made if it is not there, or a temporary one; the servers' own user can reach it."""
    if kept is not None:
        kept.mkdir(mode=0o755, exist_ok=True)
        yield kept.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="finale-bench-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
