"""I8, I9 where Redis or totals are put right: killed, failing or taken over anywhere in it, it ends the same."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
import redis

from leaderboard.states import Step
from tests.harness.plan import Deed, Plan
from tests.harness.season import CONFIG, Prepared, World
from tests.jobs.kill.cases import (
    CLOSE,
    FAULTS,
    HELD,
    KILLS,
    LOST,
    Whole,
    every,
    expire,
    outside_transactions,
    run_again,
    sample,
    sampled,
    taken_over_at,
    undisturbed,
)

LIVE_KEY = "leaderboard:cup:s1"
REPAIRS = CONFIG.replace("[board.cup]\n", "[board.cup]\nreconcile = { repair = 10 }\n", 1)
BY_HAND = ("reconcile", "cup", "s1", "--repair", "--json")
ANEW = ("reconcile", "cup", "s1", "--deep", "--repair", "--json")
DRIFTING = ("player 00007", "player 01234", "player 00042", "intruder")


def _drift(world: World) -> None:
    done = world.run(*CLOSE, "--until", "freeze")
    assert done.code == 0, done
    with redis.Redis.from_url(world.redis_url) as client:
        client.zrem(LIVE_KEY, *DRIFTING[:2])
        client.zincrby(LIVE_KEY, 2**24, DRIFTING[2])
        client.zadd(LIVE_KEY, {DRIFTING[3]: 5 * 2**24})


def _break_totals(world: World) -> None:
    with psycopg.connect(world.ledger_url, autocommit=True) as connection:
        connection.execute("update finale.player_total set points = 900 where player_id = 'player 00100'")
        connection.execute("delete from finale.player_total where player_id = 'player 00200'")
        connection.execute(
            "insert into finale.player_total (season_id, player_id, points, reached_at, matches, version)"
            " select season_id, 'nobody', 5, reached_at, 1, 1 from finale.player_total"
            " where player_id = 'player 00100'"
        )


@pytest.fixture(scope="module")
def frozen(season: Prepared) -> Iterator[Prepared]:
    """The season frozen; then four players were lost, changed or nobody's."""
    with season.after(_drift, config=REPAIRS) as found:
        yield found


@pytest.fixture(scope="module")
def drifting(frozen: Prepared) -> Whole:
    """Closed, and so put right within the bound."""
    return undisturbed(frozen.world, *CLOSE)


@pytest.fixture(scope="module")
def by_hand(frozen: Prepared) -> Whole:
    """Put right by hand."""
    return undisturbed(frozen.world, *BY_HAND)


@pytest.fixture(scope="module")
def snapshotted(frozen: Prepared) -> Iterator[Whole]:
    """Put right by hand after the snapshot, which is given up."""
    with frozen.after(lambda world: world.run(*CLOSE, "--until", "snapshot")) as found:
        yield undisturbed(found.world, *BY_HAND)


@pytest.fixture(scope="module")
def anew(frozen: Prepared) -> Iterator[Whole]:
    """Totals that the results do not make, one of nobody, one lost: counted anew, and Redis follows."""
    with frozen.after(_break_totals) as found:
        yield undisturbed(found.world, *ANEW)


def test_an_undisturbed_repair_ends_where_it_should(drifting: Whole, by_hand: Whole, anew: Whole) -> None:
    """Put right once, told in the seal, everybody paid by the ledger; and by hand the same scores and totals."""
    (repaired,) = drifting.end.seals["cup/s1 standings"]["repaired"]
    assert repaired["players"] == 4
    assert len(drifting.end.ledger["payable"]) > 2_600
    assert not drifting.end.ledger["pending"]
    assert len(by_hand.end.keys[LIVE_KEY.encode()]) == 2_600
    assert anew.end.keys[LIVE_KEY.encode()] == by_hand.end.keys[LIVE_KEY.encode()]
    assert anew.end.ledger["totals"] == by_hand.end.ledger["totals"]
    assert not anew.end.ledger["pending"]


def test_i4_i8_killed_in_a_repair_it_ends_the_same(drifting: Whole) -> None:
    """I4, I8: killed before or after a call of comparison, report or repair, and run again: same seal, same grants."""
    run_again(drifting, sampled(drifting.of(Step.RECONCILE), KILLS, 2, "repair"))


@pytest.mark.slow
def test_i4_i8_failing_in_a_repair_it_ends_the_same(drifting: Whole) -> None:
    """I4, I8, C21: a call fails or times out, done or not."""
    run_again(drifting, sampled(drifting.of(Step.RECONCILE), FAULTS[:1] + FAULTS[3:], 1, "repair"))


@pytest.mark.slow
def test_i8_killed_in_a_repair_by_hand_it_ends_the_same(by_hand: Whole) -> None:
    """I8: who was made pending by a repair that died is written by the next, though nobody seems to drift then."""
    writes = [call for call in by_hand.calls if call.text.startswith(("EVALSHA apply", "insert into finale.pending"))]
    run_again(by_hand, [Plan(writes[0], "kill", done=True), Plan(writes[-1], "kill", done=False)])
    run_again(by_hand, sampled(by_hand.calls, KILLS, 1, "by hand"))


def test_i8_killed_where_a_snapshot_is_given_up_it_ends_the_same(snapshotted: Whole, by_hand: Whole) -> None:
    """I8: frozen again before anything is written; killed before or after, the next repair does the rest."""
    assert snapshotted.end.keys[LIVE_KEY.encode()] == by_hand.end.keys[LIVE_KEY.encode()]
    calls = iter(snapshotted.calls)
    next(call for call in calls if call.text.startswith("insert into finale.journal"))
    commit = next(call for call in calls if call.text == "COMMIT")
    run_again(snapshotted, [Plan(commit, "kill", done=False), Plan(commit, "kill", done=True)])


@pytest.mark.slow
def test_i8_killed_while_totals_are_counted_anew_it_ends_the_same(anew: Whole) -> None:
    """I8: the totals change in one transaction; killed after it, Redis follows with the next run."""
    commits = [call for call in anew.calls if call.text == "COMMIT"]
    applies = [call for call in anew.calls if call.text.startswith("EVALSHA apply")]
    run_again(anew, [Plan(applies[0], "kill", done=False), Plan(commits[len(commits) // 2], "kill", done=True)])
    run_again(anew, sampled(anew.calls, KILLS, 1, "anew"))


def test_i9_taken_over_in_a_repair(drifting: Whole) -> None:
    """I1, I9: a runner hangs in a repair past its lease; another does it all; the first then changes nothing."""
    calls = outside_transactions(drifting.of(Step.RECONCILE))
    applies = [call for call in calls if call.text.startswith("EVALSHA apply")]
    taken_over_at(drifting, [applies[0], *sample(calls, 1, "repair")], fence=2)


def test_i9_two_repairers_at_once_are_one(by_hand: Whole) -> None:
    """I9: one works; the other is refused, or finds that nothing is left to do."""
    with by_hand.worlds() as world, world.running(*BY_HAND) as first, world.running(*BY_HAND) as second:
        codes = sorted((first.finish().code, second.finish().code))
        assert codes in ([0, 0], [0, HELD])
        assert not world.end_state().differs(by_hand.end)


def test_i9_a_late_batch_of_a_dead_repairer_is_refused(by_hand: Whole) -> None:
    """I9: it has read old totals; meanwhile they changed and another has written them; the fence refuses its batch."""
    batch = next(call for call in by_hand.calls if call.text.startswith("EVALSHA apply"))
    with by_hand.worlds() as world, world.running(*BY_HAND, plan=Plan(batch, "pause", done=False)) as first:
        first.wait_until_paused()
        expire(world)
        with psycopg.connect(world.ledger_url, autocommit=True) as connection:
            changed = "update finale.player_total set points = points + 7 where player_id = any(%s)"
            connection.execute(changed, [[name.encode() for name in DRIFTING]])
        second = world.run(*BY_HAND)
        assert second.code == 0, second
        before = world.end_state()
        outcome = first.go_on().finish()
        assert outcome.code == LOST, outcome
        assert not world.end_state().differs(before)
        assert world.run("reconcile", "cup", "s1").code == 0


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(("do", "done"), KILLS)
def test_i8_every_call_of_a_repair(drifting: Whole, by_hand: Whole, anew: Whole, do: Deed, done: bool) -> None:
    """I8: the same at every single call, as ``every`` shares it out."""
    run_again(drifting, every(drifting.of(Step.RECONCILE), do, done))
    run_again(by_hand, every(by_hand.calls, do, done))
    run_again(anew, every(anew.calls, do, done))


@pytest.mark.slow
@pytest.mark.timeout(7_200)
def test_i9_taken_over_at_any_call_of_a_repair(drifting: Whole) -> None:
    """I9: the same at every single call that is not within a transaction."""
    taken_over_at(drifting, outside_transactions(drifting.of(Step.RECONCILE)), fence=2)
