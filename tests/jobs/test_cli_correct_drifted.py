"""finale rewards correct --voided where what was sealed of some players is not what the ledger had of them."""

from __future__ import annotations

import pytest

from tests.jobs.test_cli_correct import BOARD, CORRECT, TABLE, net, of_archive, paid
from tests.support.cli import World, finale

KEY = "leaderboard:cup:s1"
SHARED = BOARD + 'ties = "shared"\n'
SEALED = ("v5", "v4", "v3", "v2", "v1")


def _play(world: World, reconcile: str, table: str = TABLE) -> None:
    """Each of v1 to v6 has two matches, one of his number of points and one of one point."""
    world.configure(f"{SHARED}reconcile = {reconcile}\n", cup=table)
    rows = [f"v{kind}{n},v{n},{points}" for n in range(1, 7) for kind, points in (("m", n), ("n", 1))]
    world.played("cup", *(f"{row},2026-01-05T10:00:00Z" for row in rows))


def _void(*matches: str) -> None:
    for match in matches:
        finale("results", "void", match, "--source", "cup", "--because", "cheated", "--as", "ana").ok()


@pytest.fixture
def accepted(world: World) -> World:
    """The season was sealed and paid as Redis had it: without v6, and with 100 points of v5, where the ledger has 6."""
    _play(world, "{ repair = 0 }")
    world.redis.zrem(KEY, "v6")
    world.redis.zadd(KEY, {"v5": 100})
    finale("close", "cup", "s1", "--as", "ops").refused(22)
    (report,) = (world.store / "reports/cup/s1").glob("*.json")
    words = ("--accept-drift", report.name, "--because", "v6 cheats, v5 was paid by hand", "--as", "op")
    finale("season", "release", "cup", "s1", *words).ok()
    finale("close", "cup", "s1", "--as", "ops").ok()
    assert net(world) == paid(SEALED)
    return world


def test_i4_a_voided_match_does_not_undo_an_accepted_difference(accepted: World) -> None:
    """I4: whom a person accepted as off the board, or with other points, stays so; the command names them."""
    _void("vn6", "vn5")
    previewed = finale(*CORRECT, "--voided", "--preview").ok()
    assert "nothing differs" in previewed.out
    assert "2 players" in previewed.err and "v5, v6" in previewed.err and "--exclude" in previewed.err
    told = finale(*CORRECT, "--voided", "--json").ok().json
    assert (told["issued"], told["rows"], told["left_as_sealed"]) == (False, 0, ["v5", "v6"])
    assert net(accepted) == of_archive(accepted) == paid(SEALED)
    finale(*CORRECT, "--voided", "--exclude", "v5").ok()
    assert net(accepted) == of_archive(accepted) == paid(SEALED[1:])
    finale("audit", accepted.store.as_uri(), "cup", "s1").ok()


def test_i4_others_are_put_right_beside_an_accepted_difference(accepted: World) -> None:
    """I4: v4 falls to one point by his voided match; those of the accepted difference stand; the audit agrees."""
    _void("vn6", "vn5", "vm4")
    told = finale(*CORRECT, "--voided", "--preview", "--json").ok().json
    done = finale(*CORRECT, "--voided", "--json").ok().json
    assert done["left_as_sealed"] == ["v5", "v6"]
    assert {name: done[name] for name in told} == {**told, "issued": True}
    assert net(accepted) == of_archive(accepted) == paid(("v5", "v3", "v2", "v1", "v4"))
    finale("audit", accepted.store.as_uri(), "cup", "s1").ok()
    assert "nothing differs" in finale(*CORRECT, "--voided").ok().out


def test_matches_of_an_accepted_difference_stay_counted(accepted: World) -> None:
    """A later table that asks for two matches finds v5 with both: nothing of his was taken back."""
    _void("vn5", "vm4")
    finale(*CORRECT, "--voided").ok()
    (accepted.folder / "twice.toml").write_text(
        TABLE.replace("version = 1", "version = 1\neligible = { min_matches = 2 }")
    )
    finale(*CORRECT, "--voided", "--table", str(accepted.folder / "twice.toml")).ok()
    assert net(accepted) == of_archive(accepted) == paid(("v5", "v3", "v2", "v1"))
    finale("audit", accepted.store.as_uri(), "cup", "s1").ok()


def test_a_tolerated_difference_is_none(world: World) -> None:
    """Nobody accepted it: a player within the board's tolerance is put right as any other, and nobody is named."""
    _play(world, "{ tolerance = 1 }")
    world.redis.zincrby(KEY, 1, "v6")
    finale("close", "cup", "s1", "--as", "ops").ok()
    assert net(world) == paid(("v6", *SEALED))
    _void("vm6")
    done = finale(*CORRECT, "--voided", "--json").ok().json
    assert (done["issued"], done["left_as_sealed"]) == (True, [])
    assert net(world) == of_archive(world) == paid((*SEALED, "v6"))
    finale("audit", world.store.as_uri(), "cup", "s1").ok()
