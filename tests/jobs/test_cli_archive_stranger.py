"""I10: a stranger, with the document alone, finds really closed seasons right, and every kind of tampering wrong."""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.archive import stranger
from tests.archive.stranger import check

SEASONS = (("cup", "spring"), ("cup", "autumn"), ("laps", "s2025"))
CUP = ("cup", "autumn")
DOCUMENT = Path(__file__).parents[2] / "docs/archive-format.md"


def place(store: Path, kind: str) -> Path:
    return store / kind / "board=cup" / "season=autumn" / "part-00000.parquet"


def seal_file(store: Path, kind: str) -> Path:
    return store / "seals/cup/autumn" / f"{kind}.json"


def lie(store: Path, kind: str = "standings", /, **fields: Any) -> None:
    """Change fields of the seal."""
    seal = json.loads(seal_file(store, kind).read_bytes())
    seal_file(store, kind).write_text(json.dumps(seal | fields))


def forge(store: Path, kind: str, change: Callable[[list[dict[str, Any]]], Any], /, **fields: Any) -> None:
    """Write other rows in the place of the part, and seal them as a forger would who forgets what ``fields`` lack."""
    file = place(store, kind)
    schema = pq.read_schema(file)
    rows = pq.ParquetFile(file).read().to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema), file)
    data = file.read_bytes()
    part = {"name": file.name, "rows": len(rows), "size": len(data), "sha256": sha256(data).hexdigest()}
    lie(store, kind, rows=len(rows), parts=[part], **fields)


def setting(at: int, **values: Any) -> Callable[[list[dict[str, Any]]], Any]:
    return lambda rows: rows[at].update(values)


def swapped(rows: list[dict[str, Any]]) -> None:
    """Exchange the players of the first two rows, who are equal in all else."""
    rows[0]["player_id"], rows[1]["player_id"] = rows[1]["player_id"], rows[0]["player_id"]


def flipped(store: Path) -> None:
    data = bytearray(place(store, "standings").read_bytes())
    data[100] ^= 1
    place(store, "standings").write_bytes(data)


def cut(store: Path) -> None:
    place(store, "standings").write_bytes(place(store, "standings").read_bytes()[:-1])


TAMPERING: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a bit of a part flipped": (flipped, "bytes of part-00000"),
    "a part cut short": (cut, "bytes of part-00000"),
    "a part removed": (lambda store: place(store, "standings").unlink(), "files in place"),
    "a part of grants removed": (lambda store: place(store, "grants").unlink(), "files in place"),
    "a part added": (
        lambda store: shutil.copy(place(store, "standings"), place(store, "standings").with_name("part-00001.parquet")),
        "files in place",
    ),
    "another season's parts": (
        lambda store: shutil.copy(
            store / "standings/board=cup/season=spring/part-00000.parquet", place(store, "standings")
        ),
        "bytes of part-00000",
    ),
    "another season's seal": (
        lambda store: shutil.copy(store / "seals/cup/spring/standings.json", seal_file(store, "standings")),
        "another seal",
    ),
    "another format": (lambda store: lie(store, format="2"), "another seal"),
    "a number of rows": (lambda store: lie(store, rows=4), "number of rows"),
    "the digest": (lambda store: lie(store, digest="0" * 64), "digest"),
    "the first score": (lambda store: lie(store, first_score=1.0), "scores"),
    "the last score": (lambda store: lie(store, last_score=None), "scores"),
    "the sum of points": (lambda store: lie(store, points_sum=12), "sum of points"),
    "players swapped": (lambda store: forge(store, "standings", swapped), "board order"),
    "a player renamed": (lambda store: forge(store, "standings", setting(2, player_id="Zoe")), "digest"),
    "a row dropped": (lambda store: forge(store, "standings", lambda rows: rows.pop(), points_sum=10), "digest"),
    "a row doubled": (lambda store: forge(store, "standings", lambda rows: rows.append(rows[-1])), "digest"),
    "a score": (lambda store: forge(store, "standings", setting(2, score=1.0), last_score=1.0), "digest"),
    "a position": (lambda store: forge(store, "standings", setting(1, position=3)), "row 2"),
    "a rank": (lambda store: forge(store, "standings", setting(1, rank=2)), "row 2"),
    "points": (lambda store: forge(store, "standings", setting(1, points=6)), "sum of points"),
    "points, and their sum": (lambda store: forge(store, "standings", setting(1, points=6), points_sum=12), "row 2"),
    "a time": (lambda store: forge(store, "standings", setting(2, reached_at=None)), "row 3"),
    "standings sealed anew": (lambda store: lie(store, software="finale 9"), "other standings"),
    "a grant's id": (lambda store: forge(store, "grants", setting(0, grant_id="0" * 36)), "grant_id"),
    "a grant's rule": (lambda store: forge(store, "grants", setting(0, rule="all")), "grant_id"),
    "a grant's item": (lambda store: forge(store, "grants", setting(0, item="gems")), "grant_id"),
    "a grant's amount": (lambda store: forge(store, "grants", setting(1, amount=51)), "sums"),
    "a grant's player": (lambda store: forge(store, "grants", setting(0, player_id="p9")), "another player"),
    "a grant's rank": (lambda store: forge(store, "grants", setting(0, rank=2)), "another player"),
    "a grant dropped": (lambda store: forge(store, "grants", lambda rows: rows.pop()), "sums"),
    "a grant doubled": (lambda store: forge(store, "grants", lambda rows: rows.append(rows[-1])), "sums"),
    "the sums": (lambda store: lie(store, "grants", sums={"gems": 110, "title.first": 3}), "sums"),
}


def test_closed_seasons_are_found_right(closed_store: Path) -> None:
    """High with packed scores and grants, ties within a second, low with plain scores and no grants."""
    for board, season in SEASONS:
        check(closed_store, board, season)


@pytest.mark.parametrize("name", TAMPERING)
def test_tampering_is_found(closed_store: Path, name: str) -> None:
    """Each change is found where it was made, also if the part was sealed anew around it."""
    tamper, where = TAMPERING[name]
    check(closed_store, *CUP)
    tamper(closed_store)
    with pytest.raises(AssertionError, match=where):
        check(closed_store, *CUP)


def test_every_grant_follows_from_rows_and_table(closed_store: Path) -> None:
    """Players, rules, items and amounts, in the files' order, from sealed standings and table alone."""
    for season, most in (("spring", 8), ("autumn", 5)):
        _, rows, _ = stranger.load(closed_store, "cup", season, "standings")
        seal, found, _ = stranger.load(closed_store, "cup", season, "grants")
        table, expected = seal["reward_table"], []
        for row in rows:
            place = row["rank" if table["ties"] == "share" else "position"]
            for rule in table["rule"]:
                first, dash, last = rule.get("rank", "1-").partition("-")
                if int(first) <= place <= float(last or ("inf" if dash else first)):
                    expected += [(row["player_id"], rule["name"], *line.values()) for line in rule["grant"]]
                    if table["match"] == "first":
                        break
        assert [(row["player_id"], row["rule"], row["amount"], row["item"]) for row in found] == expected
        assert len(expected) == most


def test_the_reader_is_short_and_a_stranger() -> None:
    """Under 60 lines, nothing but the standard library and pyarrow."""
    text = Path(stranger.__file__).read_text()
    assert len(text.splitlines()) < 60
    modules = {
        (node.module if isinstance(node, ast.ImportFrom) else name.name).partition(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert modules - sys.stdlib_module_names == {"pyarrow"}


def test_the_documents_example_is_right() -> None:
    """The bytes and hashes of the worked digest and grant id, as the document prints them."""
    text = DOCUMENT.read_text()
    hashed = re.findall(r"^\| [LIS] \| `([0-9a-f ]+)` \| `([0-9a-f]{64})` \|$", text, re.MULTILINE)
    assert len(hashed) == 3
    for data, digest in hashed:
        assert sha256(bytes.fromhex(data)).hexdigest() == digest
    whole = sha256(b"".join(bytes.fromhex(digest) for _, digest in hashed)).hexdigest()
    assert text.count(whole) == 3  # the seal, its key, and the worked example
    fields = re.findall(r"^([0-9a-f]{8}) ([0-9a-f]+)  ", text, re.MULTILINE)
    assert len(fields) == 4
    key = sha256(bytes.fromhex("".join(map("".join, fields)))).digest()
    assert f"key      {key.hex()[:32]} {key.hex()[32:]}" in text
    uuid = sha256(key + "Zoë".encode()).hexdigest()[:32]
    assert f"grant_id {uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:]}" in text
    assert sha256(sha256(b"").digest() * 3).hexdigest() in text
