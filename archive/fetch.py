"""Sealed bytes from the store, never believed before their SHA-256 was compared with the seal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from archive.layout import Kind, seal_path
from archive.objects import ObjectMissingError, Store
from archive.parts import Part
from archive.seal import Seal
from leaderboard.errors import ArchiveMismatchError, UnknownNameError


def load_seal(store: Store, board: str, season: str, kind: Kind = "standings") -> Seal:
    """Return the seal of a season's standings or grants.

    Raises UnknownNameError if there is none, and ArchiveMismatchError if it is none, or another season's.
    """
    path = seal_path(board, season, kind)
    try:
        data = store.get(path)
    except ObjectMissingError:
        raise UnknownNameError(
            f"the {kind} of {board}/{season} are not sealed",
            detail=f"{store.url} has no {path}",
            hint="finale archive list shows what is",
        ) from None
    by_hand = "restore it from a backup; finale archive verify --all tells what else is not as sealed"
    try:
        seal = Seal.parse(data)
    except ArchiveMismatchError as error:
        raise ArchiveMismatchError(
            f"{store.url}: {path}: {error.message}", detail=error.detail, hint=error.hint or by_hand
        ) from None
    if seal.path != path:
        raise ArchiveMismatchError(f"{store.url}: {path} holds the seal of the {seal.name}", hint=by_hand)
    return seal


def fetch_part(store: Store, folder: str, part: Part) -> bytes:
    """Return the bytes of ``part`` in ``folder``; raise ArchiveMismatchError if it is missing or other than sealed."""
    path = f"{folder}/{part.name}"
    try:
        data = store.get(path)
    except ObjectMissingError:
        raise ArchiveMismatchError(f"{store.url}: {path} is missing", hint="restore it from a backup") from None
    found = hashlib.sha256(data).hexdigest()
    if len(data) != part.size or found != part.sha256:
        raise ArchiveMismatchError(
            f"{store.url}: {path} is not the part that was sealed",
            detail=f"{len(data):,} bytes with SHA-256 {found}; the seal says {part.size:,} with {part.sha256}",
            hint="restore it from a backup",
        )
    return data


def open_part(path: str, part: Part, data: bytes) -> Any:
    """Return ``data`` as a pyarrow ParquetFile; raise ArchiveMismatchError if it is none, or has other rows."""
    try:
        file = pq.ParquetFile(BytesIO(data))
    except pa.ArrowException as error:
        raise ArchiveMismatchError(f"{path} is no Parquet file", detail=str(error).partition("\n")[0]) from None
    if file.metadata.num_rows != part.rows:
        raise ArchiveMismatchError(f"{path} has {file.metadata.num_rows:,} rows, the seal says {part.rows:,}")
    return file


def sealed_file(store: Store, seal: Seal, part: Part) -> Any:
    """Return a published part as a pyarrow ParquetFile in memory, once it was found to be the one that was sealed."""
    return open_part(f"{seal.place}/{part.name}", part, fetch_part(store, seal.place, part))


def read_parts_checked(store: Store, seal: Seal, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield every row of a seal, of these ``columns`` or all, as Arrow record batches in order, a part in memory.

    Raises ArchiveMismatchError at the first part that is missing, differs, or has other rows than sealed.
    """
    for part in seal.facts.parts:
        yield from sealed_file(store, seal, part).iter_batches(columns=list(columns) if columns else None)


def place_faults(store: Store, seal: Seal) -> list[str]:
    """Return how the published place differs from the seal: parts missing or of another size, files not sealed."""
    sealed = {f"{seal.place}/{part.name}": part.size for part in seal.facts.parts}
    found = {stored.path: stored.size for stored in store.list(seal.place)}
    return [
        *(f"{path} is missing" for path in sealed if path not in found),
        *(
            f"{path} has {found[path]:,} bytes, the seal says {size:,}"
            for path, size in sealed.items()
            if found.get(path, size) != size
        ),
        *(f"{path} was not sealed" for path in found if path not in sealed),
    ]
