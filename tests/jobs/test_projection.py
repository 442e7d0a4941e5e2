"""Redis is a projection of the ledger: whatever is lost, late or doubled, it is what a recount says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from jobs import projection
from jobs.projection import Applied, apply_pending
from jobs.wiring import Outside
from leaderboard.codec import codec_for, to_microseconds
from leaderboard.errors import FinaleError
from leaderboard.keys import helper_key
from leaderboard.season import Season
from ledger import pending, seasons
from ledger.results import record
from live import apply
from tests.ledger.support import by_hand, chunk, result, totals
from tests.support.cli import World
from tests.support.servers import ServerFactory
from tests.support.topologies import sentinel_pair

NOW = datetime.now(UTC).replace(microsecond=0)
CONFIG = f"""
[board.b]
ahead = 0
[board.b.calendar]
seasons = [{{ id = "one", starts_at = {NOW - timedelta(days=9):%Y-%m-%dT%H:%M:%SZ}, ends_at = 2090-01-01T00:00:00Z }}]
[board.b.ties]
unit = "day"
"""
KEY = "leaderboard:b:one"


@pytest.fixture
def outside(world: World) -> Iterator[Outside]:
    world.configure(CONFIG)
    with world.outside() as wired:
        yield wired


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
    return dict(client.zrange(KEY, 0, -1, withscores=True))


def dumped(client: redis.Redis) -> dict[str, bytes]:
    return {key: client.dump(key) for key in (KEY, helper_key(KEY, "applied"))}


def restore(client: redis.Redis, dump: dict[str, bytes]) -> None:
    """Put the server back to where it was, as a failover to a replica that lags does."""
    for key, value in dump.items():
        client.restore(key, 0, value, replace=True)


def test_c19_a_late_write_in_place_of_a_lost_one_is_found_out(outside: Outside) -> None:
    """C19: a take-over and its batch are lost in a failover, then the old applier's late batch is taken in its place.

    The running number is then what the ledger recorded; the token is not. The bucket is written anew, though nothing
    of it is pending.
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
    for lease, mark in zip(late, marks, strict=True):
        apply.apply(
            outside.redis,
            KEY,
            bucket=lease.bucket,
            fence=lease.fence,
            number=mark.number + 1,
            members=[b"p1"],
            scores=[1.0],
            removed=[],
        )
    assert board(outside.redis) != expected(outside)
    done = apply_pending(outside, season(outside), "next", force=True)
    assert done.lost_buckets > 0
    assert board(outside.redis) == expected(outside)


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
    assert board(outside.redis) == expected(outside)
    outside.redis.flushall()
    assert apply_pending(outside, season(outside), "three").lost_buckets > 40
    assert board(outside.redis) == expected(outside)


def test_i6_several_appliers_failing_at_random_come_to_the_recount(
    world: World, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I6: four appliers that take buckets from each other, whose calls are lost before or after they were done, while
    results come in and the server goes back twice: Redis equals the ledger equals a recount.
    """
    chance = random.Random(5)
    real = {name: getattr(apply, name) for name in ("claim", "apply")}

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
                # One instant, as a replica has it: both keys from one version.
                with outside.redis.pipeline() as pipe:
                    before = dict(zip((KEY, helper_key(KEY, "applied")), _dumps(pipe), strict=True))
            else:
                with outside.redis.pipeline() as pipe:
                    for key, value in before.items():
                        if value:
                            pipe.restore(key, 0, value, replace=True)
                    pipe.execute()
        assert all(one.result(120) >= 0 for one in working)
    apply_pending(outside, season(outside), "last", force=True)
    assert pending.count(outside.database, season(outside).key) == 0
    assert board(outside.redis) == expected(outside)


def _dumps(pipe: Any) -> list[bytes | None]:
    pipe.dump(KEY)
    pipe.dump(helper_key(KEY, "applied"))
    found: list[bytes | None] = pipe.execute()
    return found


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
