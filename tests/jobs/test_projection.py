"""Redis is a projection of the ledger: whatever is lost, late or doubled, it is what a recount says."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
import redis

from jobs.boards import projection, spreading
from jobs.boards.projection import Applied, apply_pending
from jobs.wiring import Outside
from leaderboard.codec import codec_for, to_microseconds
from leaderboard.errors import FinaleError
from leaderboard.keys import helper_key
from leaderboard.season import Season
from ledger import pending, seasons
from ledger.database import Database
from ledger.results import record
from live import apply
from live.counts import recount
from tests.ledger.support import by_hand, chunk, result, totals
from tests.support.cli import World
from tests.support.servers import ServerFactory
from tests.support.topologies import sentinel_pair

NOW = datetime.now(UTC).replace(microsecond=0)
LAYOUTS = {
    "one set": "",
    "by player": 'shards = { by = "player", count = 3 }\nbands = { width = 5 }',
    "by score": 'shards = { by = "score", cuts = [3, 30] }\nbands = [2, 5, 40]',
}
CONFIG = f"""
[board.b]
ahead = 0
LAYOUT
[board.b.calendar]
seasons = [{{ id = "one", starts_at = {NOW - timedelta(days=9):%Y-%m-%dT%H:%M:%SZ}, ends_at = 2090-01-01T00:00:00Z }}]
[board.b.ties]
unit = "day"
"""
KEY = "leaderboard:b:one"


@pytest.fixture(params=[None], ids=["one set"])
def outside(world: World, request: pytest.FixtureRequest) -> Iterator[Outside]:
    """A board in one set; ``every_layout`` makes it each of them."""
    world.configure(CONFIG.replace("LAYOUT", LAYOUTS[request.param or "one set"]))
    with world.outside() as wired:
        yield wired


every_layout = pytest.mark.parametrize("outside", list(LAYOUTS), indirect=True)


def play(outside: Outside, seed: int, count: int = 400, players: int = 150) -> None:
    """Record results; nothing is written to Redis."""
    chance = random.Random(seed)
    results = [
        result(f"m{seed}-{at}", f"p{chance.randrange(players)}", chance.randint(0, 9), NOW - timedelta(hours=at % 99))
        for at in range(count)
    ]
    record(outside.database, "b", [outside.boards["b"]], chunk(results), origin="test")


def season(outside: Outside) -> Season:
    return seasons.find(outside.database, "b", "one", outside.boards["b"])


def expected(outside: Outside) -> dict[bytes, float]:
    """Recount every match by hand, and return the scores."""
    rows = outside.database.run(b"select match_id, player_id, points, played_at from finale.match_result")
    recount = by_hand(result(row["match_id"], bytes(row["player_id"]), row["points"], row["played_at"]) for row in rows)
    assert recount == totals(outside.database, season(outside))
    codec = codec_for(outside.boards["b"], season(outside).bounds)
    return {player: codec.encode(points, to_microseconds(at)) for player, (points, at, _) in recount.items()}


def board(client: Any) -> dict[bytes, float]:
    """Return the members of all shards with their scores; nobody may be in two."""
    rows = [row for key in client.scan_iter("leaderboard:b:one*") for row in client.zrange(key, 0, -1, withscores=True)]
    assert len(dict(rows)) == len(rows)
    return dict(rows)


def check(outside: Outside) -> None:
    """Redis equals a recount of the matches, each player in her shard, and no helper is left behind or wrong."""
    assert board(outside.redis) == expected(outside)
    of = season(outside)
    for shard, key in enumerate(of.live_keys):
        rows = outside.redis.zrange(key, 0, -1, withscores=True)
        assert {of.board.layout.shard(member, score) for member, score in rows} <= {shard}
        if of.board.scale is not None:
            assert recount(outside.redis, key, of.board.scale).wrong == 0
        assert not outside.redis.exists(helper_key(key, "moving"))


def dumped(client: redis.Redis) -> dict[bytes, bytes | None]:
    """Return the whole server at one instant."""
    names = client.keys("*")
    with client.pipeline() as pipe:
        for name in names:
            pipe.dump(name)
        return dict(zip(names, pipe.execute(), strict=True))


def restore(client: redis.Redis, dump: dict[bytes, bytes | None]) -> None:
    """Put the server back to where it was, as a failover to a replica that lags does."""
    with client.pipeline() as pipe:
        pipe.flushall()
        for key, value in dump.items():
            if value is not None:
                pipe.restore(key, 0, value)
        pipe.execute()


@pytest.mark.parametrize("late_batches", [1, 2])
def test_c19_late_writes_in_place_of_a_lost_one_are_found_out(outside: Outside, late_batches: int) -> None:
    """C19: a take-over and its batch are lost in a failover, then the old applier's late ones are taken in its place.

    The running number is then what the ledger recorded, or higher; the token is not, or has a lower fence. The bucket
    is written anew, though nothing of it is pending.
    """
    play(outside, 1)
    apply_pending(outside, season(outside), "first")
    key = season(outside).key
    late = pending.claim(outside.database, key, "old", timedelta(hours=1), every=True)
    marks = apply.claim(outside.redis, KEY, [one.bucket for one in late], [one.fence for one in late])
    before = dumped(outside.redis)
    play(outside, 2)
    apply_pending(outside, season(outside), "new", force=True)
    assert board(outside.redis) == expected(outside)
    restore(outside.redis, before)
    for (lease, mark), more in product(zip(late, marks, strict=True), range(1, late_batches + 1)):
        apply.apply(
            outside.redis,
            KEY,
            bucket=lease.bucket,
            fence=lease.fence,
            number=mark.number + more,
            members=[b"p1"],
            scores=[1.0],
            removed=[],
        )
    assert board(outside.redis) != expected(outside)
    done = apply_pending(outside, season(outside), "next", force=True)
    assert done.lost_buckets > 0
    assert board(outside.redis) == expected(outside)


@every_layout
def test_c19_lost_writes_are_found_where_nothing_is_pending(outside: Outside) -> None:
    """C19: after a rollback the next applier, as of any tick, writes the lost buckets anew, and only those."""
    play(outside, 1)
    apply_pending(outside, season(outside), "one")
    before = dumped(outside.redis)
    play(outside, 2, count=20, players=5)
    apply_pending(outside, season(outside), "one")
    assert apply_pending(outside, season(outside), "one") == Applied()
    restore(outside.redis, before)
    assert board(outside.redis) != expected(outside)
    done = apply_pending(outside, season(outside), "two")
    assert 1 <= done.lost_buckets <= 5
    check(outside)
    outside.redis.flushall()
    assert apply_pending(outside, season(outside), "three").lost_buckets > 40
    check(outside)


@every_layout
def test_no_call_keeps_the_server_for_more_than_some_rows(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many players of a bucket are pending, a script writes so many of them at once, and looks up no more."""
    most, sent = 3, []
    monkeypatch.setattr(spreading, "_AT_ONCE", most)
    real, asked = apply.apply_all, apply.present

    def counted(client: redis.Redis, key: str, batches: Sequence[apply.Batch], **named: Any) -> Any:
        sent.append(sum(len(one.members) + len(one.removed) for one in batches))
        return real(client, key, batches, **named)

    def looked_up(client: redis.Redis, key: str, members: Sequence[bytes]) -> list[bytes]:
        sent.append(len(members))
        return asked(client, key, members)

    monkeypatch.setattr(apply, "apply_all", counted)
    monkeypatch.setattr(apply, "present", looked_up)
    play(outside, 1, players=400)
    apply_pending(outside, season(outside), "one")
    assert max(sent) == most and sum(sent) >= len(expected(outside))
    check(outside)


@every_layout
def test_i6_several_appliers_failing_at_random_come_to_the_recount(
    world: World, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I6: four appliers that take buckets from each other, whose calls are lost before or after they were done, while
    results come in and the server goes back twice: Redis equals the ledger equals a recount.
    """
    chance = random.Random(5)
    real = {name: getattr(apply, name) for name in ("claim", "apply", "apply_all")}

    def faulty(name: str) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            fate = chance.random()
            if fate < 0.03:
                raise FinaleError(f"planned before {name}")
            found = real[name](*args, **named)
            if fate > 0.97:
                raise FinaleError(f"planned after {name}")
            return found

        return call

    def work(number: int) -> int:
        done = 0
        with world.outside() as own:
            for turn in range(25):
                try:
                    done += apply_pending(own, season(own), f"applier {number}", force=turn % 3 == 0).players
                except FinaleError as error:
                    assert "planned" in error.message or "taken" in error.message, error
        return done

    play(outside, 0)
    with monkeypatch.context() as patch, ThreadPoolExecutor(4) as pool:
        for name in real:
            patch.setattr(projection.apply, name, faulty(name))
        patch.setattr(projection, "BATCH", 7)
        working = [pool.submit(work, number) for number in range(4)]
        for seed in range(1, 5):
            play(outside, seed, count=150)
            if seed % 2:
                before = dumped(outside.redis)
            else:
                restore(outside.redis, before)
        assert all(one.result(120) >= 0 for one in working)
    apply_pending(outside, season(outside), "last", force=True)
    assert pending.count(outside.database, season(outside).key) == 0
    check(outside)


@pytest.mark.parametrize("outside", ["by player", "by score"], indirect=True)
def test_what_somebody_else_wrote_is_put_right_with_its_counts(outside: Outside) -> None:
    """A foreign change of a score, of which the counts of bands know nothing: --all puts both right."""
    play(outside, 1)
    apply_pending(outside, season(outside), "one")
    for key in season(outside).live_keys:
        for member in outside.redis.zrange(key, 0, 2):
            outside.redis.zincrby(key, 2**24, member)
    pending.again(outside.database, season(outside).key, range(pending.BUCKETS))
    apply_pending(outside, season(outside), "two", force=True)
    check(outside)


def test_a_player_changes_shards(world: World) -> None:
    """Up and down, again and again: she is in one shard afterwards, and only there."""
    world.configure(CONFIG.replace("LAYOUT", LAYOUTS["by score"] + '\naggregate = "last"'))
    with world.outside() as outside:
        for turn, points in enumerate([1, 50, 3, 2, 29, 30, 0]):
            found = result(f"m{turn}", "she", points, NOW - timedelta(hours=50 - turn))
            record(outside.database, "b", [outside.boards["b"]], chunk([found]), origin="test")
            apply_pending(outside, season(outside), "one")
            held = [key for key in season(outside).live_keys if outside.redis.zscore(key, "she") is not None]
            assert held == [season(outside).live_keys[0 if points < 3 else 1 if points < 30 else 2]]
            assert not list(outside.redis.scan_iter("*moving"))


@pytest.mark.slow
def test_c19_a_failover_that_loses_the_last_writes(outside: Outside, server_factory: ServerFactory) -> None:
    """C19: a Sentinel makes a replica that has not heard of the last seconds the primary: nothing is missing after."""
    with sentinel_pair(server_factory) as watched:
        primary = watched.sentinel.master_for(watched.name)
        there = replace(outside, redis=primary)
        play(outside, 1)
        apply_pending(there, season(outside), "one")
        primary.wait(1, 5_000)
        heard = board(primary)
        watched.cut_off()
        play(outside, 2, count=60, players=20)
        apply_pending(there, season(outside), "one")
        assert board(primary) == expected(outside)
        watched.fail_over()
        assert board(primary) == heard != expected(outside)
        done = apply_pending(there, season(outside), "two")
        assert done.lost_buckets > 0
        assert board(primary) == expected(outside)
        primary.close()


def test_a_removed_player_does_not_come_back_with_a_failover(outside: Outside) -> None:
    """C19: the removal of a player whose only match was taken away is lost, and is done again."""
    play(outside, 1)
    apply_pending(outside, season(outside), "one")
    before = dumped(outside.redis)
    (gone,) = outside.redis.zrange(KEY, 0, 0)
    _remove(outside.database, season(outside).key, gone)
    apply_pending(outside, season(outside), "one")
    assert outside.redis.zscore(KEY, gone) is None
    restore(outside.redis, before)
    apply_pending(outside, season(outside), "one")
    assert outside.redis.zscore(KEY, gone) is None


def _remove(database: Database, key: int, player: bytes) -> None:
    with database.transaction():
        values = {"key": key, "player": player}
        database.run(b"delete from finale.player_total where season_id = %(key)s and player_id = %(player)s", values)
        database.run(b"insert into finale.removed_player values (%(key)s, %(player)s)", values)
        database.run(
            b"insert into finale.pending (season_id, bucket, players)"
            b" values (%(key)s, finale.bucket_of(%(player)s), array[%(player)s]::bytea[])",
            values,
        )
