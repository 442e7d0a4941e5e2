"""Plays the demonstration: sets everything up in a temporary folder, shows each step, and takes it all away again."""

from __future__ import annotations

import os
import tempfile
import time
from datetime import datetime
from pathlib import Path

import duckdb

from config.settings import Runner, Settings
from jobs import output
from jobs.boards import standings
from jobs.demo import leftovers
from jobs.demo import season as made_up
from jobs.embedded.home import EmbeddedHome
from jobs.results.taking import Taken, take_chunk
from jobs.seasons import closing
from jobs.seasons.verdicts import Wait
from jobs.wiring import Outside, outside
from leaderboard.board import Board
from leaderboard.season import Season
from leaderboard.states import Step
from ledger import grants, journal
from rewards.table import parse_table

BOARD, SEASON = "arena", "demo"
TABLE = """
version = 1
ties    = "share"
match   = "first"
[[rule]]
name  = "champion"
rank  = "1"
grant = { "title.champion" = 1, gems = 5000 }
[[rule]]
name  = "top ten"
rank  = "2-10"
grant = { gems = 1000 }
[[rule]]
name  = "top hundred"
rank  = "11-100"
grant = { gems = 200 }
[[rule]]
name  = "took part"
all   = true
grant = { gems = 10 }
"""
QUERY = """
select rank, count(*) as players, min(points) as points
from read_parquet('{root}/standings/*/*/*.parquet', hive_partitioning = true)
where board = '{board}' and season = '{season}'
group by rank having count(*) > 1 order by rank limit 5
"""


def play(players: int, seed: int) -> None:
    """Play, close, pay and clean a season of ``players``; everything printed was measured or queried while it ran."""
    for left in leftovers.sweep():
        output.out.print(f"(removed {left}, left by a demonstration that was killed)", markup=False)
    with tempfile.TemporaryDirectory(prefix=leftovers.PREFIX) as folder:
        Path(folder).chmod(0o755)  # the servers' own user must be able to enter
        home = Path(folder) / "home"
        environ = {**os.environ, "FINALE_HOME": str(home)}
        begun = time.monotonic()
        starts_at = made_up.week_before(datetime.now().astimezone())
        settings = _settings(home, starts_at)
        output.out.print("[bold]1. set up[/]  Redis and PostgreSQL of our own", end=" ")
        output.out.print(f"under {home}", markup=False)
        with outside(settings, environ) as wired:
            output.out.print(f"   running after {time.monotonic() - begun:.1f} s")
            _play(wired, players, seed, starts_at)
        output.out.print("\nEverything was stopped and removed. For a season of your own: finale init")


def _settings(home: Path, starts_at: datetime) -> Settings:
    board = Board.model_validate(
        {
            "name": BOARD,
            "ties": {"by": "first_to_reach", "unit": "minute"},
            "calendar": {
                "seasons": [{"id": SEASON, "starts_at": starts_at, "ends_at": starts_at + made_up.LENGTH}],
            },
            "grace": "0s",
            "keep_live": "7d",
            "rewards": "built in",
        }
    )
    table = parse_table(TABLE, "the demonstration's reward table")
    return Settings(boards={BOARD: board}, tables={BOARD: table}, home=home, runner=Runner())


def _play(wired: Outside, players: int, seed: int, starts_at: datetime) -> None:
    board = wired.boards[BOARD]
    output.out.print("\n[bold]2. play[/]    results in bursts, some sent twice")
    begun = time.monotonic()
    taken = Taken()
    with output.progress_bar() as bar:
        task = bar.add_task("results", total=players * 3)
        for chunk in made_up.bursts(players, seed, starts_at):
            take_chunk(wired, chunk, BOARD, [board], taken, origin="demo")
            bar.update(task, completed=taken.recorded.new)
    seconds = time.monotonic() - begun
    output.out.print(
        f"   {taken.recorded.new:,} results counted, {taken.recorded.repeated:,} repeats counted once, "
        f"{taken.applied:,} totals written to Redis, {seconds:.1f} s"
    )
    output.out.print("\n[bold]3. close[/]   a step a line, each recorded before the next begins")
    season = closing.find(wired, BOARD, SEASON)
    closing.close(wired, season, who="demo", observer=_Steps(logs=False), until=Step.FREEZE)
    late = Taken()
    take_chunk(
        wired, made_up.latecomers(players, seed, starts_at + made_up.LENGTH), BOARD, [board], late, origin="demo"
    )
    run = closing.close(wired, season, who="demo", observer=_Steps(logs=False))
    output.out.print(f"   {late.recorded.late} results came after the freeze: kept, named late, not counted")
    _show_results(wired, run.season)
    output.out.print("\n[bold]7. clean[/]   the retention cut short, for the demonstration")
    closing.clean(wired, run.season, who="demo", observer=_Steps(logs=False), early=True)


class _Steps(output.Watching):
    """Shows the steps where the rest of the demonstration is shown, with a live bar on a terminal."""

    def finished(self, season: Season, step: Step, seconds: float, figures: str) -> None:
        self.stop_bar()
        output.out.print(f"   {step:<10} {seconds:6.2f} s  {figures}", markup=False)

    def waiting(self, season: Season, step: Step, wait: Wait) -> None:
        self.stop_bar()


def _show_results(wired: Outside, season: Season) -> None:
    output.out.print("\n[bold]4. top ten[/]")
    output.print_table(
        ("  position", "rank", "player", "points", "reached at (UTC)"),
        [
            (row.position, row.rank, row.name(), row.points, output.utc(row.reached_at))
            for row in standings.top(wired, season, 10)
        ],
        numbers=("  position", "rank", "points"),
    )
    output.out.print("\n[bold]5. grants[/]  computed from the sealed files, readable in finale.payable")
    output.print_table(
        ("  rule", "item", "grants", "amount"),
        [
            (f"  {one['rule']}", one["item"], f"{one['grants']:,}", f"{one['amount']:,}")
            for one in grants.tiers(wired.database, season.key)
        ],
        numbers=("grants", "amount"),
    )
    drift = journal.results(wired.database, season.key)[Step.RECONCILE]
    output.out.print(f"   drift between Redis and PostgreSQL: {drift['drift']} of {drift['equal']:,} players")
    _show_archive(EmbeddedHome(wired.settings.home).archive, season)


def _show_archive(root: Path, season: Season) -> None:
    output.out.print("\n[bold]6. archive[/] what analysts read")
    for path in sorted(root.glob("[!.]*/**/*.*")):
        output.out.print(f"   {path.relative_to(root)}  {path.stat().st_size:,} bytes", markup=False)
    query = QUERY.format(root=root, board=season.board.name, season=season.id)
    output.out.print(f"\n   DuckDB, the first shared ranks:{query.rstrip()}", markup=False)
    with duckdb.connect() as connection:
        rows = connection.execute(query).fetchall()
    if not rows:
        output.out.print("   none: among so few players no rank is shared")
        return
    output.print_table(("  rank", "players", "points"), rows, numbers=("  rank", "players", "points"))
