"""What stops a season: a board that changed, an archive that was touched, drift. Nobody is paid, nothing is removed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import redis

from archive import instant
from archive.drain import pages
from tests.support.cli import World, differing, finale

KEY = "leaderboard:cup:one"
CONFIG = """
[runner]
page_rows = 10
[board.cup]
ties = "shared"
rewards = "cup.toml"
calendar = { seasons = [{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }] }
"""
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
PLAYERS = 35


@pytest.fixture
def cup(world: World) -> World:
    """A played season that is due; its key is read in four pages."""
    world.configure(CONFIG, cup=TABLE)
    world.played("cup", *(f"m1,p{number:02d},{number},2026-01-02T00:00:00Z" for number in range(PLAYERS)))
    return world


@pytest.fixture
def delivered(cup: World) -> World:
    """The same, sealed and paid; its key is still there."""
    finale("close", "cup", "one").ok()
    return cup


def archived(world: World) -> dict[str, int]:
    (part,) = (world.store / "standings").rglob("*.parquet")
    rows = pq.read_table(part, columns=["player_id", "points"], partitioning=None).to_pylist()
    return {row["player_id"]: row["points"] for row in rows}


def interrupted(monkeypatch: pytest.MonkeyPatch, times: int, write: Callable[[], Any]) -> None:
    """Let ``write`` happen after the second page of each of the first snapshots, and no pause before the next."""
    left = [times]

    def read(*given: Any, **named: Any) -> Any:
        for number, page in enumerate(pages(*given, **named)):
            yield page
            if number == 1 and left[0]:
                left[0] -= 1
                write()

    monkeypatch.setattr(instant, "pages", read)
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)


def test_i3_a_write_during_the_paging_starts_the_snapshot_over(cup: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """I3: a foreign writer changes a row of a page already read; the seal holds the new state whole, and says so."""
    cup.configure(CONFIG + 'ledger = "none"\n', cup=TABLE)
    cup.sql('update finale.season set definition = definition || \'{"ledger": "none"}\'')
    interrupted(monkeypatch, 2, lambda: cup.redis.zincrby(KEY, 1_000, "p34"))
    steps = finale("close", "cup", "one", "--json").ok().json["steps"]
    (taken,) = [step for step in steps if step["step"] == "snapshot"]
    assert taken["result"]["restarts"] == 2
    assert "started over 2 times" in taken["figures"]
    assert archived(cup)["p34"] == 2_034
    assert len(archived(cup)) == PLAYERS
    assert cup.files("staging") == []


def test_a_board_that_is_never_left_in_peace_is_held(cup: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """I3: written to during every try, the season is held and says so; nothing is staged, sealed or paid."""
    interrupted(monkeypatch, 1_000, lambda: cup.redis.zincrby(KEY, 1, "p34"))
    finale("close", "cup", "one").refused(22, "written to in each of 5 tries", "release")
    assert cup.files() == []
    assert cup.state("cup", "one") == "frozen"


def test_i1_a_write_after_the_seal_holds_the_clean(delivered: World) -> None:
    """I1: clean removes nothing, names each player that differs, and goes on once the key is as it was sealed."""
    sealed = delivered.redis.dump(KEY)
    delivered.redis.zadd(KEY, {"p03": 99, "intruder": 1})
    delivered.redis.zrem(KEY, "p04")
    changed = delivered.redis.dump(KEY)
    finale("clean", "cup", "one", "--now", "--as", "ana").refused(
        22,
        "differs from its sealed archive",
        "1 only live, 1 only archived, 1 different",
        "p03",
        "p04",
        "intruder",
        "release",
    )
    assert delivered.redis.dump(KEY) == changed
    shown = finale("season", "show", "cup", "one", "--json").ok().json
    assert "differs" in shown["hold"]["reason"]
    assert "'p03' live 99.0, archived 3.0" in shown["hold"]["detail"]
    assert "intruder" in finale("season", "show", "cup", "one").ok().out
    finale("clean", "cup", "one", "--now", "--as", "ana").refused(22, "on hold", "season release cup one")
    assert sealed is not None
    delivered.redis.restore(KEY, 0, sealed, replace=True)
    finale("season", "release", "cup", "one", "--because", "put back", "--as", "ana").ok()
    finale("clean", "cup", "one").ok()
    assert delivered.redis.keys() == []


def test_i1_a_replaced_key_of_another_type_is_not_removed(delivered: World) -> None:
    """I1: a key that is no sorted set any more is refused by its type, and stays."""
    delivered.redis.delete(KEY)
    delivered.redis.set(KEY, "precious")
    finale("clean", "cup", "one", "--now", "--as", "ana").refused(22, KEY, "string")
    assert delivered.redis.get(KEY) == b"precious"
    assert delivered.state("cup", "one") == "delivered"


def missing(path: Path) -> None:
    path.unlink()


def changed(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


DAMAGE = [missing, changed, truncated]
PARTS = [f"{kind}/board=cup/season=one/part-00000.parquet" for kind in ("standings", "grants")]
SEALS = [f"seals/cup/one/{kind}.json" for kind in ("standings", "grants")]


@pytest.mark.parametrize(
    ("damage", "where"),
    [
        pytest.param(damage, where, marks=() if (number + at) % len(DAMAGE) == 0 else pytest.mark.slow)
        for number, damage in enumerate(DAMAGE)
        for at, where in enumerate(PARTS + SEALS)
    ],
)
def test_c27_i1_a_damaged_archive_holds_the_clean(delivered: World, damage: Callable[[Path], None], where: str) -> None:
    """C27, I1: a part or seal that is missing, changed or cut short is named; the key stays until it is restored."""
    path = delivered.store / where
    whole, key = path.read_bytes(), delivered.redis.dump(KEY)
    damage(path)
    if where in PARTS:
        finale("archive", "verify", "cup", "one").refused(30, where)
    finale("clean", "cup", "one", "--now", "--as", "ana").refused(30, where)
    assert delivered.redis.dump(KEY) == key
    assert finale("season", "show", "cup", "one", "--json").ok().json["hold"] is not None
    path.write_bytes(whole)
    finale("archive", "verify", "cup", "one").ok()
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("clean", "cup", "one").ok()
    assert delivered.redis.keys() == []


def test_c29_a_file_that_was_not_sealed_is_found(delivered: World) -> None:
    """C29: a part left over beside the sealed ones, which a glob would read twice, is named and holds the clean."""
    folder = delivered.store / "standings/board=cup/season=one"
    (folder / "part-00001.parquet").write_bytes((folder / "part-00000.parquet").read_bytes())
    finale("archive", "verify", "cup", "one").refused(30, "part-00001.parquet")
    finale("clean", "cup", "one", "--now", "--as", "ana").refused(30, "part-00001.parquet")
    assert delivered.redis.exists(KEY)


def test_archive_verify_tells_what_it_read(delivered: World) -> None:
    """verify lists standings and grants with rows, parts and bytes, in JSON and plain, before and after the clean."""
    before = delivered.picture()
    first = finale("archive", "verify", "cup", "one", "--json").ok().json
    assert [(one["kind"], one["rows"], one["parts"]) for one in first] == [("standings", 35, 1), ("grants", 35, 1)]
    assert "everything is as it was sealed" in finale("archive", "verify", "cup", "one").ok().out
    assert differing(before, delivered.picture()) == []
    finale("clean", "cup", "one", "--now", "--as", "ana").ok()
    assert finale("archive", "verify", "cup", "one").ok()


def spoil(client: redis.Redis) -> None:
    """Take one player away and change another."""
    client.zrem(KEY, "p10")
    client.zincrby(KEY, 500, "p20")


def test_c03_c19_i4_drift_holds_and_nobody_is_paid_until_it_is_mended(cup: World) -> None:
    """C03, C19, I4: a ZINCRBY and a lost player: the season is held, with a report; no grant exists. Written anew it
    closes.
    """
    finale("close", "cup", "one", "--until", "freeze").ok()
    spoil(cup.redis)
    finale("close", "cup", "one").refused(22, "differ in 2 players", "nobody is paid", "p10", "p20", "season release")
    assert cup.sql("select count(*) from finale.grants") == [(0,)]
    assert cup.sql("select count(*) from finale.seal") == [(0,)]
    assert [path.split("/")[0] for path in cup.files() if not path.startswith("staging")] == ["reports"] * 2
    finale("tick").ok()
    assert cup.sql("select count(*) from finale.grants") == [(0,)]
    finale("results", "apply", "cup", "one", "--all").ok()
    finale("season", "release", "cup", "one", "--because", "Redis was written anew", "--as", "ana").ok()
    finale("close", "cup", "one").ok()
    assert cup.sql("select count(*) from finale.payable") == [(PLAYERS,)]
    assert archived(cup) == {f"p{number:02d}": number for number in range(PLAYERS)}
    finale("results", "apply", "cup", "one", "--all").refused(23, "as it was sealed")


def test_c24_a_missing_board_with_expected_players_is_an_alarm(cup: World) -> None:
    """C24: the key is gone though the ledger has 35 players: no empty archive, but a hold that says how to write it."""
    finale("close", "cup", "one", "--until", "freeze").ok()
    cup.redis.delete(KEY)
    finale("close", "cup", "one").refused(22, "missing", "35 players", "finale results apply cup one --all")
    assert cup.files() == []
    finale("results", "apply", "cup", "one", "--all").ok()
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one").ok()
    assert len(archived(cup)) == PLAYERS


def test_a_live_key_that_is_not_a_sorted_set_is_named(cup: World) -> None:
    """The key is a string: the error names key and type, nothing is sealed, and the string is left alone."""
    finale("close", "cup", "one", "--until", "freeze").ok()
    cup.redis.delete(KEY)
    cup.redis.set(KEY, "precious")
    finale("close", "cup", "one").refused(4, KEY, "is a string, not a zset")
    assert cup.files() == []
    assert cup.redis.get(KEY) == b"precious"
    assert cup.state("cup", "one") == "frozen"


@pytest.mark.parametrize("until", ["seal", "reward"])
def test_i10_a_seal_that_has_gone_stops_the_close(cup: World, until: str) -> None:
    """I10: nobody is paid from standings whose seal the store has lost since; put back, the close goes on."""
    finale("close", "cup", "one", "--until", until).ok()
    seal = cup.store / SEALS[0]
    body = seal.read_bytes()
    seal.unlink()
    finale("close", "cup", "one").refused(30, SEALS[0], "finale season release cup one")
    assert cup.state("cup", "one") == {"seal": "sealed", "reward": "rewarded"}[until]
    seal.write_bytes(body)
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one").ok()
    assert cup.state("cup", "one") == "delivered"
