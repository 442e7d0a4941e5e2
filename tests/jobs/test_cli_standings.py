"""finale standings: the same answers from the live key before it is cleaned and from the sealed Parquet afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.cli import HEADER, World, finale

SEASON = '{ seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }'
TIES = ("shared", "member", "first_to_reach")


def board(order: str, ties: str, **more: str) -> str:
    keys = "".join(f"{key} = {value}\n" for key, value in more.items())
    return f'[board.b]\norder = "{order}"\nties = "{ties}"\naggregate = "best"\ncalendar = {SEASON}\n{keys}'


def rows() -> Iterator[str]:
    """Sixty players on seven scores, 0 among them, at few times, so that many tie; some ids are no ASCII."""
    for number in range(60):
        name = f"p{number}" if number % 3 else f"é{number}"
        yield f"m1,{name},{number % 7},2026-01-02T00:00:{number % 4:02d}Z"


def answers(players: list[str]) -> dict[str, Any]:
    """Return what every question is answered: the rows, and the one that is asked in plain as its table."""
    asked: dict[str, tuple[str, ...]] = {f"top {k}": ("--top", str(k)) for k in (7, 1_000)} | {"default": ()}
    for player in players:
        asked |= {f"{player} {n}": ("--player", player, "--around", str(n)) for n in (0, 3)}
    found: dict[str, Any] = {
        question: finale("standings", "b", "one", *options, "--json").ok().json for question, options in asked.items()
    }
    return found | {"plain": finale("standings", "b", "one", "--player", players[0], "--around", "99").ok().out}


def cleaned() -> None:
    finale("close", "b", "one").ok()
    finale("clean", "b", "one", "--now", "--as", "test").ok()


@pytest.mark.parametrize("shards", ['{ by = "player", count = 3 }', '{ by = "score", cuts = [2, 4] }'])
def test_of_a_sealed_season_with_a_shard_gone_the_archive_answers(world: World, shards: str) -> None:
    """Cleaned half, or held amid it, or a shard lost: never ranks of what is left of the board."""
    world.configure(board("high", "shared", shards=shards))
    world.played("b", *rows())
    finale("close", "b", "one", "--until", "deliver").ok()
    asked = ("é0", "p1", "p59")

    def told() -> dict[str, Any]:
        return answers(list(asked)) | {
            one: finale("rank", "b", one, "--season", "one", "--json").ok().json for one in asked
        }

    before = told()
    for number in range(3):
        key = f"leaderboard:b:one:{number}" if world.redis.exists(f"leaderboard:b:one:{number}") else None
        assert key is not None, world.redis.keys()
        world.redis.unlink(key)
        assert told() == before


@pytest.mark.parametrize("order", ["high", "low"])
@pytest.mark.parametrize("ties", TIES)
def test_every_answer_is_the_same_before_and_after_the_clean(world: World, order: str, ties: str) -> None:
    """I1: --top, --player and --around answer equally from the key and from the archive, on every kind of board."""
    world.configure(board(order, ties))
    world.played("b", *rows())
    players = ["é0", "p1", "p59"]
    live = answers(players)
    cleaned()
    assert world.redis.keys() == []
    assert answers(players) == live
    whole = live["top 1000"]
    assert [row["position"] for row in whole] == list(range(1, 61))
    points = [row["points"] for row in whole]
    assert points == sorted(points, reverse=order == "high")
    shared = len({row["rank"] for row in whole}) < 60
    assert shared is (ties != "member")
    assert all((row["reached_at"] is None) is (ties != "first_to_reach") for row in whole)
    assert list(whole[0]) == ["position", "rank", "player_id", "points", "reached_at"]


def test_c10_binary_members_are_hex_in_and_out(world: World, tmp_path: Path) -> None:
    """C10, C38: ids that are no text are archived as binary, shown and asked for in hex; a wrong hex is refused."""
    world.configure(board("high", "shared", member='"binary"'))
    ids = [b"\xff", b"\xff\xfe", b"\x00", b"a", b"\r\n", bytes(range(256))]
    columns = {
        "match_id": ["m"] * len(ids),
        "player_id": ids,
        "points": [5] * len(ids),
        "played_at": ["2026-01-02T00:00:00Z"] * len(ids),
    }
    path = tmp_path / "binary.parquet"
    pq.write_table(pa.table(columns), path)
    finale("results", "import", str(path), "--board", "b").ok()
    hexes = [one.hex() for one in ids]
    live = answers(hexes)
    cleaned()
    assert answers(hexes) == live
    assert [row["player_id"] for row in live["default"]] == [one.hex() for one in sorted(ids, reverse=True)]
    finale("standings", "b", "one", "--player", "xyz").refused(4, "hex")
    (part,) = (world.store / "standings").rglob("*.parquet")
    assert pq.read_schema(part).field("player_id").type == pa.binary()


def test_a_member_that_is_not_text_holds_a_text_board(world: World) -> None:
    """C10: a foreign member on a text board is named in the hold, and shown readably meanwhile."""
    world.configure(board("high", "shared", ledger='"none"'))
    world.redis.zadd("leaderboard:b:one", {b"fine": 2, b"\xff!": 1})
    finale("close", "b", "one").refused(22, r"\xff!")
    shown = finale("standings", "b", "one", "--json").ok().json
    assert shown[1]["player_id"] == r"\xff!"
    assert shown[1]["player_id_hex"] == "ff21"


def test_a_key_that_is_gone_after_the_seal_is_answered_from_the_archive(world: World) -> None:
    """I8: killed between the UNLINK and its record, a season still answers: the archive does, not an empty board."""
    world.configure(board("high", "shared"))
    world.played("b", *rows())
    live = answers(["p1"])
    finale("close", "b", "one").ok()
    world.redis.delete("leaderboard:b:one")
    assert world.state("b", "one") == "delivered"
    assert answers(["p1"]) == live
    finale("standings", "b", "one", "--player", "nobody").refused(5, "'nobody'")


def test_questions_that_contradict_themselves_are_refused(world: World) -> None:
    """--top with --player, and --around without, are exit 4; K out of range is a usage error."""
    world.configure(board("high", "shared"))
    world.played("b", *rows())
    finale("standings", "b", "one", "--top", "3", "--player", "p1").refused(4, "give one of them")
    finale("standings", "b", "one", "--around", "3").refused(4, "add --player P")
    assert finale("standings", "b", "one", "--top", "0").code == 2


def test_the_file_of_results_may_have_no_rows(world: World) -> None:
    """A header alone is a file without results: nothing is taken, and that is no error."""
    world.configure(board("high", "shared"))
    path = world.folder / "empty.csv"
    path.write_text(HEADER + "\n")
    assert finale("results", "import", str(path), "--board", "b", "--json").ok().json["new"] == 0
