"""Two years of international football, from the files to the sealed Parquet, against SQL over the files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow.csv as pa_csv
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pq
import pytest

from tests.support.cli import World, differing, finale

DATA = Path(__file__).parents[1] / "data"
YEARS = {2021: (2_014, 1_069, "Harry Kane", 16), 2024: (1_585, 948, "Aymen Hussein", 13)}
CONFIG = """
[board.goals]
order     = "high"
aggregate = "sum"
ties      = { by = "first_to_reach", unit = "minute" }
calendar  = { every = "year", timezone = "UTC" }
rewards   = "goals.toml"
"""
SECOND_BOARD = """
[board.again-2024]
source   = "goals"
ties     = "shared"
calendar = { every = "year" }
"""
TABLE = """
version = 1
[[rule]]
name = "champion"
rank = "1"
grant = { gems = 5000 }
[[rule]]
name = "took part"
all = true
grant = { gems = 10 }
"""
# Written from the rules alone: points are the sum, reached_at is when the last of them was scored, to the minute; equal
# points go to whoever held them first, then by the id's bytes, descending.
INDEPENDENT = """
with results as (
    select player_id, points::bigint as points, played_at::timestamptz as played_at
    from read_csv('{file}', header = true, all_varchar = true)
), totals as (
    select player_id, sum(points)::bigint as points, date_trunc('minute', max(played_at)) as reached_at
    from results group by player_id
)
select row_number() over (order by points desc, reached_at, encode(player_id) desc) as position,
       rank() over (order by points desc, reached_at) as rank,
       player_id, points, reached_at
from totals order by position
"""


def file_of(year: int) -> Path:
    return DATA / f"international_goals_{year}.csv"


def independent(year: int) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        return connection.execute(INDEPENDENT.format(file=file_of(year))).fetchall()


@pytest.fixture
def goals(world: World) -> World:
    world.configure(CONFIG, goals=TABLE)
    return world


def closed(world: World, year: int) -> None:
    finale("results", "import", str(file_of(year)), "--source", "goals").ok()
    finale("close", "goals", f"s{year}").ok()


@pytest.mark.parametrize("year", YEARS)
def test_a_year_of_goals_is_archived_as_independent_sql_has_it(goals: World, year: int) -> None:
    """Every row of the sealed Parquet is what SQL over the CSV gives: points, minute, rank and position, ties too."""
    results, players, first, most = YEARS[year]
    taken = finale("results", "import", str(file_of(year)), "--source", "goals", "--json").ok().json
    assert (taken["new"], taken["repeated"], taken["refused"], taken["late"]) == (results, 0, 0, 0)
    assert taken["applied"] == players
    run = finale("close", "goals", f"s{year}", "--json").ok().json
    assert run["state"] == "delivered"
    (path,) = (goals.store / "standings").rglob("*.parquet")
    columns = ["position", "rank", "player_id", "points", "reached_at"]
    sealed = [tuple(row.values()) for row in pq.read_table(path, columns=columns, partitioning=None).to_pylist()]
    assert sealed == independent(year)
    assert len(sealed) == players
    top = finale("standings", "goals", f"s{year}", "--top", "3", "--json").ok().json
    assert (top[0]["player_id"], top[0]["points"], top[0]["position"], top[0]["rank"]) == (first, most, 1, 1)


def test_2021_has_the_ties_that_are_known(goals: World) -> None:
    """Larin and Depay both have 14, the earlier is second; 127 players tie to the minute, in descending byte order."""
    closed(goals, 2021)
    second, third = finale("standings", "goals", "s2021", "--top", "3", "--json").ok().json[1:]
    assert {second["player_id"], third["player_id"]} == {"Cyle Larin", "Memphis Depay"}
    assert second["points"] == third["points"] == 14
    assert second["reached_at"] < third["reached_at"]
    assert (second["rank"], third["rank"]) == (2, 3)
    (path,) = (goals.store / "standings").rglob("*.parquet")
    frame = pd.read_parquet(path)
    tied = frame[frame.duplicated(["points", "reached_at"], keep=False)]
    assert len(tied) == 127
    for _, group in tied.groupby(["points", "reached_at"]):
        names = [name.encode() for name in group["player_id"]]
        assert names == sorted(names, reverse=True)
        assert group["rank"].nunique() == 1


def test_a_second_import_adds_nothing_and_a_second_close_changes_nothing(goals: World) -> None:
    """The same file again is 2,014 repeats; closing a closed season exits 0; everything is as before."""
    closed(goals, 2021)
    before = goals.picture()
    again = finale("results", "import", str(file_of(2021)), "--source", "goals", "--json").ok().json
    assert (again["new"], again["repeated"], again["conflicting"], again["applied"]) == (0, 2_014, 0, 0)
    assert "nothing to do" in finale("close", "goals", "s2021").ok().out
    assert differing(before, goals.picture()) == []


def test_a_parquet_file_for_a_board_is_taken_like_the_csv(goals: World, tmp_path: Path) -> None:
    """The same rows as Parquet, given with --board, are repeats of the CSV's; alone they are all new."""
    parquet = tmp_path / "goals.parquet"
    pq.write_table(pa_csv.read_csv(file_of(2024)), parquet)
    first = finale("results", "import", str(parquet), "--board", "goals", "--json").ok().json
    assert (first["new"], first["applied"]) == (1_585, 948)
    second = finale("results", "import", str(file_of(2024)), "--source", "goals", "--json").ok().json
    assert (second["new"], second["repeated"]) == (0, 1_585)


def test_analysts_read_board_and_season_as_text(goals: World) -> None:
    """DuckDB, pandas and pyarrow.dataset read standings/ of two boards and seasons; both are text columns."""
    goals.configure(CONFIG + SECOND_BOARD, goals=TABLE)
    for year in YEARS:
        finale("results", "import", str(file_of(year)), "--source", "goals").ok()
        for board in ("goals", "again-2024"):
            finale("close", board, f"s{year}").ok()
    root = goals.store / "standings"
    expected = {(board, f"s{year}"): YEARS[year][1] for board in ("goals", "again-2024") for year in YEARS}

    with duckdb.connect() as connection:
        glob = f"read_parquet('{root}/*/*/*.parquet', hive_partitioning = true)"
        counted = connection.execute(f"select board, season, count(*) from {glob} group by all").fetchall()
        types = dict(row[:2] for row in connection.execute(f"describe select board, season from {glob}").fetchall())
    assert {(board, season): rows for board, season, rows in counted} == expected
    assert types == {"board": "VARCHAR", "season": "VARCHAR"}

    frame = pd.read_parquet(root)
    groups = frame.groupby(["board", "season"], observed=True).size()
    assert {key: int(rows) for key, rows in groups.items()} == expected
    assert {type(value) for column in ("board", "season") for value in frame[column].unique()} == {str}

    table = pa_dataset.dataset(root, partitioning="hive").to_table()
    assert str(table.schema.field("board").type) == str(table.schema.field("season").type) == "string"
    assert table.num_rows == sum(expected.values())
