"""Sealed bytes from the store, never believed before their SHA-256 was compared with the seal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from archive.faults import Fault, NotAsSealedError
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
        raise NotAsSealedError(
            f"{store.url}: {path} is missing", faults=[Fault(path, "is missing")], hint="restore it from a backup"
        ) from None
    found = hashlib.sha256(data).hexdigest()
    if len(data) != part.size or found != part.sha256:
        here, sealed = f"{len(data):,} bytes with SHA-256 {found}", f"{part.size:,} with {part.sha256}"
        what = f"is not the part that was sealed: {here}; the seal says {sealed}"
        raise NotAsSealedError(
            f"{store.url}: {path} is not the part that was sealed",
            faults=[Fault(path, what, expected=part.sha256, found=found)],
            detail=f"{here}; the seal says {sealed}",
            hint="restore it from a backup",
        )
    return data


def open_part(path: str, part: Part, data: bytes) -> Any:
    """Return ``data`` as a pyarrow ParquetFile; raise ArchiveMismatchError if it is none, or has other rows."""
    try:
        file = pq.ParquetFile(BytesIO(data))
    except pa.ArrowException as error:
        detail = str(error).partition("\n")[0]
        fault = Fault(path, f"is no Parquet file: {detail}", expected="Parquet")
        raise NotAsSealedError(f"{path} is no Parquet file", faults=[fault], detail=detail) from None
    if (rows := file.metadata.num_rows) != part.rows:
        fault = Fault(path, f"has {rows:,} rows, the seal says {part.rows:,}", expected=part.rows, found=rows)
        raise NotAsSealedError(str(fault), faults=[fault])
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


def place_faults(store: Store, place: str, parts: Sequence[Part]) -> list[Fault]:
    """Return how a published place differs from its seal: parts missing or of another size, files not sealed."""
    sealed = {f"{place}/{part.name}": part.size for part in parts}
    found = {stored.path: stored.size for stored in store.list(place)}
    return [
        *(Fault(path, "is missing", expected=size) for path, size in sealed.items() if path not in found),
        *size_faults(found, place, parts),
        *(Fault(path, "was not sealed", found=size) for path, size in found.items() if path not in sealed),
    ]


def size_faults(found: Mapping[str, int], place: str, parts: Sequence[Part]) -> list[Fault]:
    """Return the parts of ``place`` that are there in another size than sealed; ``found`` has the sizes by path."""
    sealed = {f"{place}/{part.name}": part.size for part in parts}
    return [
        Fault(path, f"has {found[path]:,} bytes, the seal says {size:,}", expected=size, found=found[path])
        for path, size in sealed.items()
        if found.get(path, size) != size
    ]


def parts_faults(
    store: Store, place: str, parts: Sequence[Part], content: Callable[[str, Any], list[Fault]]
) -> list[Fault]:
    """Return every fault of the parts in ``place``, of files there that were not sealed, and what ``content`` finds.

    ``content`` is handed the path and the opened file of each part whose bytes are as sealed.
    """
    paths = {f"{place}/{part.name}" for part in parts}
    faults = [fault for fault in place_faults(store, place, parts) if fault.file not in paths]
    for part in parts:
        path = f"{place}/{part.name}"
        try:
            faults += content(path, open_part(path, part, fetch_part(store, place, part)))
        except NotAsSealedError as error:
            faults += error.faults
    return faults
