"""I8 for a season over several sorted sets: one standing whatever happens, all shards proved before one goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from jobs.embedded.postgres_server import PostgresServer
from jobs.embedded.redis_server import RedisServer
from leaderboard.states import Step
from tests.harness.plan import Deed
from tests.harness.run import Harness
from tests.harness.season import CONFIG, Prepared, prepared_season
from tests.jobs.kill.cases import CLOSE, FAULTS, KILLS, SOME, Whole, every, run_again, sampled, undisturbed

SHARDED = (Step.FREEZE, Step.SNAPSHOT, Step.CLEAN)
LAYOUTS = {
    "score": '[board.cup]\nshards = { by = "score", cuts = [15, 40] }',
    "player": '[board.cup]\nshards = { by = "player", count = 3 }',
}


def prepared(
    layout: str, harness: Harness, root: Path, redis_url: str, postgres: PostgresServer, template: str
) -> Iterator[Prepared]:
    folder = root / f"season-{layout}"
    folder.mkdir()
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    config = CONFIG.replace("[board.cup]", LAYOUTS[layout], 1)
    with prepared_season(harness, folder, postgres, template, redis_url, config) as made:
        yield made


@pytest.fixture(scope="module", params=LAYOUTS)
def sharded(
    request: pytest.FixtureRequest,
    harness: Harness,
    private_root: Path,
    shared_redis: RedisServer,
    shared_postgres: PostgresServer,
    migrated_template: str,
) -> Iterator[Prepared]:
    """Season s1 of board cup, over three sorted sets."""
    yield from prepared(request.param, harness, private_root, shared_redis.url, shared_postgres, migrated_template)


@pytest.fixture(scope="module")
def whole(sharded: Prepared) -> Whole:
    """The season closed and cleaned by one undisturbed run."""
    return undisturbed(sharded.world, *CLOSE)


def test_a_sharded_season_ends_as_one_of_a_single_key(season: Prepared, whole: Whole) -> None:
    """I3, I5: the same files to the byte, the same digest, the same grants; three keys, and none left."""
    single = undisturbed(season.world, *CLOSE)
    assert whole.end.files == single.end.files
    ours, theirs = whole.end.seals["cup/s1 standings"], single.end.seals["cup/s1 standings"]
    assert ours["digest"] == theirs["digest"]
    assert len(ours["keys"]) == 3
    assert sum(key["rows"] for key in ours["keys"]) == 2_600 == theirs["keys"][0]["rows"]
    assert whole.end.ledger["grants"] == single.end.ledger["grants"]
    assert not [key for key in whole.end.keys if b"s1" in key]


@pytest.mark.parametrize("step", SHARDED)
def test_i1_i8_killed_or_failing_over_several_keys(whole: Whole, step: Step) -> None:
    """I1, I8: in the steps that know of shards; killed between two removals, the next run goes on with the rest."""
    deeds = (("kill", True),) if step is not Step.CLEAN else SOME
    run_again(whole, sampled(whole.of(step), deeds, 1, f"sharded {step}"))


@pytest.mark.slow
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize(("do", "done"), [*KILLS, *FAULTS])
@pytest.mark.parametrize("step", SHARDED)
def test_i8_every_call_over_several_keys(whole: Whole, step: Step, do: Deed, done: bool) -> None:
    """I8: the same at every outside call of these steps, the deeds shared out as ``every`` does."""
    run_again(whole, every(whole.of(step), do, done))
