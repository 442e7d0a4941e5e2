"""finale archive sql, export and player: what analysts and support ask of sealed seasons."""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobs import output
from jobs.commands.common import AsJson, BoardName, SeasonName, named_path, settings
from jobs.commands.common import player_id as as_bytes
from leaderboard.errors import ArchiveMismatchError, InputError, UnknownNameError
from leaderboard.wording import counted

if TYPE_CHECKING:
    from archive.catalog import Catalog, Places
    from archive.layout import Kind
    from archive.lookup import Past
    from archive.objects import Store

OfKind = Annotated[str, typer.Option("--kind", metavar="KIND", help="standings, grants, or correction-0001 and so on.")]
_SHOWN = 1_000  # rows that a table on a terminal shows


def archive_store() -> Store:
    """Return the configured archive, to be read; neither Redis nor PostgreSQL is asked or started.

    Raises AccessError for a folder that was named and does not exist. The one that is Finale's own without a
    configuration is made with the first seal, so that it may be absent.
    """
    from archive.store import FolderStore, open_store

    found = settings()
    store = open_store(found.store, os.environ)
    if found.servers.store and isinstance(store, FolderStore):
        store.check_exists()
    return store


def checked_kind(kind: str) -> Kind:
    """Return ``kind`` if something of it can be sealed; raise InputError otherwise."""
    from archive.layout import KINDS, correction_number

    if kind in KINDS or correction_number(kind):
        return kind
    raise InputError(f"--kind {kind!r} is not sealed", hint=f"the kinds are {', '.join(KINDS)} and correction-0001")


def sql(
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="SQL as DuckDB speaks it.")] = None,
    printed: Annotated[bool, typer.Option("--print", help="Print views and query instead of running it.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Write the result as CSV to stdout.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a query over the views seasons, standings, grants, corrections, grants_net, which hold sealed parts only.

    Without a query, print the views' definitions, ready for the duckdb shell. The query can read nothing but the views,
    and write nothing. A damaged seal or part is left out, and ends it with exit code 30.

    Example: finale archive sql "select season, player_id, points from standings where board = 'goals' and rank = 1"
    """
    from archive.catalog import places, read_catalog
    from archive.query import run
    from archive.views import definitions, notes, read_parquet

    if as_csv and as_json:
        raise InputError("--csv and --json are two ways to write one result", hint="give one of them")
    if query is not None and not query.strip():
        raise InputError("the query is empty", hint="leave it out to see the views")
    store = archive_store()
    catalog = read_catalog(store)
    found = places(store, catalog.seals)
    missing = found.missing
    for note in notes(catalog, missing):
        output.err.print(f"note: {note}", markup=False)
    if query is None or printed:
        statements = definitions(catalog, missing, read_parquet(store))
        typer.echo("\n".join([*statements, query] if query else statements))
        catalog.check(found.damaged)
        return
    with run(store, catalog, missing, query) as result:
        if as_csv:
            _write_csv(result.columns, result.rows())
        elif as_json:
            _write_json(result.columns, result.rows())
        else:
            _show(result.columns, result.rows())
    catalog.check(found.damaged)  # after what can be read: the rest of the archive is as good as it was


def export(
    board: BoardName,
    season_id: SeasonName,
    to: Annotated[Path, typer.Option("--to", parser=named_path, metavar="FILE", help="A .csv or .parquet file.")],
    kind: OfKind = "standings",
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a sealed season as one CSV or Parquet file; every part is compared with the seal first.

    Example: finale archive export goals s2026 --to goals-2026.csv
    """
    from archive.export import export as exported

    done = exported(archive_store(), board, season_id, to, kind=checked_kind(kind), force=force)
    if as_json:
        output.print_json({"path": str(done.path), "rows": done.rows, "bytes": done.size})
    else:
        output.out.print(f"{done.rows:,} rows written to {done.path}, {done.size:,} bytes", markup=False)


def player(
    player_id: Annotated[str, typer.Argument(metavar="PLAYER", help="The id, byte for byte; hex on binary boards.")],
    board: Annotated[str | None, typer.Option("--board", metavar="BOARD", help="Only this board's seasons.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show a player's position, rank and points in every sealed season, without reading what cannot hold them.

    A season whose parts are not in place is left out, with a note; after one that is damaged it ends with exit code 30.

    Example: finale archive player "Harry Kane" --board goals
    """
    from archive.catalog import places, read_catalog
    from archive.lookup import history
    from archive.views import notes

    store = archive_store()
    catalog = read_catalog(store, board)
    standings = [one for one in catalog.seals if one.seal.kind == "standings"]
    if standings and all(one.seal.board.get("member") == "binary" for one in standings):
        as_bytes(player_id, "PLAYER", binary=True)
    in_place = places(store, standings)
    missing = in_place.missing
    for note in notes(replace(catalog, faults=()), missing):
        output.err.print(f"note: {note}", markup=False)
    found = history(store, [one for one in standings if one.seal.path not in missing], player_id)
    if as_json:
        output.print_json([_past(one) for one in found])
    elif found:
        output.print_table(
            ("board", "season", "position", "rank", "of", "points", "reached at (UTC)"),
            [
                (
                    one.seal.board_name,
                    one.seal.bounds.id,
                    one.row["position"],
                    one.row["rank"],
                    f"{one.seal.facts.rows:,}",
                    one.row["points"],
                    output.utc(one.row["reached_at"]),
                )
                for one in found
            ],
            numbers=("position", "rank", "of", "points"),
        )
    try:
        catalog.check(in_place.damaged)
    except ArchiveMismatchError as error:
        unread = _unread(catalog, in_place)
        if found or not unread:
            raise
        could = counted(unread, "sealed season")
        message = f"whether a season has a player '{player_id}' cannot be told: {could} could not be read"
        raise ArchiveMismatchError(message, detail=error.detail, hint=error.hint) from None
    if not found:
        raise UnknownNameError(
            f"no sealed season has a player '{player_id}'",
            detail=f"{counted(len(missing), 'season was', 'seasons were')} not looked at" if missing else "",
            hint="ids are compared byte for byte; finale archive list shows what is sealed",
        )


def _unread(catalog: Catalog, in_place: Places) -> int:
    """Return of how many seasons the standings could not be read, for want of their seal or of a part as sealed."""
    from archive.layout import parse_part, parse_seal

    seals = [parse_seal(fault.file) for fault in catalog.faults]
    parts = [parse_part(fault.file) for fault in in_place.damaged]
    return len({(one.board, one.season) for one in (*seals, *parts) if one is not None and one.kind == "standings"})


def _past(one: Past) -> dict[str, Any]:
    told = {name: one.row[name] for name in ("position", "rank", "points", "reached_at")}
    return {"board": one.seal.board_name, "season": one.seal.bounds.id, "players": one.seal.facts.rows, **told}


def _show(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    taken = list(islice(rows, _SHOWN + 1))
    shown = [[_text(value) for value in row] for row in taken[:_SHOWN]]
    numbers = [
        name for at, name in enumerate(columns) if shown and all(isinstance(row[at], int | float) for row in taken)
    ]
    output.print_table(columns, shown, numbers=numbers)
    if len(taken) > _SHOWN:
        output.err.print(f"… and more; --csv and --json write every row, a table only {_SHOWN:,}")


def _write_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(value) for value in row] for row in rows)


def _write_json(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write an array of objects, row by row, so that a large result needs no memory."""
    if twice := sorted({name for name in columns if columns.count(name) > 1}):
        raise InputError(f"more than one column is called {', '.join(twice)}", hint="name them apart with as")
    output.begin_json()
    separator = "[\n  "
    for row in rows:
        values = {name: _plain(value) for name, value in zip(columns, row, strict=True)}
        sys.stdout.write(separator + json.dumps(values, ensure_ascii=False, default=_text))
        separator = ",\n  "
    sys.stdout.write("[]\n" if separator.startswith("[") else "\n]\n")


def _plain(value: Any) -> Any:
    # JSON has no word for these.
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: Any) -> Any:
    if value is None:
        return None
    return value.hex() if isinstance(value, bytes) else output.as_text(value)
