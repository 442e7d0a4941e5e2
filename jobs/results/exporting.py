"""The results of a season as one file, CSV or Parquet; importing it again changes nothing."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from archive.appearing import appearing, place_of
from archive.export import Exported
from jobs.output import as_text
from jobs.wiring import Outside
from leaderboard.errors import InputError, WrongStateError
from leaderboard.season import Season
from ledger import match_rows
from ledger.result_files import OWN_COLUMNS, REQUIRED

Rows = Sequence[Mapping[str, Any]]


def export_results(outside: Outside, season: Season, target: Path, *, force: bool) -> Exported:
    """Write every result in the season's bounds and filter to ``target``, whole or not at all.

    Columns: what an import takes, an attribute each, and Finale's own, which an import passes over: when it was
    received, whether it is counted, late or voided, and why. Raises InputError for another suffix, for a file that
    exists, and for ids that are no text in CSV; WrongStateError for a board without Finale's own ledger, and where
    results of the season were pruned, if only while they were read.
    """
    suffix = target.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise InputError(f"{target} ends in neither .csv nor .parquet", hint="name the file after what it shall be")
    if season.board.ledger != "own":
        raise WrongStateError(
            f"board {season.board.name} has no ledger of Finale's, so no results either",
            hint=f"its standings: finale archive export {season.board.name} {season.id}",
        )
    if suffix == ".csv" and season.board.member == "binary":
        raise InputError("ids of binary boards are no text, as CSV is", hint="export to a .parquet file")
    place_of(target, force=force)
    _check_kept(outside, season)
    names = match_rows.attribute_names(outside.database, season)
    portions = match_rows.read(outside.database, season)
    with appearing(target, force) as file:
        write = _write_csv if suffix == ".csv" else _write_parquet
        rows = write(file, names, portions, season.board.member == "binary")
        _check_kept(outside, season)
        return Exported(target, rows, file.tell())


def _check_kept(outside: Outside, season: Season) -> None:
    hint = "read the parts there: what the ledger still has would make a file in which they are missing"
    match_rows.check_kept(outside.database, season, hint=hint)


def _write_csv(file: BinaryIO, names: Sequence[str], portions: Iterator[Rows], _: bool) -> int:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer, count = csv.writer(text, lineterminator="\n"), 0
    writer.writerow((*REQUIRED, *names, *OWN_COLUMNS))
    for rows in portions:
        for row in rows:
            attributes = row["attributes"] or {}
            writer.writerow(
                (
                    row["match_id"],
                    _decoded(row["player_id"]),
                    row["points"],
                    as_text(row["played_at"]),
                    *(attributes.get(name, "") for name in names),
                    as_text(row["recorded_at"]),
                    row["state"],
                    row["reason"] or "",
                )
            )
        count += len(rows)
    text.flush()
    text.detach()
    return count


def _write_parquet(file: BinaryIO, names: Sequence[str], portions: Iterator[Rows], binary: bool) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    instant, text = pa.timestamp("us", tz="UTC"), pa.string()
    types = [text, pa.binary() if binary else text, pa.int64(), instant, *(text for _ in names), instant, text, text]
    schema = pa.schema(list(zip((*REQUIRED, *names, *OWN_COLUMNS), types, strict=True)))
    count = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in portions:
            columns: list[list[Any]] = [
                [row["match_id"] for row in rows],
                [row["player_id"] if binary else _decoded(row["player_id"]) for row in rows],
                [row["points"] for row in rows],
                [row["played_at"] for row in rows],
                *([(row["attributes"] or {}).get(name) for row in rows] for name in names),
                [row["recorded_at"] for row in rows],
                [row["state"] for row in rows],
                [row["reason"] for row in rows],
            ]
            arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            count += len(rows)
    return count


def _decoded(player: bytes) -> str:
    try:
        return player.decode()
    except UnicodeDecodeError:
        raise InputError(
            f"the player {player!r} is not UTF-8, and the board's members are text",
            hint='a board with such ids needs member = "binary"',
        ) from None
