"""Sharded boards of Finale's own ledger: results to totals, to shards, to one standing, and away again."""

from __future__ import annotations

import pytest

from archive.seal import Seal, StandingFacts
from tests.support.cli import World, finale

BOARDS = """
[board.{name}]
source = "matches"
ties = {{ by = "first_to_reach", unit = "minute" }}
order = "{order}"
keep_live = "0s"
ahead = 0
{shards}
[board.{name}.calendar]
seasons = [{{ id = "one", starts_at = 2026-01-01T00:00:00Z, ends_at = 2026-02-01T00:00:00Z }}]
"""
LAYOUTS = {
    "bands": 'shards = { by = "score", cuts = [10, 20] }',
    "players": 'shards = { by = "player", count = 4 }',
}
#: Players with few points, then the same with many: they cross the cuts upwards, and at last some are equal.
FIRST = [f"a{n},p{n:03d},{n % 12},2026-01-02T00:{n % 60:02d}:00Z" for n in range(120)]
SECOND = [f"b{n},p{n:03d},{7 * (n % 4)},2026-01-03T00:{n % 60:02d}:00Z" for n in range(0, 120, 2)]


def facts(world: World, board: str) -> StandingFacts:
    found = Seal.parse((world.store / f"seals/{board}/one/standings.json").read_bytes()).facts
    assert isinstance(found, StandingFacts)
    return found


@pytest.mark.parametrize("order", ["high", "low"])
def test_i3_i4_i6_players_who_cross_bands_end_as_on_a_single_key(world: World, order: str) -> None:
    """I3, I4, I6: the same source, counted by one key, by bands and by players: the same digest, sums and parts."""
    shards = {"whole": "", **LAYOUTS}
    world.configure("".join(BOARDS.format(name=name, order=order, shards=text) for name, text in shards.items()))
    world.played("whole", *FIRST)
    world.played("whole", *SECOND)
    counts = [world.redis.zcard(f"leaderboard:bands:one:{band}") for band in range(3)]
    assert all(counts)
    assert sum(counts) == 120
    for name in shards:
        finale("close", name, "one", "--until", "seal").ok()
    whole = facts(world, "whole")
    for name in LAYOUTS:
        found = facts(world, name)
        assert (found.digest, found.points_sum, found.parts) == (whole.digest, whole.points_sum, whole.parts)
        assert sum(key.rows for key in found.keys) == 120
    for name in shards:
        finale("close", name, "one").ok()
        assert world.state(name, "one") == "cleaned"
    assert world.redis.keys() == []


def test_i4_a_shard_that_was_lost_is_written_again_or_held(world: World) -> None:
    """I4: a shard lost with what was applied is written anew by the freeze; one lost alone afterwards is drift."""
    world.configure(BOARDS.format(name="bands", order="high", shards=LAYOUTS["bands"]))
    world.played("bands", *FIRST, *SECOND)
    lost = "leaderboard:bands:one:1"
    world.redis.delete(lost, f"{{{lost}}}:finale:applied")
    finale("close", "bands", "one", "--until", "freeze").ok()
    assert world.redis.exists(lost)
    world.redis.delete(lost)
    finale("close", "bands", "one").refused(22, "Redis and the ledger differ", "only in the ledger")
    finale("results", "apply", "bands", "one", "--all").ok()
    finale("season", "release", "bands", "one", "--again", "--as", "ana").ok()
    finale("close", "bands", "one").ok()
    assert facts(world, "bands").rows == 120
