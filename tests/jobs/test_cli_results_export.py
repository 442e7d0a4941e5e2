"""finale results export: every result with what became of it; importing the file again changes nothing."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.cli import World, differing, finale

AT = "2026-01-02T00:00:00Z"
CONFIG = """
[board.cup]
ties = "shared"
grace = "0s"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""


@pytest.fixture
def cup(world: World) -> World:
    """Three results that count, one voided, one late; two with attributes."""
    world.configure(CONFIG)
    path = world.folder / "r.csv"
    rows = ["m1,Zoë,5,eu,", "m1,bob,3,,2", "m2,ann,2,,", "m3,eve,9,,"]
    path.write_text(
        "\n".join(["match_id,player_id,points,region,level,played_at", *(f"{row},{AT}" for row in rows), ""])
    )
    finale("results", "import", str(path), "--board", "cup").ok()
    finale("results", "void", "m3", "--board", "cup", "--because", "cheats", "--as", "op").ok()
    finale("close", "cup", "one", "--until", "freeze").ok()
    world.played("cup", f"m9,ann,9,{AT}")
    return world


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_export_imported_again_is_a_no_op(cup: World, suffix: str) -> None:
    """All results are repeats, late and voided ones too; ledger, Redis and store stay as they are to the byte."""
    path = cup.folder / f"out.{suffix}"
    told = finale("results", "export", "cup", "one", "--to", str(path), "--json").ok().json
    assert (told["rows"], told["bytes"]) == (5, path.stat().st_size)
    before = cup.picture()
    again = finale("results", "import", str(path), "--board", "cup", "--json").ok().json
    assert (again["new"], again["repeated"], again["conflicting"], again["refused"]) == (0, 5, 0, 0)
    assert differing(before, cup.picture()) == []


def test_each_row_says_what_became_of_it(cup: World) -> None:
    path = cup.folder / "out.csv"
    finale("results", "export", "cup", "one", "--to", str(path)).ok()
    rows = {(row["match_id"], row["player_id"]): row for row in csv.DictReader(path.read_text().splitlines())}
    assert {key: row["finale_state"] for key, row in rows.items()} == {
        ("m1", "Zoë"): "counted",
        ("m1", "bob"): "counted",
        ("m2", "ann"): "counted",
        ("m3", "eve"): "voided",
        ("m9", "ann"): "late",
    }
    assert rows["m3", "eve"]["finale_reason"] == "voided by op: cheats"
    assert (rows["m1", "Zoë"]["region"], rows["m1", "bob"]["level"]) == ("eu", "2")
    parquet = cup.folder / "out.parquet"
    finale("results", "export", "cup", "one", "--to", str(parquet)).ok()
    table = pq.read_table(parquet)
    assert table["points"].to_pylist() == [int(row["points"]) for row in rows.values()]
    assert table["played_at"].null_count == table["finale_received"].null_count == 0


def test_a_file_that_is_there_is_not_replaced_unasked(cup: World, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("precious")
    finale("results", "export", "cup", "one", "--to", str(path)).refused(4, "exists already", "--force")
    assert path.read_text() == "precious"
    finale("results", "export", "cup", "one", "--to", str(path), "--force").ok()
    finale("results", "export", "cup", "one", "--to", str(tmp_path / "out.xlsx")).refused(
        4, "neither .csv nor .parquet"
    )
    assert sorted(found.name for found in tmp_path.iterdir()) == ["out.csv"]
