"""finale results export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs import output
from jobs.commands.common import AsJson, BoardName, SeasonName, named_path, wired


def export(
    board: BoardName,
    season_id: SeasonName,
    to: Annotated[Path, typer.Option("--to", parser=named_path, metavar="FILE", help="A .csv or .parquet file.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the results of a season to a file, each with whether it counted; importing it again changes nothing.

    Example: finale results export goals s2026 --to goals.parquet
    """
    from jobs.results.exporting import export_results
    from jobs.seasons.closing import find

    with wired() as outside:
        done = export_results(outside, find(outside, board, season_id), to, force=force)
    if as_json:
        output.print_json({"path": str(done.path), "rows": done.rows, "bytes": done.size})
    else:
        output.out.print(f"{done.rows:,} results, {done.size:,} bytes, in {done.path}", markup=False)
