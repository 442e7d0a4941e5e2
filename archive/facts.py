"""Facts from outside that decided grants: Parquet files below ``facts/``, named after their content, never changed."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pyarrow.compute as pc

from archive.faults import Fault, NotAsSealedError
from archive.fetch import open_part
from archive.layout import facts_dir
from archive.objects import ObjectMissingError, Store, settle
from archive.parts import Part, encode
from archive.sealed_grants import FactFile


def encode_facts(kind: str, table: Any, told: str) -> tuple[FactFile, bytes]:
    """Return the file that holds ``table``, in order of its players, and its bytes: the same for the same facts."""
    data = encode(table if _sorted(table["player_id"]) else table.sort_by("player_id"))
    return FactFile(kind, table.num_rows, len(data), sha256(data).hexdigest(), told), data


def _sorted(ids: Any) -> bool:
    """Return whether ids are in order, as millions from the ledger are; to sort them is to hold them three times."""
    return len(ids) < 2 or pc.all(pc.less(ids.slice(0, len(ids) - 1), ids.slice(1))).as_py()


def put_facts(store: Store, board: str, season: str, file: FactFile, data: bytes) -> None:
    """Put a file of facts unless it is there; safe to repeat."""
    settle(store, f"{facts_dir(board, season)}/{file.name}", data)


def read_facts(store: Store, board: str, season: str, file: FactFile) -> Any:
    """Return sealed facts as an Arrow table; raise ArchiveMismatchError if the file is missing or other than sealed."""
    path = f"{facts_dir(board, season)}/{file.name}"
    try:
        data = store.get(path)
    except ObjectMissingError:
        raise NotAsSealedError(
            f"{store.url}: {path} is missing", faults=[Fault(path, "is missing")], hint="restore it from a backup"
        ) from None
    if (found := sha256(data).hexdigest()) != file.sha256 or len(data) != file.size:
        what = "is not the file of facts that was sealed"
        fault = Fault(path, what, expected=file.sha256, found=found)
        raise NotAsSealedError(f"{store.url}: {path} {what}", faults=[fault], hint="restore it from a backup")
    return open_part(path, Part(file.name, file.rows, file.size, file.sha256), data).read()
