"""A player who stands in two shards of a board: half moved, so that nobody can say which points are right."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from archive.fetch import fetch_part, open_part
from archive.layout import parse_part
from archive.objects import Store
from archive.parts import Part
from archive.proof import ProofConnection
from leaderboard.errors import SeasonHeldError, UnavailableError

_NAMED = 20
_MEMORY = "256MB"  # beyond which DuckDB uses a temporary file


class DoublePlayerError(SeasonHeldError):
    """A player is in two of the season's sorted sets."""


def check_once(
    connect: Callable[[str], ProofConnection], keys: Sequence[str], store: Store, folder: str, parts: Sequence[Part]
) -> None:
    """Raise DoublePlayerError, with the first players and where each stands, unless each is staged once.

    Reads the ids of all staged parts again, each part compared with its SHA-256; memory is bounded. Raises what
    reading them raises, and UnavailableError where there is no room to sort them.
    """
    twice = _twice(store, folder, parts)
    if not twice:
        return
    told = "; ".join(
        f"'{member.decode(errors='backslashreplace')}' in {_where(connect, keys, member)}" for member in twice
    )
    many = f"{_NAMED} or more" if len(twice) >= _NAMED else str(len(twice))
    season = parse_part(f"{folder}/{parts[0].name}")
    name = f"{season.board} {season.season}" if season else "BOARD SEASON"
    raise DoublePlayerError(
        f"{'1 player stands' if len(twice) == 1 else f'{many} players stand'} in more than one shard",
        detail=told,
        hint=f"remove each from the shard that is wrong (finale reconcile {name} --repair does so where the ledger is "
        f"Finale's own), then: finale season release {name} --again",
    )


def _twice(store: Store, folder: str, parts: Sequence[Part]) -> list[bytes]:
    schema = pa.schema([pa.field("player_id", pa.binary())])
    failed: list[BaseException] = []
    ids = pa.RecordBatchReader.from_batches(schema, _ids(store, folder, parts, failed))
    with (
        tempfile.TemporaryDirectory(prefix="finale-") as folder_to_spill,
        duckdb.connect(config={"memory_limit": _MEMORY, "temp_directory": folder_to_spill}) as connection,
    ):
        try:
            found = connection.execute(
                "select player_id from ids group by player_id having count(*) > 1 order by player_id limit $most",
                {"most": _NAMED},
            ).fetchall()
        except duckdb.Error as error:
            if failed:
                raise failed[0] from None
            raise UnavailableError(
                "the players of the shards could not be compared",
                detail=str(error).partition("\n")[0],
                hint="free memory, and space for temporary files, then run the command again",
            ) from error
    del ids
    return [bytes(row[0]) for row in found]


def _ids(store: Store, folder: str, parts: Sequence[Part], failed: list[BaseException]) -> Iterator[Any]:
    try:
        for part in parts:
            file = open_part(f"{folder}/{part.name}", part, fetch_part(store, folder, part))
            for batch in file.iter_batches(columns=["player_id"]):
                yield pa.record_batch([batch.column("player_id").cast(pa.binary())], names=["player_id"])
    except BaseException as error:  # DuckDB would tell its text only
        failed.append(error)
        raise


def _where(connect: Callable[[str], ProofConnection], keys: Sequence[str], member: bytes) -> str:
    """Return the sorted sets that have ``member`` now, with its scores, as a person is told."""
    found = []
    for key in keys:
        with connect(key) as proof:
            score = proof.command("ZSCORE", key, member)
        if score is not None:
            found.append(f"{key} ({float(score)!r})")
    return " and ".join(found) or "none any more"
