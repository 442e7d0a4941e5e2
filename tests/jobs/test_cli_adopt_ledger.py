"""Adopting a key with a ledger: compared with it like any other season, and held where the two differ."""

from __future__ import annotations

import pytest

from tests.jobs.test_cli_adopt import CONFIG, KEY, ROWS, TABLE, seal_of
from tests.support.cli import World, finale


@pytest.fixture
def cup(world: World) -> World:
    """A board with a ledger, and a key of some cron script's."""
    world.configure(CONFIG, cup=TABLE)
    world.redis.zadd(KEY, ROWS)
    return world


def with_results(world: World) -> None:
    """Let the ledger have results of January 2025 that the board of another name has counted already."""
    world.configure(CONFIG.replace("[board.counted]", "[board.other]"), cup=TABLE)
    world.played(
        "other", "m1,ann,5,2025-01-02T00:00:00Z", "m2,ann,2,2025-01-03T00:00:00Z", "m2,bob,1,2025-01-03T00:00:00Z"
    )
    world.configure(CONFIG, cup=TABLE)


COUNTED = ("archive", "adopt", KEY, "--board", "counted", "--season", "s2025m01")


def test_i4_an_adopted_key_is_compared_with_the_ledger_that_has_its_results(cup: World) -> None:
    """I4: every player is compared, the seal says so, and no total is ever written to the key."""
    with_results(cup)
    cup.redis.delete(KEY)
    cup.redis.zadd(KEY, {"ann": 7, "bob": 1})
    before = cup.redis.dump(KEY)
    finale(*COUNTED).ok()
    seal, _ = seal_of(cup, "counted")
    assert seal.reconcile is not None
    assert (seal.reconcile["ledger"], seal.reconcile["equal"], seal.reconcile["drift"]) == ("own", 2, 0)
    assert cup.redis.dump(KEY) == before
    assert cup.sql("select count(*) from finale.pending p join finale.season s using (season_id) where adopted") == [
        (0,)
    ]


def test_i4_drift_holds_an_adopted_season_until_the_key_is_right_or_no_ledger_counts(cup: World) -> None:
    """I4: drift is named and holds (exit 22); results apply is refused; then the key is corrected and read again."""
    with_results(cup)
    before = cup.redis.dump(KEY)
    finale(*COUNTED).refused(
        22, "differ in 2 players", "eve", "bob", "--no-ledger", "finale season release counted s2025m01"
    )
    finale("results", "apply", "counted", "s2025m01", "--all").refused(23, "adopted", "writes nothing")
    finale("tick")
    assert cup.redis.dump(KEY) == before
    cup.redis.zadd(KEY, {"bob": 1})
    cup.redis.zrem(KEY, "eve")
    finale("season", "release", "counted", "s2025m01", "--again", "--as", "ana").ok()
    finale("close", "counted", "s2025m01", "--until", "seal").ok()
    assert seal_of(cup, "counted")[0].reconcile["drift"] == 0  # type: ignore[index]  # a seal of own ledgers has it


def test_i4_no_ledger_is_declared_by_name_ends_the_hold_and_stands_in_the_seal(cup: World) -> None:
    """I4: without results of that season all players drift; --no-ledger, in somebody's name, begins it anew."""
    finale(*COUNTED).refused(22, "differ in 3 players", "only in Redis")
    finale(*COUNTED, "--no-ledger").refused(4, "--as NAME")
    finale(*COUNTED, "--no-ledger", "--as", "ana").ok()
    seal, facts = seal_of(cup, "counted")
    assert (seal.reconcile, seal.board["ledger"], facts.rows) == ({"ledger": "none"}, "none", 3)
    events = [(event, who) for event, who, _ in cup.journal("counted", "s2025m01") if event.startswith("adopted")]
    assert [event for event, _ in events] == ["adopted", "adopted again"]
    assert events[1][1] == "ana"


def test_results_that_come_after_the_adoption_are_late(cup: World) -> None:
    """I6: the season is frozen from the first, so a later import keeps its results, named late, and counts none."""
    with_results(cup)
    cup.redis.delete(KEY)
    cup.redis.zadd(KEY, {"ann": 7, "bob": 1})
    finale(*COUNTED).ok()
    path = str(cup.results("m3,ann,100,2025-01-04T00:00:00Z"))
    done = finale("results", "import", path, "--board", "counted", "--json").ok().json
    assert done["late"] == 1
    assert cup.redis.zscore(KEY, "ann") == 7
