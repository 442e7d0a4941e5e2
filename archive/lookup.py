"""One player through all sealed seasons, without a scan: statistics and Bloom filters say where to look."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from archive.bloom import may_contain
from archive.catalog import Sealed
from archive.fetch import sealed_file
from archive.objects import ObjectMissingError, ObjectShortError, Store
from archive.parts import Part
from archive.ranges import RangeFile
from archive.reading import find_row, may_hold
from archive.seal import Seal
from leaderboard.errors import ArchiveMismatchError

_AT_ONCE = 8
_WHOLE = 128 * 1024  #: a part of at most so many bytes is read at once, footer and all


@dataclass(frozen=True, slots=True)
class Past:
    """Where a player stood in a sealed season: the seal, and the row of its standings as columns."""

    seal: Seal
    row: dict[str, Any]


def history(store: Store, seals: Iterable[Sealed], player: str) -> list[Past]:
    """Return where ``player`` stood in each season of ``seals`` that has them, in the order of the seasons' starts.

    Ids are compared byte for byte; on boards with binary ids ``player`` is read as hex. Of a part that the player is
    not in, only the end and two pieces of its Bloom filter are read, some 70 KB of 12 MB; a part that may hold the
    player (a few in a hundred do not) is read whole, and compared with its SHA-256 before a row of it is told. So a
    row told is as sealed; that there is none is as true as the part's own statistics and filter.

    Raises ArchiveMismatchError if a part is missing, is shorter than sealed, or differs.
    """
    wanted = [one.seal for one in seals if one.seal.kind == "standings" and _id(one.seal, player) is not None]
    wanted.sort(key=lambda seal: (seal.bounds.starts_at, seal.board_name))
    tasks = [(seal, part) for seal in wanted for part in seal.facts.parts]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="finale-lookup") as pool:
        found = pool.map(lambda task: _look(store, task[0], task[1], player), tasks)
        return [Past(seal, row) for (seal, _), row in zip(tasks, found, strict=True) if row is not None]


def _id(seal: Seal, player: str) -> bytes | None:
    """Return the bytes of the id on the seal's board; None if the board can have no such id."""
    if seal.board.get("member") != "binary":
        return player.encode("utf-8", "surrogateescape")
    try:
        return bytes.fromhex(player)
    except ValueError:
        return None


def _look(store: Store, seal: Seal, part: Part, player: str) -> dict[str, Any] | None:
    player_id = _id(seal, player)
    assert player_id is not None
    if part.size > _WHOLE and not _may_be_in(store, seal, part, player_id):
        return None
    return find_row(sealed_file(store, seal, part), player_id)


def _may_be_in(store: Store, seal: Seal, part: Part, player_id: bytes) -> bool:
    path = f"{seal.place}/{part.name}"
    file = RangeFile(store, path, part.size)
    try:
        metadata = pq.read_metadata(file)
        column = metadata.schema.names.index("player_id")
        chunks = [metadata.row_group(group).column(column) for group in range(metadata.num_row_groups)]
        return any(_chunk_may_hold(file, chunk, player_id) for chunk in chunks)
    except (ObjectMissingError, ObjectShortError) as error:
        raise ArchiveMismatchError(
            f"{store.url}: {path} is not the part that was sealed",
            detail=error.message,
            hint="restore it from a backup",
        ) from None
    except (pa.ArrowException, ValueError, OSError):
        # The end of the file is not what it was: reading it whole says what is wrong with it.
        return True


def _chunk_may_hold(file: RangeFile, chunk: Any, player_id: bytes) -> bool:
    if not may_hold(chunk, player_id):
        return False
    offset = chunk.bloom_filter_offset
    return offset is None or may_contain(file.read_at, offset, player_id)
