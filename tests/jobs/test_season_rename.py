"""Boards with freeze = "rename": whole seasons of keys whose writers nobody controls, and of one key for ever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from archive.seal import Seal, StandingFacts
from leaderboard.errors import UnavailableError
from ledger import seasons
from tests.support.cli import World, finale

BOARD = """
[board.cup]
key = "{key}"
ledger = "{ledger}"
freeze = "rename"
ties = "shared"
keep_live = "0s"
ahead = 0
{more}
[board.cup.calendar]
seasons = [
  {{ id = "one", starts_at = {one:%Y-%m-%dT%H:%M:%SZ}, ends_at = {two:%Y-%m-%dT%H:%M:%SZ} }},
  {{ id = "two", starts_at = {two:%Y-%m-%dT%H:%M:%SZ}, ends_at = {end:%Y-%m-%dT%H:%M:%SZ} }},
]
"""
YEAR = timedelta(days=365)
ALONE = {"replicas": 0, "acknowledged": 0}  #: what a server that nobody follows says of a rename
FROZEN = "{lb}:finale:frozen:one"


def configure(world: World, *, key: str = "lb", ledger: str = "none", more: str = "", ended: timedelta) -> datetime:
    """Write a board of two seasons, the first of which ended that long ago; return when."""
    two = datetime.now(UTC).replace(microsecond=0) - ended
    world.configure(BOARD.format(key=key, ledger=ledger, more=more, one=two - YEAR, two=two, end=two + YEAR))
    return two


def sealed(world: World, season: str = "one") -> StandingFacts:
    facts = Seal.parse((world.store / f"seals/cup/{season}/standings.json").read_bytes()).facts
    assert isinstance(facts, StandingFacts)
    return facts


def players(season: str) -> list[str]:
    return [row["player_id"] for row in finale("standings", "cup", season, "--json").ok().json]


def test_c13_one_key_for_ever_is_frozen_at_the_cutoff_and_the_next_season_starts_afresh(world: World) -> None:
    """C13, I1: the season is sealed and cleaned under its private name; the next one's rows under the old name stay."""
    configure(world, ended=timedelta(0))
    world.redis.zadd("lb", {"ann": 3, "bob": 2})
    assert finale("season", "list", "--json").ok().json == []
    run = finale("close", "cup", "one", "--until", "freeze", "--json").ok().json
    assert run["steps"][-1]["result"]["rename"] == {"outcome": "renamed", "rows": 2, "later": 0, **ALONE}
    assert not world.redis.exists("lb")
    world.redis.zadd("lb", {"cyd": 9})
    assert players("one") == ["ann", "bob"]
    finale("tick").ok()
    assert players("two") == ["cyd"]
    finale("close", "cup", "one").ok()
    assert (world.state("cup", "one"), sealed(world).keys[0].key) == ("cleaned", FROZEN)
    assert not [key for key in world.redis.scan_iter() if b":one" in key]
    assert (players("one"), players("two")) == (["ann", "bob"], ["cyd"])
    assert finale("season", "strays").ok().out.count("lb") == 0
    finale("tick").ok()


def test_a_key_that_all_seasons_share_warns_when_it_was_frozen_late(world: World) -> None:
    """What was written between the cutoff and a late freeze counts in the old season, and a person is told how late."""
    configure(world, ended=timedelta(hours=3))
    world.redis.zadd("lb", {"ann": 3})
    assert "after the cutoff" in finale("close", "cup", "one", "--until", "freeze").ok().err
    assert "after the cutoff" in finale("season", "show", "cup", "one").ok().out


def test_two_seasons_in_one_key_are_held_until_a_person_accepts_it(world: World) -> None:
    """I4: a freeze that comes after the next season's end would count both in one; nobody is paid for that unasked."""
    configure(world, ended=2 * YEAR)
    world.redis.zadd("lb", {"ann": 3})
    finale("close", "cup", "one").refused(22, "cup/two has ended before cup/one was frozen")
    finale("close", "cup", "two").refused(22, "cup/one", "is not frozen yet", "finale close cup one")
    assert world.redis.zcard("lb") == 1
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one", "--until", "freeze").ok()
    assert world.redis.zcard(FROZEN) == 1


@pytest.mark.parametrize("ledger", ["none", "own"])
def test_late_writes_to_the_old_name_are_told_and_never_removed(world: World, ledger: str) -> None:
    """I3: under the old name of a frozen season anything is late: told at the seal, the clean and by strays."""
    configure(world, key="lb:<season>", ledger=ledger, ended=timedelta(days=1))
    if ledger == "own":
        played = datetime.now(UTC) - timedelta(days=30)
        world.played("cup", f"m1,ann,3,{played.isoformat()}")
    else:
        world.redis.zadd("lb:one", {"ann": 3})
    finale("close", "cup", "one", "--until", "freeze").ok()
    world.redis.zadd("lb:one", {"late": 99})
    assert "late writes" in finale("close", "cup", "one", "--until", "seal").ok().err
    assert [row["player_id"] for row in finale("standings", "cup", "one", "--json").ok().json] == ["ann"]
    assert finale("close", "cup", "one").ok().err.count("late writes") == 1
    assert world.state("cup", "one") == "cleaned"
    assert world.redis.keys() == [b"lb:one"]
    assert "late writes" in finale("season", "show", "cup", "one").ok().out
    (stray,) = finale("season", "strays", "--json").ok().json
    assert (stray["kind"], stray["key"]) == ("late", "lb:one")


def test_i8_a_freeze_whose_record_was_lost_goes_on_with_the_renamed_key(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I8: killed between the rename and its record, the next run finds the private name; what came later stays out."""
    configure(world, ended=timedelta(0))
    world.redis.zadd("lb", {"ann": 3})
    finale("close", "cup", "one", "--until", "close").ok()
    with monkeypatch.context() as patch:
        patch.setattr(seasons, "advance", _no_answer)
        finale("close", "cup", "one", "--until", "freeze").refused(10, "no answer")
    assert world.redis.exists(FROZEN)
    world.redis.zadd("lb", {"cyd": 9})
    run = finale("close", "cup", "one", "--until", "snapshot", "--json").ok().json
    assert run["steps"][0]["result"]["rename"] == {"outcome": "done", "rows": 1, "later": 1, **ALONE}
    assert players("one") == ["ann"]


def _no_answer(*_: object, **__: object) -> None:
    raise UnavailableError("no answer")


def test_i6_totals_written_again_after_the_freeze_go_to_the_private_name(world: World) -> None:
    """I6: with Finale's own ledger, lost rows of a frozen season come back where the season is, not to the old name."""
    configure(world, key="lb:<season>", ledger="own", ended=timedelta(days=1))
    played = datetime.now(UTC) - timedelta(days=30)
    world.played("cup", f"m1,ann,3,{played.isoformat()}", f"m2,bob,2,{played.isoformat()}")
    finale("close", "cup", "one", "--until", "freeze").ok()
    world.redis.zrem("{lb:one}:finale:frozen:one", "ann")
    finale("results", "apply", "cup", "one", "--all").ok()
    assert not world.redis.exists("lb:one")
    finale("close", "cup", "one").ok()
    assert sealed(world).rows == 2
    assert world.redis.keys() == []


def test_a_rename_that_a_failover_undid_is_told_with_what_mends_it(world: World) -> None:
    """C24: the old name is back and the private one is gone: held, with the command, rather than an empty archive."""
    configure(world, key="lb:<season>", ended=timedelta(days=1))
    world.redis.zadd("lb:one", {"ann": 3})
    finale("close", "cup", "one", "--until", "freeze").ok()
    private = "{lb:one}:finale:frozen:one"
    world.redis.rename(private, "lb:one")
    finale("close", "cup", "one").refused(22, f"RENAMENX lb:one {private}")
    world.redis.renamenx("lb:one", private)
    finale("season", "release", "cup", "one", "--as", "ana").ok()
    finale("close", "cup", "one").ok()
    assert sealed(world).rows == 1


@pytest.mark.parametrize(
    ("more", "ledger", "words"),
    [
        ('grace = "15m"', "none", "grace must be 0s"),
        ("", "own", 'ledger = "none"'),
    ],
)
def test_one_key_for_ever_needs_no_ledger_and_no_grace(world: World, more: str, ledger: str, words: str) -> None:
    """Two seasons' totals would meet in the key, and results of the grace in the next season's."""
    configure(world, ledger=ledger, more=more, ended=timedelta(0))
    finale("config", "check").refused(3, words)


@pytest.mark.parametrize("kind", ["zset", "string"])
def test_late_writes_to_a_key_for_ever_are_told_until_the_next_season_begins(world: World, kind: str) -> None:
    """I3: frozen early, nothing under the shared name is any season's before the next start."""
    configure(world, ended=timedelta(days=-1))
    world.redis.zadd("lb", {"ann": 3})
    finale("close", "cup", "one", "--now", "--until", "freeze", "--as", "ana").ok()
    if kind == "zset":
        world.redis.zadd("lb", {"late": 99})
    else:
        world.redis.set("lb", "late")
    assert "late writes" in finale("close", "cup", "one", "--until", "seal").ok().err
    (stray,) = finale("season", "strays", "--json").ok().json
    assert (stray["kind"], stray["key"]) == ("late", "lb")
    assert "late writes" in finale("close", "cup", "one").ok().err
    assert world.redis.exists("lb")
