"""Redis pages to Arrow to Parquet in object storage: read at one instant, staged, sealed, verified, read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archive.objects import Store


def read(board: str, season: str, *, store: Store | str) -> Any:
    """Return a sealed season's standings as one Arrow table in board order; its ``to_pandas()`` gives a frame.

    ``store`` is a URL such as ``file:///srv/archive``, or what ``archive.store.open_store`` made with credentials. Only
    parts that the seal names are read, and each is compared with its SHA-256. Raises UnknownNameError if the season is
    not sealed, ArchiveMismatchError if a part is missing or differs.
    """
    from archive import reading
    from archive.store import open_store

    return reading.read(open_store(store, {}) if isinstance(store, str) else store, board, season)
