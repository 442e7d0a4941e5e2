"""finale results import: what is taken, repeated, in conflict or refused, with line numbers; nothing half taken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.cli import World, differing, finale

AT = "2026-01-02T00:00:00Z"
CONFIG = """
[runner]
batch_rows = 100
[board.cup]
ties = "shared"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""


@pytest.fixture
def cup(world: World) -> World:
    world.configure(CONFIG)
    return world


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (f"m1,ann,many,{AT}", "points 'many' is no whole number"),
        (f"m1,ann,1.5,{AT}", "points '1.5' is no whole number"),
        (f"m1,ann,,{AT}", "points '' is no whole number"),
        (f"m1,ann,{2**53 + 1},{AT}", "past 2^53 - 1"),
        ("m1,ann,1,2026-01-02T00:00:00", "has no UTC offset"),
        ("m1,ann,1,yesterday", "is no ISO 8601 time"),
        (f",ann,1,{AT}", "match_id is empty"),
        (f"m1,,1,{AT}", "player_id is empty"),
        (f"m1,ann,1,{AT},more", "5 cells where the header names 4"),
        ("m1,ann,1,2031-01-01T00:00:00Z", "future"),
        ("m1,ann,1,2020-01-01T00:00:00Z", "no season of any board"),
    ],
)
def test_a_bad_line_is_refused_with_its_number_and_the_others_are_taken(cup: World, row: str, reason: str) -> None:
    """Exit 4 names line and reason; the good lines count, and importing again changes nothing more."""
    path = cup.results(f"m1,bob,5,{AT}", row, f"m2,eve,7,{AT}")
    answer = finale("results", "import", str(path), "--board", "cup", "--json")
    answer.refused(4, "1 line refused", "line 3", reason)
    told = answer.json
    assert (told["new"], told["refused"], told["applied"]) == (2, 1, 2)
    assert [(one["line"], one["kind"]) for one in told["remarks"]] == [(3, "refused")]
    assert cup.redis.zrange("leaderboard:cup:one", 0, -1, withscores=True) == [(b"bob", 5.0), (b"eve", 7.0)]
    before = cup.picture()
    again = finale("results", "import", str(path), "--board", "cup", "--json")
    assert (again.code, again.json["new"], again.json["repeated"], again.json["refused"]) == (4, 0, 2, 1)
    assert differing(before, cup.picture()) == []


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"match_id,player_id,points\nm1,ann,1\n", ("lacks the column played_at", "it has 'match_id'")),
        ("a.csv", b"", ("is an empty file", "the columns are")),
        ("a.csv", b"match_id,player_id,points,played_at,points\n", ("'points' twice",)),
        ("a.csv", b'match_id,player_id,points,played_at\n"m1,ann', ("line",)),
        ("a.parquet", b"PAR1 not quite", ("no readable Parquet",)),
        ("a.xlsx", b"", ("neither .csv nor .parquet",)),
        ("absent.csv", None, ("cannot be read", "No such file")),
    ],
)
def test_a_file_that_is_none_is_refused_whole(
    cup: World, name: str, content: bytes | None, words: tuple[str, ...]
) -> None:
    """A missing column, a broken or absent file: exit 4 names the file and the fault, and nothing is taken."""
    path = cup.folder / name
    if content is not None:
        path.write_bytes(content)
    before = cup.picture()
    finale("results", "import", str(path), "--board", "cup").refused(4, str(path), *words)
    assert differing(before, cup.picture()) == []


def test_a_file_that_breaks_off_says_what_was_taken(cup: World) -> None:
    """Chunks are committed as they come: an unreadable rest names the rows before it, and the mended file ends well."""
    rows = [f"m{number},p{number},1,{AT}" for number in range(150)]
    path = cup.results(*rows, '"broken')
    finale("results", "import", str(path), "--board", "cup").refused(
        4, "the first 100 rows were taken", "not taken twice"
    )
    assert cup.sql("select count(*) from finale.match_result") == [(100,)]
    mended = finale("results", "import", str(cup.results(*rows)), "--board", "cup", "--json").ok().json
    assert (mended["new"], mended["repeated"]) == (50, 100)


def test_a_conflict_keeps_what_was_first(cup: World) -> None:
    """I6: the same match and player with other values is a conflict: exit 4 with the line; the first one stands."""
    cup.played("cup", f"m1,ann,5,{AT}")
    path = cup.results(f"m1,ann,6,{AT}", f"m2,ann,1,{AT}")
    answer = finale("results", "import", str(path), "--board", "cup")
    answer.refused(4, "1 in conflict", "line 2", "5 points")
    assert "conflict" in answer.out
    assert cup.redis.zscore("leaderboard:cup:one", "ann") == 6.0
    assert cup.sql("select points from finale.match_result order by match_id") == [(5,), (1,)]


def test_the_source_must_be_named_and_known(cup: World, tmp_path: Path) -> None:
    """Neither or both of --source and --board is exit 4; a source that no board counts is exit 5, with those known."""
    path = str(cup.results(f"m1,ann,5,{AT}"))
    finale("results", "import", path).refused(4, "either --source SOURCE or --board BOARD")
    finale("results", "import", path, "--source", "cup", "--board", "cup").refused(4, "one of them")
    finale("results", "import", path, "--source", "cupp").refused(5, "'cupp'", "sources: cup")
    finale("results", "import", path, "--board", "cupp").refused(5, "'cupp'", "did you mean cup?")


def test_boards_that_share_a_source_are_written_each_for_itself(world: World) -> None:
    """A board whose key is no sorted set does not keep the totals from another board of the same source."""
    world.configure(CONFIG + CONFIG.partition("[board.cup]")[2].join(("[board.league]\nsource = 'cup'", "")))
    world.redis.set("leaderboard:cup:one", "precious")
    path = world.results(f"m1,ann,5,{AT}")
    answer = finale("results", "import", str(path), "--source", "cup", "--json")
    answer.refused(4, "every row is in the ledger", "leaderboard:cup:one", "is a string")
    assert (answer.json["applied"], answer.json["waiting"]) == (1, 1)
    assert world.redis.zscore("leaderboard:league:one", "ann") == 5.0
    world.redis.delete("leaderboard:cup:one")
    second = finale("results", "import", str(path), "--source", "cup", "--json").ok().json
    assert (second["repeated"], second["applied"], second["waiting"]) == (1, 1, 0)
    assert world.redis.zscore("leaderboard:cup:one", "ann") == 5.0


def test_apply_all_takes_over_from_whoever_is_writing(cup: World) -> None:
    """results apply --all writes every total although another applier's lease runs; without it only what is pending."""
    cup.played("cup", f"m1,ann,5,{AT}", f"m1,bob,3,{AT}")
    cup.redis.flushall()
    assert "2 totals written" in finale("results", "apply", "cup", "one").ok().out, (
        "lost writes are found and made anew"
    )
    assert "0 totals written" in finale("results", "apply", "cup", "one").ok().out
    cup.sql("update finale.bucket_lease set holder = 'other', expires_at = now() + interval '1 hour'")
    assert finale("results", "apply", "cup", "one", "--all", "--json").ok().json["applied"] == 2
    assert cup.redis.zcard("leaderboard:cup:one") == 2


def test_a_calendar_that_would_overlap_a_stored_season_is_refused(cup: World) -> None:
    """The stored bounds stand: results that need a season overlapping a stored one are exit 3, and none is taken."""
    cup.played("cup", f"m1,ann,5,{AT}")
    moved = '{ id = "two", starts_at = 2026-01-15T00:00:00Z, ends_at = 2026-03-01T00:00:00Z }'
    cup.configure(CONFIG.partition("seasons = [")[0] + f"seasons = [{moved}] }}\n")
    before = cup.picture()
    path = cup.results("m2,ann,5,2026-02-10T00:00:00Z")
    finale("results", "import", str(path), "--board", "cup").refused(3, "two", "overlaps season one", "stored bounds")
    assert differing(before, cup.picture()) == []


def test_a_result_of_just_now_counts(world: World) -> None:
    """The season follows from played_at: one that began by the calendar a moment ago is created and opened."""
    now = datetime.now(UTC)
    world.configure('[board.day]\nties = "shared"\ncalendar = { every = "year" }\n')
    world.played("day", f"m1,ann,5,{(now - timedelta(seconds=1)).isoformat()}")
    (season,) = finale("season", "list", "--json").ok().json
    assert (season["season"], season["state"], season["backfill"]) == (f"s{now.year}", "open", False)


def test_an_import_names_the_seasons_that_it_created(world: World) -> None:
    """A time that was never set opens a season of 1969: the table and the JSON name it, once."""
    world.configure('[board.old]\nties = "shared"\ncalendar = { every = "year" }\n')
    path = world.results("m1,ann,1,1971-06-01T00:00:00Z", "m2,ann,1,2025-06-01T00:00:00Z")
    told = finale("results", "import", str(path), "--board", "old", "--json").ok().json
    assert told["seasons_created"] == ["old/s1971", "old/s2025"]
    assert "created" not in finale("results", "import", str(path), "--board", "old").ok().out
    path = world.results("m3,ann,1,1972-06-01T00:00:00Z")
    assert (
        "1 season created for these times: old/s1972"
        in finale("results", "import", str(path), "--board", "old").ok().out
    )


def test_a_refused_id_of_any_length_leaves_the_list_readable(world: World) -> None:
    """Long ids are cut in the table and whole in the JSON; rows come as they stood in the file."""
    world.configure('[board.old]\nties = "shared"\ncalendar = { every = "year" }\n')
    at, long = "2025-06-01T00:00:00Z", "x" * 70_000
    path = world.results(f"m1,,1,{at}", f"m2,{long},1,{at}", "m3,bob,1,2999-01-01T00:00:00Z", f"m4,bob,y,{at}")
    finale("results", "import", str(path), "--board", "old").refused(4, "3")
    out = finale("results", "refused", "old").ok().out
    assert "x… (70,000 characters)" in out
    assert len(out) < 5_000
    rows = finale("results", "refused", "old", "--json").ok().json
    assert [row["match_id"] for row in rows] == ["m1", "m2", "m3", "m4"]
    assert rows[1]["player_id"] == long


def test_files_that_are_none_are_told_with_their_remedy(cup: World, tmp_path: Path) -> None:
    """UTF-16, a binary under .csv, a folder and no name: what is wrong and what to do; nothing is taken."""
    for name, data, word in (
        ("utf16.csv", f"match_id,player_id,points,played_at\nm1,ann,1,{AT}\n".encode("utf-16"), "it is UTF-16"),
        ("le.csv", "match_id,player_id".encode("utf-16-le"), "null bytes"),
        ("zip.csv", b"PK\x03\x04\x00\x00", "null bytes"),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        finale("results", "import", str(path), "--board", "cup").refused(4, word, "save it as UTF-8")
    finale("results", "import", str(tmp_path), "--board", "cup").refused(4, "is a folder", "name a .csv")
    finale("results", "import", "", "--board", "cup").refused(4, "an empty text names no file")
    both = ("--source", "cup", "--board", "cup")
    finale("results", "import", "x.csv", *both).refused(4, "one of them is enough")
    finale("results", "import", "x.csv", "--source", "nope").refused(5, "sources: cup", "--board")
    assert cup.sql("select count(*) from finale.match_result") == [(0,)]
