"""One player's row out of a sealed part, by the pieces of the file that statistics and Bloom filters tell."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from archive.bloom import may_contain
from archive.fetch import sealed_file
from archive.objects import ObjectMissingError, ObjectShortError, Store
from archive.parts import Part
from archive.ranges import RangeFile
from archive.seal import Seal
from leaderboard.errors import ArchiveMismatchError

_WHOLE = 128 * 1024  #: a part of at most so many bytes is read at once, footer and all


def row_of(store: Store, seal: Seal, part: Part, player_id: bytes, before: int) -> dict[str, Any] | None:
    """Return the player's row in a part that follows ``before`` rows, as a dictionary of its columns, or None.

    Of a part where the player is not, the end and two pieces of each Bloom filter are read, some 70 KB of 12 MB; of
    one where they are, the row group besides. So the part is not compared with its SHA-256, only its size and the
    row's place are; what does not fit is read whole and compared. Raises ArchiveMismatchError if the part is missing,
    is shorter than sealed, or differs.
    """
    if part.size > _WHOLE:
        file = RangeFile(store, f"{seal.place}/{part.name}", part.size)
        try:
            found = _find(pq.ParquetFile(file), player_id, file)
            if found is None or found[1]["position"] == before + found[0] + 1:
                return found[1] if found else None
        except (ObjectMissingError, ObjectShortError) as error:
            raise _differs(store, seal, part, error) from None
        except (pa.ArrowException, ValueError, OSError):
            pass  # reading it whole says what is wrong with it
    return find_row(sealed_file(store, seal, part), player_id)


def find_row(file: Any, player_id: bytes) -> dict[str, Any] | None:
    """Return the player's row in a part, given as a pyarrow ParquetFile, as a dictionary of its columns, or None."""
    found = _find(file, player_id, None)
    return found[1] if found else None


def may_be_in(store: Store, seal: Seal, part: Part, player_id: bytes) -> bool:
    """Return false if the player is surely not in the part; raises what :func:`row_of` raises."""
    if part.size <= _WHOLE:
        return True
    file = RangeFile(store, f"{seal.place}/{part.name}", part.size)
    try:
        metadata = pq.read_metadata(file)
        groups = range(metadata.num_row_groups)
        return any(_may_hold(metadata.row_group(group), player_id, file) for group in groups)
    except (ObjectMissingError, ObjectShortError) as error:
        raise _differs(store, seal, part, error) from None
    except (pa.ArrowException, ValueError, OSError):
        # The end of the file is not what it was: reading it whole says what is wrong with it.
        return True


def _find(file: Any, player_id: bytes, pieces: RangeFile | None) -> tuple[int, dict[str, Any]] | None:
    """Return the index of the player's row in the part, from 0, and the row; filters are read from ``pieces``."""
    before = 0
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        if _may_hold(group, player_id, pieces):
            ids = file.read_row_group(number, columns=["player_id"])["player_id"].cast(pa.binary())
            at = pc.index(ids, pa.scalar(player_id, pa.binary())).as_py()
            if at >= 0:
                return before + at, file.read_row_group(number).slice(at, 1).to_pylist()[0]
        before += group.num_rows
    return None


def _may_hold(group: Any, player_id: bytes, pieces: RangeFile | None) -> bool:
    """Return false if statistics or Bloom filter of a row group (its pyarrow metadata) exclude the player."""
    columns = (group.column(number) for number in range(group.num_columns))
    column = next(column for column in columns if column.path_in_schema == "player_id")
    statistics = column.statistics
    if (
        statistics is not None
        and statistics.has_min_max
        and not _bytes(statistics.min) <= player_id <= _bytes(statistics.max)
    ):
        return False
    offset = column.bloom_filter_offset
    return pieces is None or offset is None or may_contain(pieces.read_at, offset, player_id)


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _differs(store: Store, seal: Seal, part: Part, error: ArchiveMismatchError) -> ArchiveMismatchError:
    return ArchiveMismatchError(
        f"{store.url}: {seal.place}/{part.name} is not the part that was sealed",
        detail=error.message,
        hint="restore it from a backup",
    )
