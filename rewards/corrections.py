"""What a correction comes to: the difference between what was granted, net of earlier ones, and what is right now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from leaderboard.errors import UnavailableError
from rewards.compute import grants_schema
from rewards.digest import GrantsDigest

_MEMORY = "256MB"  # of the comparison; what is more goes to disk
_SETTINGS: dict[str, Any] = {"preserve_insertion_order": "false", "threads": 2}
_ROWS = 65_536

#: A grant's id stands for board, season, player, rule and item; so amounts can be summed by it.
_DIFFERENCE = """
select id as corrects, any_value(player_id) as player_id, any_value(rule) as rule, any_value(item) as item,
       sum(amount)::bigint as amount,
       coalesce(max(position) filter (where fresh), max(position)) as position,
       coalesce(max(rank) filter (where fresh), max(rank)) as rank
from (
    select grant_id as id, player_id, rule, item, amount, position, rank, true as fresh from computed
    union all
    select grant_id, player_id, rule, item, -amount, position, rank, false from granted
    union all
    select corrects, player_id, rule, item, -amount, position, rank, false from corrected
)
group by id
having sum(amount) <> 0
order by position, rule, item, corrects
"""
_ID = """
digest[1:8] || '-' || digest[9:12] || '-' || digest[13:16] || '-' || digest[17:20] || '-' || digest[21:32] as grant_id
"""


def correction_schema(binary: bool) -> pa.Schema:
    """Return the columns of a correction: those of grants, after ``grant_id`` also the id of the grant it ``corrects``.

    ``amount`` is signed and never 0.
    """
    first, *rest = grants_schema(binary)
    return pa.schema([first, pa.field("corrects", pa.string(), nullable=False), *rest])


def correction_id(corrects: str, number: int) -> str:
    """Return the id of what the correction ``number`` does to a grant, derived from both, so the same every time::

    uuid.UUID(bytes=sha256(uuid.UUID(corrects).bytes + number.to_bytes(4, "big")).digest()[:16])
    """
    return str(UUID(bytes=sha256(UUID(corrects).bytes + number.to_bytes(4, "big")).digest()[:16]))


def difference(
    granted: Iterable[pa.RecordBatch],
    corrected: Iterable[pa.RecordBatch],
    computed: Iterable[pa.RecordBatch],
    number: int,
    *,
    binary: bool,
) -> Iterator[pa.RecordBatch]:
    """Yield what correction ``number`` must add so that grants and corrections together are what is ``computed``.

    ``granted`` and ``computed`` have the columns of grants, ``corrected`` those of all earlier corrections. Rows come
    by position, rule, item and id; ``position`` and ``rank`` are those computed now, of a grant taken back entirely
    those it was made with. A grant whose amount stays has no row.
    """
    import duckdb

    failed: list[BaseException] = []
    sources = {
        "granted": (grants_schema(binary), granted),
        "corrected": (correction_schema(binary), corrected),
        "computed": (grants_schema(binary), computed),
    }
    with (
        TemporaryDirectory(prefix="finale-correction-") as folder,  # not the working directory, which DuckDB would take
        duckdb.connect(config={**_SETTINGS, "memory_limit": _MEMORY, "temp_directory": folder}) as connection,
        duckdb.connect(config={"threads": 1}) as hashing,
    ):
        for name, (schema, batches) in sources.items():
            plain = pa.schema([pa.field(one.name, one.type) for one in schema])
            connection.register(name, pa.RecordBatchReader.from_batches(plain, _plain(batches, plain, failed)))
        try:
            for batch in connection.sql(_DIFFERENCE).to_arrow_reader(_ROWS):
                if batch.num_rows:
                    yield _numbered(batch, number, binary, hashing)
        except duckdb.Error as error:
            if failed:
                raise failed[0] from None
            raise UnavailableError(
                "the difference to what was granted could not be computed",
                detail=str(error).partition("\n")[0],
                hint=f"make room for {folder}, or set TMPDIR to where there is some, and run it again",
            ) from error


def _plain(batches: Iterable[pa.RecordBatch], schema: Any, failed: list[BaseException]) -> Iterator[pa.RecordBatch]:
    try:
        for batch in batches:
            yield pa.record_batch([batch.column(name) for name in schema.names], schema=schema)
    except BaseException as error:  # DuckDB would tell its text only
        failed.append(error)
        raise


def _numbered(batch: pa.RecordBatch, number: int, binary: bool, hashing: Any) -> pa.RecordBatch:
    """Return the batch with ids, which are ``correction_id`` of each row, made without a Python object a row."""
    schema = correction_schema(binary)
    message = f"unhex(replace(corrects, '-', '')) || unhex('{number.to_bytes(4, 'big').hex()}')"
    digests = hashing.from_arrow(pa.table({"corrects": batch.column("corrects")})).project(
        f"sha256({message}) as digest"
    )
    ids = digests.project(_ID).to_arrow_table()["grant_id"].combine_chunks()
    columns = [ids, *(batch.column(one.name).cast(one.type) for one in list(schema)[1:])]
    return pa.record_batch(columns, schema=schema)


@dataclass(slots=True)
class Change:
    """What a correction adds up to: its rows, what it gives and takes of each item, exact past 64 bits too."""

    rows: int = 0
    given: dict[str, int] = field(default_factory=dict)  #: item -> sum of the positive amounts
    taken: dict[str, int] = field(default_factory=dict)  #: item -> sum of the negative amounts, without the sign
    _players: list[NDArray[np.int64]] = field(default_factory=list)
    _digest: GrantsDigest = field(default_factory=GrantsDigest)

    def add(self, batch: pa.RecordBatch) -> None:
        """Fold the next rows in."""
        self.rows += batch.num_rows
        self._digest.add(batch)
        ids = batch.column("player_id").cast(pa.binary()).unique().to_pylist()
        self._players.append(np.fromiter(map(hash, ids), np.int64, len(ids)))
        columns = pa.Table.from_batches([batch.select(["item", "amount"])])
        for group in columns.group_by(["item", "amount"], use_threads=False).aggregate([([], "count_all")]).to_pylist():
            amount = group["amount"]
            side = self.given if amount > 0 else self.taken
            side[group["item"]] = side.get(group["item"], 0) + abs(amount) * group["count_all"]

    @property
    def digest(self) -> str:
        """What names exactly these rows: ids, which stand for the correction's number too, and amounts."""
        return self._digest.text()

    @property
    def players(self) -> int:
        """How many players it concerns, told apart by 64 bits of a hash of their ids."""
        return int(np.unique(np.concatenate(self._players)).size) if self._players else 0

    @property
    def sums(self) -> dict[str, int]:
        """Item to the exact signed sum of its amounts, items that come to 0 among them."""
        return {
            item: self.given.get(item, 0) - self.taken.get(item, 0)
            for item in sorted(self.given.keys() | self.taken.keys())
        }
