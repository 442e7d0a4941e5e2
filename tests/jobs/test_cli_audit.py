"""finale audit (I10): really closed and corrected seasons are found right, every kind of tampering is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.cli import World, finale

TABLE = """
version = 1
[[rule]]
name = "first"
rank = "1"
grant = { "title.first" = 1, gems = 500 }
[[rule]]
name = "top half"
percentile = "50"
grant = { gems = 100 }
[[rule]]
name = "all"
all = true
grant = { gems = 10 }
"""
BOARD = """
[runner]
part_rows = 1000
[board.cup]
rewards = "cup.toml"
keep_live = "0s"
[board.cup.calendar]
seasons = [
  { id = "s1", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z },
  { id = "s2", starts_at = 2026-02-01T00:00:00Z, ends_at = 2026-03-01T00:00:00Z },
]
"""
CORRECT = ("rewards", "correct", "cup", "s1", "--as", "ana", "--because", "ticket 7")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audited")


@pytest.fixture
def store(world: World, template: Path) -> Path:
    """The archive of two seasons, the first of them corrected twice; made once, and copied for each test."""
    made = template / "store"
    if not made.exists():
        world.configure(BOARD, cup=TABLE)
        for month in (1, 2):
            world.played("cup", *(f"m{month}-{n},p{n % 9},{n},2026-0{month}-05T10:00:00Z" for n in range(20)))
        finale("close", "cup", "s1", "--as", "ops").ok()
        finale(*CORRECT, "--exclude", "p3").ok()
        finale("results", "void", "m1-19", "--source", "cup", "--because", "cheated", "--as", "ana").ok()
        finale(*CORRECT, "--voided").ok()
        finale("close", "cup", "s2", "--as", "ops").ok()
        shutil.copytree(world.store, made)
    copy = world.folder / "copy"
    shutil.copytree(made, copy)
    return copy


@pytest.fixture(autouse=True)
def alone(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no configuration and no server."""
    for name in ("FINALE_CONFIG", "FINALE_REDIS", "FINALE_POSTGRES", "FINALE_STORE", "FINALE_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.chdir(store)


def audit(store: Path, *words: str) -> Any:
    return finale("audit", store.as_uri(), "cup", "s1", *words)


def part(store: Path, kind: str) -> Path:
    place = (
        f"corrections/board=cup/season=s1/n={kind[-4:]}"
        if kind.startswith("correction")
        else f"{kind}/board=cup/season=s1"
    )
    return store / place / "part-00000.parquet"


def seal(store: Path, kind: str, season: str = "s1") -> Path:
    return store / "seals/cup" / season / f"{kind}.json"


def lie(store: Path, kind: str, /, **fields: Any) -> None:
    value = json.loads(seal(store, kind).read_bytes()) | fields
    seal(store, kind).write_text(json.dumps(value, sort_keys=True, indent=2) + "\n")


def forge(store: Path, kind: str, change: Callable[[list[dict[str, Any]]], Any]) -> None:
    """Write other rows, and seal them as a forger would who knows the format; the chain after it is mended too."""
    file = part(store, kind)
    schema, rows = pq.read_schema(file), pq.ParquetFile(file).read().to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema), file)
    data = file.read_bytes()
    sums: dict[str, int] = {}
    for row in rows:
        sums[row["item"]] = sums.get(row["item"], 0) + row["amount"]
    told = {"name": file.name, "rows": len(rows), "size": len(data), "sha256": sha256(data).hexdigest()}
    lie(store, kind, rows=len(rows), parts=[told], sums=sums)
    mend(store)


def mend(store: Path) -> None:
    """Name in every seal the hash of the one before, as it is now, and in all that follow from it."""
    values = {path: json.loads(path.read_bytes()) for path in (store / "seals/cup").rglob("*.json")}
    before, hashes = None, {}
    for path in sorted(values, key=lambda path: values[path]["chain"]["number"]):
        value = values[path]
        value["chain"]["previous"] = before
        for name, kind in (("standings_seal", "standings"), ("grants_seal", "grants")):
            if name in value:
                value[name] = hashes[path.with_name(f"{kind}.json")]
        path.write_text(json.dumps(value, sort_keys=True, indent=2) + "\n")
        before = hashes[path] = sha256(path.read_bytes()).hexdigest()


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def other_table(store: Path) -> None:
    table = json.loads(seal(store, "grants").read_bytes())["reward_table"]
    table["rule"][0]["grant"][1]["amount"] = 501
    lie(store, "grants", reward_table=table)
    mend(store)


TAMPERING: dict[str, tuple[Callable[[Path], Any], str]] = {
    "one byte of the standings": (lambda store: flip(part(store, "standings")), "standings: files"),
    "one byte of the grants": (lambda store: flip(part(store, "grants")), "grants: files"),
    "one byte of a correction": (lambda store: flip(part(store, "correction-0002")), "correction-0002: files"),
    "one byte of the facts": (
        lambda store: flip(next((store / "facts").rglob("excluded-*.parquet"))),
        "is not the file of facts that was sealed",
    ),
    "another season's part": (
        lambda store: shutil.copy(store / "standings/board=cup/season=s2/part-00000.parquet", part(store, "standings")),
        "is not the part that was sealed",
    ),
    "a part too many": (
        lambda store: shutil.copy(part(store, "grants"), part(store, "grants").with_name("part-00001.parquet")),
        "was not sealed",
    ),
    "a part removed": (lambda store: part(store, "grants").unlink(), "is missing"),
    "a seal removed from the middle": (lambda store: seal(store, "correction-0001").unlink(), "chain: "),
    "a seal of grants removed": (lambda store: seal(store, "grants").unlink(), "chain: "),
    "a seal changed": (lambda store: lie(store, "correction-0001", because="no reason"), "names another hash"),
    "the first seal removed": (lambda store: seal(store, "standings").unlink(), "the chain begins with number 2"),
    "a forged amount, resealed": (
        lambda store: forge(store, "grants", lambda rows: rows[1].update(amount=900)),
        "grants: computed anew",
    ),
    "a forged grant, resealed": (
        lambda store: forge(store, "grants", lambda rows: rows.append({**rows[-1], "item": "gold"})),
        "is sealed but does not follow",
    ),
    "a grant left out, resealed": (
        lambda store: forge(store, "grants", lambda rows: rows.pop()),
        "follows but is not sealed",
    ),
    "a forged revocation, resealed": (
        lambda store: forge(store, "correction-0001", lambda rows: rows[0].update(amount=-1)),
        "correction-0001: computed anew",
    ),
    "an altered table, resealed": (other_table, "grants: computed anew"),
}


def test_what_was_really_closed_is_found_right(store: Path) -> None:
    """I10: no configuration and no server; seals, files, grants and both corrections."""
    told = audit(store, "--json").ok().json
    assert told["ok"] and told["last"]["number"] == 6
    assert [check["check"] for check in told["checks"]] == [
        "chain", "standings: files", "grants: files", "correction-0001: files", "correction-0002: files",
        "grants: computed anew", "correction-0001: computed anew", "correction-0002: computed anew",
    ]  # fmt: skip  # a row a line
    shown = finale("audit", str(store), "cup", "s2").ok().out
    assert told["last"]["sha256"] in shown and "FAULT" not in shown


@pytest.mark.parametrize("how", TAMPERING)
def test_every_tampering_is_found(store: Path, how: str) -> None:
    """I10: what was changed, swapped, added, removed or forged is named, with exit code 30."""
    tamper, said = TAMPERING[how]
    tamper(store)
    answer = audit(store).refused(30)
    assert said in answer.err + answer.out


def test_a_chain_cut_at_its_end_is_found_by_its_tip(store: Path) -> None:
    """I10: without the hash of its tip nothing shows that the last seals are gone; with it, it is told."""
    tip = audit(store, "--json").ok().json["last"]["sha256"]
    assert "0 seals after it" in audit(store, "--tip", tip).ok().out
    for path in (seal(store, "grants", "s2"), seal(store, "standings", "s2")):
        path.unlink()
    audit(store).ok()
    audit(store, "--tip", tip).refused(30, f"no seal of the board has the hash {tip}", "ends at number 4")


def test_a_tip_in_the_middle_is_held_too(store: Path) -> None:
    """What was written down long ago still proves that everything up to it is there."""
    old = sha256(seal(store, "grants").read_bytes()).hexdigest()
    assert "number 2 of the chain, 4 seals after it" in audit(store, "--tip", old.upper()).ok().out
    mended = TAMPERING["an altered table, resealed"][0]
    mended(store)
    audit(store, "--tip", old).refused(30, "no seal of the board has the hash")


def test_what_is_asked_wrongly_is_told(store: Path) -> None:
    """A season that is not sealed, a board that is none, a tip that is no hash."""
    finale("audit", store.as_uri(), "cup", "s9").refused(5, "cup/s9 is not sealed")
    finale("audit", store.as_uri(), "cap", "s1").refused(5, "nothing of board 'cap' is sealed")
    audit(store, "--tip", "abc").refused(4, "is no SHA-256")
    for url in (str(store / "missing"), (store / "missing").as_uri()):
        finale("audit", url, "cup", "s1").refused(11, f"there is no folder {store / 'missing'}")
    finale("audit", "s3://", "cup", "s1").refused(3, "s3://")
    finale("audit", "ftp://host/archive", "cup", "s1").refused(3, "ftp")


def test_without_a_seal_of_grants_the_audit_says_so(store: Path) -> None:
    """What was cut off at the end of the chain is no fault that can be seen without --tip, but it is told."""
    season = store / "seals/cup/s2"
    assert "no seal of grants" not in finale("audit", str(store), "cup", "s2").ok().out
    (season / "grants.json").unlink()
    assert "no seal of grants is here" in finale("audit", str(store), "cup", "s2").ok().out


def test_an_archive_without_a_readable_seal_has_a_remedy(store: Path) -> None:
    """Seals that are no seals any more: what to look at is said."""
    for path in (store / "seals/cup").rglob("*.json"):
        path.write_text("no seal")
    finale("audit", str(store), "cup", "s2").refused(30, "no seal of board 'cup' can be read", "check URL and board")
