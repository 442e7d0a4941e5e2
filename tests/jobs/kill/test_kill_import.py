"""I6, I8: an import killed or failing at any outside call: the next one leaves Redis, ledger and a recount equal."""

from __future__ import annotations

import csv
import random
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import psycopg
import pytest

from tests.harness.plan import Call, Deed, Plan
from tests.harness.season import STARTS, Prepared, write_results
from tests.jobs.kill.cases import (
    CLOSE,
    FAULTS,
    KILLS,
    SEED,
    Whole,
    every,
    outside_transactions,
    run_again,
    sample,
    sampled,
    undisturbed,
)
from tests.support.servers import ServerFactory
from tests.support.topologies import sentinel_pair

LIVE_KEY = b"leaderboard:cup:s1"
PACKED = 2**24


@pytest.fixture(scope="module")
def file(season: Prepared) -> Path:
    """A second file for the season: new matches of 100 of its players, in two chunks or three, with repeated lines."""
    path = season.root / "more.csv"
    write_results(path, 100, seed=7, matches="n")
    return path


@pytest.fixture(scope="module")
def whole(season: Prepared, file: Path) -> Whole:
    """The file imported by one undisturbed run."""
    return undisturbed(season.world, "results", "import", str(file), "--board", "cup")


def test_an_import_makes_redis_ledger_and_recount_equal(season: Prepared, file: Path, whole: Whole) -> None:
    """I6: what the other runs are compared with: each result once, and Redis has what both files come to."""
    totals = _recount(season.root / "results.csv", file)
    assert {bytes(row["player_id"]): (row["points"], row["reached_at"]) for row in whole.end.ledger["totals"]} == totals
    assert dict(whole.end.keys[LIVE_KEY]) == {player: _score(*total) for player, total in totals.items()}
    assert not whole.end.ledger["pending"]


def test_i8_killed_anywhere_the_next_import_mends_it(whole: Whole) -> None:
    """I6, I8: killed before or after a call, run again: each result counts once, nothing is missing in Redis."""
    run_again(whole, sampled(whole.calls, KILLS, 2, "import"))


@pytest.mark.slow
def test_i8_failing_anywhere_the_next_import_mends_it(whole: Whole) -> None:
    """I6, I8: a call fails or times out, done or not: told in an operator's words, and mended by the next import."""
    run_again(whole, sampled(whole.calls, FAULTS, 1, "import"))


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(("do", "done"), [*KILLS, *FAULTS])
def test_i8_every_kind_of_call(whole: Whole, do: Deed, done: bool) -> None:
    """I6, I8: the same, shared out, at the first and the last of all calls that say the same."""
    run_again(whole, every(_ends(whole.calls), do, done))


def test_i9_an_applier_that_slept_until_the_season_was_cleaned(whole: Whole) -> None:
    """I1, I9: it holds its buckets while the season is closed and cleaned; then it writes nothing, and leaves nothing.

    The freeze has taken over its buckets and written what it should have; its claim in Redis went with the live key.
    """
    claimed = next(number for number, call in enumerate(whole.calls) if call.text.startswith("EVALSHA claim"))
    applying = outside_transactions(whole.calls[claimed - 1 : claimed + 20])
    for call in [whole.calls[claimed], *sample(applying, 3, "sleeping applier")]:
        with whole.worlds() as world, world.running(*whole.argv, plan=Plan(call, "pause", done=False)) as applier:
            applier.wait_until_paused()
            closed = world.run(*CLOSE)
            assert closed.code == 0, closed
            before = world.end_state()
            assert LIVE_KEY not in before.keys
            outcome = applier.go_on().finish()
            assert outcome.code == 0, f"{call}: {outcome}"
            after = world.end_state()
            assert after.keys == before.keys, call
            assert after.files == before.files
            assert not after.ledger["pending"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_c19_i6_exactly_once_under_violence(season: Prepared, server_factory: ServerFactory) -> None:
    """I6, I8, I9, C19: Redis, ledger and a recount of the files agree, whatever happened to those who wrote.

    Importers repeat every file with appliers beside them, all of them killed at random; failovers lose the last writes;
    the batch of an applier that slept through it all arrives in the end.
    """
    chance = random.Random(SEED)
    files = [season.root / f"violence{number}.csv" for number in range(3)]
    write_results(files[0], 150, seed=0, matches="v")
    write_results(files[1], 150, seed=1, matches="w")
    heading, *lines = files[0].read_text().splitlines()
    lines += files[1].read_text().splitlines()[1:]
    files[2].write_text("\n".join([heading, *chance.sample(lines, len(lines))]))  # all of it again, in another order
    with season.world() as here, sentinel_pair(server_factory) as watched:
        at = watched.sentinel.sentinels[0].connection_pool.connection_kwargs
        world = replace(here, redis_url=f"redis+sentinel://{at['host']}:{at['port']}/{watched.name}")
        importing = [("results", "import", str(path), "--board", "cup") for path in files]
        calls = world.run(*importing[0]).calls
        sends = next(call for call in calls if call.text.startswith("EVALSHA apply"))
        with world.running(*importing[1], plan=Plan(sends, "pause", done=False)) as sleeper:
            sleeper.wait_until_paused()
            for turn in range(6):
                if turn in (1, 4):
                    watched.cut_off()
                commands = [*importing, ("results", "apply", "cup", "s1"), ("results", "apply", "cup", "s1")]
                plans = [Plan(call, "kill", done=chance.random() < 0.5) for call in chance.sample(calls, 4)]
                with ExitStack() as stack:
                    beginning = zip(chance.sample(commands, 4), plans, strict=True)
                    for one in [stack.enter_context(world.running(*argv, plan=plan)) for argv, plan in beginning]:
                        one.finish()
                if turn in (1, 4):
                    watched.fail_over()
            for argv in [*importing, ("results", "apply", "cup", "s1")]:
                outcome = world.run(*argv)
                assert outcome.code == 0, outcome
            sleeper.go_on().finish()
        primary = watched.sentinel.master_for(watched.name)
        with primary, psycopg.connect(world.ledger_url) as ledger:
            board = dict(primary.zrange(LIVE_KEY, 0, -1, withscores=True))
            kept = ledger.execute("select player_id, points, reached_at from finale.player_total").fetchall()
            waiting = ledger.execute("select count(*) from finale.pending").fetchall()
    totals = _recount(season.root / "results.csv", *files)
    assert {bytes(player): (points, reached_at) for player, points, reached_at in kept} == totals
    assert board == {player: _score(*total) for player, total in totals.items()}
    assert waiting == [(0,)]


def _ends(calls: tuple[Call, ...]) -> list[Call]:
    last = {(call.step, call.kind, call.text): call.nth for call in calls}
    return [call for call in calls if call.nth in (1, last[call.step, call.kind, call.text])]


def _recount(*files: Path) -> dict[bytes, tuple[int, datetime]]:
    """Sum up the files without any of Finale: every match of a player once; held since the last of them."""
    matches = {
        (row["player_id"].encode(), row["match_id"]): (int(row["points"]), datetime.fromisoformat(row["played_at"]))
        for path in files
        for row in csv.DictReader(path.read_text().splitlines())
    }
    totals: dict[bytes, tuple[int, datetime]] = {}
    for (player, _), (points, played_at) in matches.items():
        before, reached_at = totals.get(player, (0, played_at))
        totals[player] = (before + points, max(reached_at, played_at))
    return totals


def _score(points: int, reached_at: datetime) -> float:
    minutes = int((reached_at - STARTS).total_seconds()) // 60
    return float(points * PACKED + PACKED - 1 - minutes)
