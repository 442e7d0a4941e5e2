"""finale archive on seasons that were really closed, with Redis and PostgreSQL out of reach."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.jobs.archived import CONFIG, TABLE
from tests.support.cli import World, finale


def files(store: Path) -> dict[str, bytes]:
    """Return everything in the store by path."""
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}


def archive(*arguments: str) -> object:
    """Return what the command printed as JSON."""
    return finale("archive", *arguments, "--json").ok().json


def test_list_and_show(closed_store: Path) -> None:
    """Every seal with its link in the chain; the seal itself comes byte for byte."""
    rows = archive("list")
    assert isinstance(rows, list)
    assert [(row["board"], row["season"], row["kind"], row["rows"], row["number"]) for row in rows] == [
        ("cup", "spring", "standings", 7, 1),
        ("cup", "spring", "grants", 8, 2),
        ("cup", "autumn", "standings", 3, 3),
        ("cup", "autumn", "grants", 5, 4),
        ("laps", "s2025", "standings", 2, 1),
    ]
    shown = finale("archive", "list", "laps").ok().out
    assert "s2025" in shown
    assert "spring" not in shown
    seal = finale("archive", "show", "cup", "autumn", "--json").ok().out.encode()
    assert hashlib.sha256(seal).hexdigest() == rows[2]["sha256"]
    assert seal == (closed_store / "seals/cup/autumn/standings.json").read_bytes()
    assert (
        rows[2]["sha256"] == json.loads((closed_store / "seals/cup/autumn/grants.json").read_bytes())["standings_seal"]
    )
    grants = finale("archive", "show", "cup", "autumn", "--kind", "grants").ok().out
    assert "110 gems, 2 title.first" in grants  # two share the first rank
    assert "part-00000.parquet" in grants


def test_verify_one_and_all(closed_store: Path) -> None:
    """One season with its grants, a board, everything; and faults of all seasons at once, with exit code 30."""
    one = archive("verify", "cup", "spring")
    assert isinstance(one, list)
    assert [(row["kind"], row["rows"]) for row in one] == [("standings", 7), ("grants", 8)]
    assert "everything is as it was sealed" in finale("archive", "verify", "laps", "s2025").ok().out
    everything = archive("verify", "--all")
    assert isinstance(everything, list)
    assert len(everything) == 5
    assert len(finale("archive", "verify", "cup", "--all", "--json").ok().json) == 4
    (closed_store / "grants/board=cup/season=spring/part-00000.parquet").write_bytes(b"PAR1")
    (closed_store / "standings/board=laps/season=s2025/part-00000.parquet").unlink()
    told = finale("archive", "verify", "--all").refused(30, "grants/board=cup/season=spring/part-00000.parquet")
    assert "standings/board=laps/season=s2025/part-00000.parquet is missing" in told.err
    assert "seals/cup/autumn/grants.json" in told.out
    finale("archive", "verify", "cup", "autumn").ok()


def test_verify_all_names_files_that_are_no_parts(closed_store: Path) -> None:
    """What lies where readers glob and is no part: in a season's place, beside it, in a place that has no season."""
    places = {
        "standings/board=cup/season=spring/part-00000 (copy).parquet": "was not sealed",
        "standings/board=cup/season=spring/more/part-00000.parquet": "was not sealed",
        "standings/board=cup/part-00000.parquet": "is no part of a season",
        "standings/board=cup/season=gone/data.parquet": "is no part of a season",
        "standings/notes.txt": "is no part of a season",
        "grants/board=cup/season=spring/part-0.parquet": "was not sealed",
        "corrections/board=cup/season=spring/n=1/part-00000.parquet": "is no part of a season",
    }
    for path in places:
        (closed_store / path).parent.mkdir(parents=True, exist_ok=True)
        (closed_store / path).write_bytes(b"?")
    told = finale("archive", "verify", "--all").refused(30, *(f"{path} {why}" for path, why in places.items()))
    assert all(told.err.count(path) == 1 for path in places)
    assert "standings/notes.txt" not in finale("archive", "verify", "cup", "--all").refused(30, "copy").err


def test_a_fault_is_told_once_and_as_json(closed_store: Path) -> None:
    """Of every kind of seal: the JSON has file, what, expected and found; the text names each file once."""
    lost = [f"{kind}/board=cup/season=spring/part-00000.parquet" for kind in ("standings", "grants")]
    for path in lost:
        (closed_store / path).write_bytes(b"PAR1")
    answer = finale("archive", "verify", "cup", "spring", "--json").refused(30, *lost)
    assert [one["faults"][0]["file"] for one in answer.json] == lost
    assert all(one["faults"][0].keys() == {"file", "what", "expected", "found"} for one in answer.json)
    assert all(len(one["faults"][0]["expected"]) == 64 for one in answer.json)
    assert all(answer.err.count(path) == 1 for path in lost)
    assert answer.err.count("backup") == 1
    (closed_store / "seals/cup/spring/standings.json").unlink()
    answer = finale("archive", "verify", "cup", "spring", "--json").refused(30, "standings.json is missing")
    assert [one["seal"] for one in answer.json] == ["seals/cup/spring/grants.json", "seals/cup/spring/standings.json"]


def test_one_unreadable_seal_hides_no_other(closed_store: Path) -> None:
    """sql and player show what can be read, then name the file, exit 30: a fault of one board is none of another."""
    (closed_store / "seals/laps/s2025/standings.json").write_bytes(b"{")
    answer = finale("archive", "sql", "select distinct board from standings", "--json")
    answer.refused(30, "seals/laps/s2025/standings.json")
    assert answer.json == [{"board": "cup"}]
    answer = finale("archive", "player", "p2", "--json").refused(30, "seals/laps/s2025/standings.json")
    assert {one["season"] for one in answer.json} == {"spring", "autumn"}
    finale("archive", "player", "p2", "--board", "cup").ok()
    assert "create" in finale("archive", "sql").refused(30, "seals/laps/s2025/standings.json").out


def test_a_damaged_part_is_never_passed_over_in_an_answer(closed_store: Path) -> None:
    """sql and player show the rest, then name the part, exit 30; that nobody is in there is not claimed."""
    part = "standings/board=laps/season=s2025/part-00000.parquet"
    whole = (closed_store / part).read_bytes()
    (closed_store / part).write_bytes(whole[:-100])
    told = f"{part} has {len(whole) - 100:,} bytes, the seal says {len(whole):,}"
    answer = finale("archive", "sql", "select distinct board from standings", "--json").refused(30, told, "backup")
    assert answer.json == [{"board": "cup"}]
    assert "create" in finale("archive", "sql").refused(30, told).out
    answer = finale("archive", "player", "p2", "--json").refused(30, told)
    assert {one["season"] for one in answer.json} == {"spring", "autumn"}
    unknown = ("whether a season has a player 'bob' cannot be told: 1 sealed season could not be read", told, "backup")
    finale("archive", "player", "bob").refused(30, *unknown)
    finale("archive", "player", "bob", "--board", "cup").refused(5, "no sealed season has a player 'bob'")
    (closed_store / "seals/cup/spring/standings.json").write_bytes(b"{")
    finale("archive", "player", "bob").refused(30, "2 sealed seasons could not be read", "spring/standings.json", told)


def test_a_player_of_binary_boards_is_asked_for_in_hex(closed_store: Path, tmp_path: Path) -> None:
    """Where every board asked about has binary ids, what is no hex is told; a folder is no file to be replaced."""
    seal = closed_store / "seals/laps/s2025/standings.json"
    definition = json.loads(seal.read_bytes())
    definition["board"]["member"] = "binary"
    seal.write_text(f"{json.dumps(definition, sort_keys=True, indent=2, ensure_ascii=False)}\n")
    finale("archive", "player", "zz", "--board", "laps").refused(4, "is not hex", "written in hex")
    (tmp_path / "x.csv").mkdir()
    where = ("--to", str(tmp_path / "x.csv"), "--force")
    finale("archive", "export", "cup", "spring", *where).refused(4, "is a folder", "name a file")


def test_verify_all_follows_the_chain(closed_store: Path) -> None:
    """A season taken out of the archive whole, seals and parts, is missed in the chain."""
    for path in ("seals/cup/spring/grants.json", "grants/board=cup/season=spring/part-00000.parquet"):
        (closed_store / path).unlink()
    finale("archive", "verify", "cup", "spring").ok()
    finale("archive", "verify", "--all").refused(30, "seals/cup/autumn/standings.json has number 3 in the chain")


def test_sql(closed_store: Path) -> None:
    """A query in three shapes, the views for the duckdb shell, and what is wrong with the SQL."""
    query = "select season, player_id, points from standings where board = 'cup' and rank = 1 order by all"
    expected = [("autumn", "p2", 5), ("autumn", "p3", 5), ("spring", "p2", 11)]
    assert archive("sql", query) == [dict(zip(("season", "player_id", "points"), row, strict=True)) for row in expected]
    written = csv.reader(io.StringIO(finale("archive", "sql", query, "--csv").ok().out))
    assert list(written) == [["season", "player_id", "points"], *([*map(str, row)] for row in expected)]
    assert "p3" in finale("archive", "sql", query).ok().out
    assert "[bold]Zoë" in finale("archive", "sql", "select player_id from standings").ok().out
    printed = finale("archive", "sql", query, "--print").ok().out
    with duckdb.connect() as shell:
        assert shell.execute(printed).fetchall() == expected
        shell.execute(finale("archive", "sql").ok().out)
        assert shell.execute("select sum(amount) from grants_net where item = 'gems'").fetchall() == [(220,)]
    assert archive("sql", "select player_id from standings where false") == []
    assert archive("sql", "select 'nan'::double as a, '\\xff'::blob as b") == [{"a": None, "b": "ff"}]
    finale("archive", "sql", "selec").refused(4, "syntax error")
    finale("archive", "sql", " ").refused(4, "empty")
    finale("archive", "sql", "select 1 as a, 2 as a", "--json").refused(4, "more than one column")
    finale("archive", "sql", "select 1", "--json", "--csv").refused(4, "one result")
    finale("archive", "sql", "copy (select 1) to 'x.csv'").refused(4, "COPY is no query")
    answer = finale("archive", "sql", "select 1 as a; select 2 as a", "--csv").refused(4, "2 statements")
    assert answer.out == ""


def test_sql_leaves_out_what_is_not_whole(closed_store: Path) -> None:
    """A season whose parts are not all in place is named on stderr, and the rest is answered."""
    (closed_store / "standings/board=cup/season=spring/part-00000.parquet").unlink()
    answer = finale("archive", "sql", "select distinct season from standings where board = 'cup'", "--json").ok()
    assert answer.json == [{"season": "autumn"}]
    assert "note: left out" in answer.err
    assert "season=spring" in answer.err


def test_export(closed_store: Path, tmp_path: Path) -> None:
    """One file, never over another unless told."""
    target = tmp_path / "spring.csv"
    assert archive("export", "cup", "spring", "--to", str(target)) == {
        "path": str(target),
        "rows": 7,
        "bytes": target.stat().st_size,
    }
    before = target.read_text()
    finale("archive", "export", "cup", "autumn", "--to", str(target)).refused(4, "exists already", "--force")
    assert target.read_text() == before
    finale("archive", "export", "cup", "autumn", "--to", str(target), "--force").ok()
    assert "Zoë" in target.read_text()
    finale("archive", "export", "cup", "spring", "--kind", "grants", "--to", str(tmp_path / "g.parquet")).ok()
    assert pq.read_metadata(tmp_path / "g.parquet").num_rows == 8
    finale("archive", "export", "cup", "spring", "--to", str(tmp_path / "x.json")).refused(4, ".csv")
    finale("archive", "export", "cup", "winter", "--to", str(tmp_path / "w.csv")).refused(5, "not sealed")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.parquet", "spring.csv"]


def test_player(closed_store: Path) -> None:
    """Every season a player was in, oldest first; a player of none is told with exit code 5."""
    rows = archive("player", "p2")
    assert isinstance(rows, list)
    assert [(row["board"], row["season"], row["rank"], row["points"], row["players"]) for row in rows] == [
        ("cup", "spring", 1, 11, 7),
        ("cup", "autumn", 1, 5, 3),
    ]
    assert rows[1]["reached_at"] == "2026-09-02T10:00:00Z"
    assert finale("archive", "player", "[bold]Zoë").ok().out.count("autumn") == 1
    assert archive("player", "bob", "--board", "laps")
    finale("archive", "player", "bob", "--board", "cup").refused(5, "no sealed season has a player 'bob'")
    finale("archive", "player", "p2", "--board", "darts").refused(5, "nothing of board 'darts' is sealed")


def test_a_season_that_is_still_being_published_hides_no_other(closed_store: Path) -> None:
    """player shows the others, with the note that list and sql give; nobody claims that the player is not in there."""
    (closed_store / "standings/board=cup/season=autumn/part-00000.parquet").unlink()
    (closed_store / "grants/board=cup/season=spring/part-00000.parquet").unlink()  # nobody's position is in there
    note = "sealed but not in place (being copied, or damaged): standings/board=cup/season=autumn has not part-00000"
    assert note in finale("archive", "list").ok().err
    answer = finale("archive", "player", "p2", "--json").ok()
    assert [(row["board"], row["season"]) for row in answer.json] == [("cup", "spring")]
    assert answer.err.count(note) == answer.err.count("note:") == 1
    assert "note:" not in finale("archive", "player", "bob", "--board", "laps").ok().err
    told = finale("archive", "player", "nobody").refused(5, "no sealed season has a player 'nobody'", note)
    assert "1 season was not looked at" in told.err


def test_sweep(closed_store: Path) -> None:
    """A dry run says what would go and why; the real run removes that, and nothing of it was needed."""
    for attempt in ("dead-f1-1", "dead-f2-1"):
        folder = closed_store / "staging/cup/spring" / attempt
        folder.mkdir(parents=True)
        (folder / "part-00000.parquet").write_bytes(b"x")
    before = files(closed_store)
    assert finale("archive", "sweep").ok().out.count("too young") == 2
    dry = archive("sweep", "--older-than", "0", "--dry-run")
    assert isinstance(dry, list)
    assert [(row["attempt"], row["verdict"], row["removed"]) for row in dry] == [
        ("dead-f1-1", "remove", False),
        ("dead-f2-1", "keep", False),
    ]
    assert files(closed_store) == before
    assert finale("archive", "sweep", "--older-than", "0").ok().out.count("a seal may be committed") == 1
    assert finale("archive", "sweep", "--older-than", "0", "--unsealed").ok().out.count("the season is sealed") == 1
    assert files(closed_store) == {path: data for path, data in before.items() if not path.startswith("staging/")}
    assert "nothing was left behind" in finale("archive", "sweep").ok().out
    finale("archive", "sweep", "--older-than", "a while").refused(4, "--older-than", "is no duration")
    finale("archive", "verify", "--all").ok()


def test_what_is_asked_wrongly_is_told(closed_store: Path) -> None:
    """Each with its exit code and the words that help."""
    for arguments, code, words in (
        (["verify"], 4, "--all"),
        (["verify", "cup"], 4, "--all"),
        (["verify", "cup", "spring", "--all"], 4, "--all"),
        (["verify", "cup", "winter"], 5, "cup/winter is not sealed"),
        (["show", "cup", "winter"], 5, "not sealed"),
        (["show", "cup", "spring", "--kind", "seals"], 4, "standings, grants"),
        (["show", "laps", "s2025", "--kind", "grants"], 5, "grants of laps/s2025 are not sealed"),
        (["list", "darts"], 5, "darts"),
        (["list", "../cup"], 3, "cannot name a board"),
    ):
        finale("archive", *arguments).refused(code, words)


def test_a_broken_seal_hides_no_other(closed_store: Path) -> None:
    """The list shows what can be read and ends with exit code 30; so does a query and a lookup."""
    (closed_store / "seals/cup/spring/grants.json").write_text("{")
    told = finale("archive", "list").refused(30, "seals/cup/spring/grants.json")
    assert "autumn" in told.out
    finale("archive", "sql", "select 1 as one").refused(30, "seals/cup/spring/grants.json")
    finale("archive", "player", "p2").refused(30, "seals/cup/spring/grants.json")


def test_nothing_is_changed_by_looking(closed_store: Path, tmp_path: Path) -> None:
    """The store is the same after every command but sweep."""
    before = files(closed_store)
    finale("archive", "list").ok()
    finale("archive", "show", "cup", "spring").ok()
    finale("archive", "verify", "--all").ok()
    finale("archive", "sql", "select * from standings").ok()
    finale("archive", "player", "p2").ok()
    finale("archive", "export", "cup", "spring", "--to", str(tmp_path / "out.csv")).ok()
    finale("archive", "sweep", "--dry-run", "--older-than", "0").ok()
    assert files(closed_store) == before


def test_an_embedded_archive_is_read_without_starting_servers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without [servers] the folder under FINALE_HOME is the archive, and no server is started to read it."""
    for name in ("FINALE_REDIS", "FINALE_POSTGRES", "FINALE_STORE"):
        monkeypatch.delenv(name)
    world.configure(CONFIG, cup=TABLE)
    assert "nothing is sealed" in finale("archive", "list").ok().out
    assert archive("list") == []
    assert archive("verify", "--all") == []
    assert not (world.folder / "home").exists()


def test_a_store_that_does_not_answer_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback and no secret, whichever command asks."""
    monkeypatch.setenv("FINALE_STORE", "s3://nowhere/prefix")
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "hush-hush",
        "AWS_REGION": "x",
    }.items():
        monkeypatch.setenv(name, value)
    world.configure(CONFIG, cup=TABLE)
    told = finale("archive", "list").refused(10, "s3://nowhere/prefix")
    assert "hush-hush" not in told.err


def test_a_store_that_overwrites_is_found_before_the_first_seal(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """I2: close stops before anything is sealed, with the remedy; nothing is committed, and a sound store goes on."""
    from archive.folder import FolderStore

    world.configure(CONFIG, cup=TABLE)
    world.played("laps", "l1,amy,90,2025-05-01T10:00:00Z")
    put_new = FolderStore.put_new

    def overwrite(self: FolderStore, path: str, data: bytes) -> None:
        self.delete(path)
        put_new(self, path, data)

    with monkeypatch.context() as unsound:
        unsound.setattr(FolderStore, "put_new", overwrite)
        finale("close", "laps", "s2025", "--as", "ops").refused(11, "overwrites an object", "If-None-Match")
    assert world.state("laps", "s2025") == "reconciled"
    assert world.sql("select count(*) from finale.seal") == [(0,)]
    assert world.files("seals") == world.files("standings") == []
    finale("close", "laps", "s2025", "--as", "ops").ok()
    assert world.files("staging") == []


def test_a_store_that_is_not_there_is_never_as_it_was_sealed(
    closed_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistyped folder is an error of every command that reads; an empty one has nothing that could be as sealed."""
    missing = closed_store.parent / "stroe"
    monkeypatch.setenv("FINALE_STORE", missing.as_uri())
    for arguments in (("list",), ("verify", "--all"), ("verify", "cup", "spring"), ("sql", "select 1"), ("sweep",)):
        finale("archive", *arguments).refused(11, str(missing), "does not exist", "FINALE_STORE")
    missing.mkdir()
    for arguments in (("list",), ("verify", "--all")):
        told = finale("archive", *arguments).ok().out
        assert "nothing is sealed in" in told
        assert "as it was sealed" not in told


def test_verify_all_names_parts_that_no_seal_has(closed_store: Path) -> None:
    """A glob below standings/ would count them: each season without a seal is a fault, of this board or of all."""
    for path in (
        "standings/board=cup/season=winter/part-00000.parquet",
        "grants/board=laps/season=s2025/part-00000.parquet",
    ):
        (closed_store / path).parent.mkdir(parents=True)
        (closed_store / path).write_bytes(b"PAR1")
    told = finale("archive", "verify", "--all").refused(30, "standings/board=cup/season=winter/part-00000.parquet")
    assert "seals/cup/winter/standings.json does not exist" in told.err
    assert "seals/laps/s2025/grants.json does not exist" in told.err
    assert "2 faults in 5 seals" in told.err
    assert "winter" not in finale("archive", "verify", "laps", "--all").refused(30, "grants/board=laps").err


def test_errors_name_the_place_and_the_remedy(closed_store: Path, tmp_path: Path) -> None:
    """A seal that is none, and a folder for the export that there is not."""
    missing = tmp_path / "nodir"
    finale("archive", "export", "cup", "spring", "--to", str(missing / "x.csv")).refused(4, f"no folder {missing}")
    (closed_store / "seals/cup/spring/standings.json").write_bytes(b"{")
    finale("archive", "show", "cup", "spring").refused(30, "seals/cup/spring/standings.json", "backup")
