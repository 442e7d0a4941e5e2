"""Boards of other kinds, whole seasons of them: expiring keys, no ledger, nobody played, a record that was lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from archive.seal import Seal, StandingFacts
from tests.support.cli import World, differing, finale

SEASONS = """calendar = { seasons = [
  { id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z },
  { id = "two", starts_at = 2026-02-01T00:00:00Z, ends_at = 2026-03-01T00:00:00Z },
] }
"""
TABLE = 'version = 1\n[[rule]]\nname = "all"\nall = true\ngrant = { gems = 10 }\n'
KEY = "leaderboard:cup:one"


def configure(world: World, *keys: str) -> None:
    lines = ("[board.cup]", 'ties = "shared"', 'rewards = "cup.toml"', SEASONS, *keys, "")
    world.configure("\n".join(lines), cup=TABLE)


def seal_of(world: World, season: str = "one") -> tuple[Seal, StandingFacts]:
    seal = Seal.parse((world.store / f"seals/cup/{season}/standings.json").read_bytes())
    assert isinstance(seal.facts, StandingFacts)
    return seal, seal.facts


def test_cleanup_expire_leaves_the_key_to_a_private_name(world: World) -> None:
    """I1: with cleanup = "expire" the proved key is renamed to a private name that expires; nothing else is left."""
    configure(world, 'cleanup = "expire"')
    world.played("cup", "m1,ann,5,2026-01-02T00:00:00Z")
    finale("close", "cup", "one").ok()
    finale("clean", "cup", "one", "--now", "--as", "ana").ok()
    assert world.redis.keys() == [b"{leaderboard:cup:one}:finale:expiring"]
    left = world.redis.ttl("{leaderboard:cup:one}:finale:expiring")
    assert 0 < left <= timedelta(days=1).total_seconds()
    assert finale("standings", "cup", "one", "--json").ok().json[0]["player_id"] == "ann"


def test_c13_a_private_name_that_is_taken_is_not_overwritten(world: World) -> None:
    """C13: what already lies under the private name stays; the clean is held and goes on once the name is free."""
    configure(world, 'cleanup = "expire"')
    world.played("cup", "m1,ann,5,2026-01-02T00:00:00Z")
    finale("close", "cup", "one").ok()
    name = "{leaderboard:cup:one}:finale:expiring"
    world.redis.set(name, "precious")
    finale("clean", "cup", "one", "--now", "--as", "ana").refused(22, "is taken", name)
    assert world.redis.get(name) == b"precious"
    assert world.redis.exists(KEY)
    world.redis.delete(name)
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("clean", "cup", "one").ok()
    assert not world.redis.exists(KEY)


@pytest.mark.parametrize("cleanup", ["unlink", "expire"])
def test_c13_c21_a_clean_whose_record_was_lost_is_cleaned_again_harmlessly(world: World, cleanup: str) -> None:
    """C13, C21: the key is gone, its record was lost: the next clean finds that and ends as the first did."""
    configure(world, f'cleanup = "{cleanup}"')
    world.played("cup", "m1,ann,5,2026-01-02T00:00:00Z")
    finale("close", "cup", "one").ok()
    finale("clean", "cup", "one", "--now", "--as", "ana").ok()
    after = world.picture("season", "journal", "step_result", "lease")
    world.sql("update finale.season set state = 'delivered'")
    again = finale("clean", "cup", "one", "--json").ok().json
    assert again["state"] == "cleaned"
    assert again["steps"][0]["result"]["outcome"] == "absent"
    assert differing(after, world.picture("season", "journal", "step_result", "lease")) == []


FREES = {"DEL", "RENAME", "ZREMRANGEBYRANK", "ZREMRANGEBYSCORE", "FLUSHALL", "FLUSHDB", "ZUNIONSTORE", "RESTORE", "SET"}


@pytest.mark.parametrize("freeze", ["watch", "rename"])
@pytest.mark.parametrize("cleanup", ["unlink", "expire"])
def test_c23_no_command_frees_a_board_at_one_go(world: World, cleanup: str, freeze: str) -> None:
    """C23: a board is unlinked or renamed to a free name; nothing deletes or overwrites it, in scripts neither."""
    configure(world, f'cleanup = "{cleanup}"', f'freeze = "{freeze}"')
    world.played("cup", "m1,ann,5,2026-01-02T00:00:00Z")
    with world.redis.monitor() as monitor:
        finale("close", "cup", "one").ok()
        finale("clean", "cup", "one", "--now", "--as", "ana").ok()
        world.redis.echo("the end")
        heard = iter(lambda: str(monitor.next_command()["command"]), "ECHO the end")
        said = [command.split() for command in heard if command]
    assert {"UNLINK", "EXEC"} <= {words[0].upper() for words in said}
    freed = [words for words in said if words[0].upper() in FREES and not words[1].endswith(":finale:fence")]
    assert freed == []


@pytest.mark.parametrize("lazy", ["no", "yes"])
def test_c23_a_large_key_that_is_to_expire_is_told_where_that_blocks(
    world: World, monkeypatch: pytest.MonkeyPatch, lazy: str
) -> None:
    """C23: where the server frees an expired key at one go, the clean of a large one says so, with the remedy."""
    monkeypatch.setattr("jobs.steps.clean.MANY_ROWS", 2)
    configure(world, 'cleanup = "expire"')
    world.played("cup", "m1,ann,5,2026-01-02T00:00:00Z", "m1,bob,5,2026-01-02T00:00:00Z")
    finale("close", "cup", "one").ok()
    before = str(world.redis.config_get("lazyfree-lazy-expire")["lazyfree-lazy-expire"])
    world.redis.config_set("lazyfree-lazy-expire", lazy)
    try:
        answer = finale("clean", "cup", "one", "--now", "--as", "ana").ok()
    finally:
        world.redis.config_set("lazyfree-lazy-expire", before)
    assert ("lazyfree-lazy-expire yes" in answer.err) is (lazy == "no")


def test_a_key_filled_by_others_is_adopted_and_sealed_without_a_ledger(world: World) -> None:
    """I4: ledger = "none" takes on a past season by its name, pays it, and its seal says that there was no ledger."""
    configure(world, 'ledger = "none"', 'key = "lb:<season>"')
    world.redis.zadd("lb:one", {"ann": 7, "bob": 7, "eve": -2})
    world.redis.expire("lb:one", 10_000)
    planned = finale("close", "cup", "one", "--dry-run", "--json").ok().json
    assert (planned[0]["step"], planned[0]["verdict"]) == ("open", "act")
    assert finale("season", "list", "--json").ok().json == []
    finale("close", "cup", "one").ok()
    seal, facts = seal_of(world)
    assert seal.reconcile == {"ledger": "none"}
    assert (facts.rows, facts.points_sum, facts.keys[0].key) == (3, 12, "lb:one")
    ranks = {row["player_id"]: row["rank"] for row in finale("standings", "cup", "one", "--json").ok().json}
    assert ranks == {"bob": 1, "ann": 1, "eve": 3}
    assert world.sql("select count(*) from finale.payable") == [(3,)]
    finale("clean", "cup", "one", "--now", "--as", "ana").ok()
    assert world.redis.keys() == []
    finale("close", "cup", "three").refused(5, "'three'")
    finale("results", "import", str(world.results()), "--board", "cup").refused(5, "no board counts")
    finale("results", "apply", "cup", "one").refused(23, "no ledger")


def test_c39_without_a_ledger_a_missing_key_is_no_empty_season(world: World) -> None:
    """C39: where no ledger tells whether anyone played, a missing key holds the season instead of sealing nothing."""
    configure(world, 'ledger = "none"')
    finale("close", "cup", "one").refused(22, "does not exist", "season release cup one")
    assert world.files() == []
    world.redis.zadd(KEY, {"ann": 7})
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one").ok()
    assert seal_of(world)[1].rows == 1


def test_c39_without_a_ledger_a_person_says_that_nobody_played(world: World) -> None:
    """C39: `release --empty` archives a missing key without rows, in a name; refused where anything tells otherwise."""
    configure(world, 'ledger = "none"')
    asked = ("season", "release", "cup", "one", "--empty", "--as", "ana")
    finale("close", "cup", "one").refused(22, "does not exist", "--empty")
    finale(*asked).refused(4, "needs a reason")
    world.redis.zadd(KEY, {"ann": 7})
    finale(*asked, "--because", "x").refused(23, "is not empty", KEY)
    world.redis.delete(KEY)
    finale(*asked, "--because", "nobody came").ok()
    assert "archived as empty, as ana has said" in finale("close", "cup", "one").ok().err
    assert seal_of(world)[1].rows == 0
    (released,) = [detail for event, _, detail in world.journal("cup", "one") if event == "released"]
    assert (released["because"], released["empty"]) == ("nobody came", True)
    finale("season", "hold", "cup", "one", "--because", "x", "--as", "ana").ok()
    finale(*asked, "--because", "x").refused(23, "no ledger tells of", "without --empty")


def test_c39_a_season_in_which_nobody_played_is_one_part_without_rows(world: World) -> None:
    """C39: with a ledger of no players the missing key is right: an explicit zero-row part and a seal with rows = 0."""
    configure(world)
    world.seen("cup", datetime(2026, 1, 1, tzinfo=UTC))
    finale("close", "cup", "one").ok()
    _, facts = seal_of(world)
    assert (facts.rows, facts.points_sum, facts.first_score, len(facts.parts)) == (0, 0, None, 1)
    (part,) = (world.store / "standings").rglob("*.parquet")
    assert pq.read_metadata(part).num_rows == 0
    assert pq.read_schema(part).names == ["position", "rank", "player_id", "points", "reached_at", "score"]
    assert finale("standings", "cup", "one", "--json").ok().json == []
    finale("archive", "verify", "cup", "one").ok()
    finale("clean", "cup", "one", "--now", "--as", "ana").ok()
    assert finale("standings", "cup", "one", "--json").ok().json == []
    assert world.redis.keys() == []


def test_the_seals_of_a_board_are_a_chain(world: World) -> None:
    """I10: each seal has the next number of its board and the hash of the seal before, grants between them."""
    configure(world)
    world.played("cup", "m1,ann,5,2026-01-02T00:00:00Z", "m2,ann,5,2026-02-02T00:00:00Z")
    for season in ("one", "two"):
        finale("close", "cup", season).ok()
    chain = world.sql("select number, kind, season_id, previous, sha256 from finale.seal order by number")
    assert [(number, kind) for number, kind, *_ in chain] == [
        (1, "standings"),
        (2, "grants"),
        (3, "standings"),
        (4, "grants"),
    ]
    assert [row[3] for row in chain] == [None, *(row[4] for row in chain[:-1])]
    assert seal_of(world, "two")[0].chain.number == 3
