"""I5, I8, I9 where outside facts decide: grants killed at any call, approved in between, by two runners at once."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest

from leaderboard.states import Step
from tests.harness.plan import Deed, Plan
from tests.harness.season import PLAYERS, Prepared, World
from tests.jobs.kill.cases import CLOSE, FAULTS, KILLS, SOME, Whole, every, run_again, sampled, undisturbed

TABLE = """
version = 1
ties = "split"
exclude = [{ file = "bans.csv" }]
eligible = { min_matches = 2, sql = "select convert_from(player_id, 'UTF8') as player_id from finale.player_total" }
[[rule]]
name = "top"
rank = "1-100"
grant = { gems = 1001, chests = 1 }
[[rule]]
name = "top third"
percentile = "33.3"
grant = { gems = 10 }
[[rule]]
name = "took part"
all = true
grant = { gems = 3 }
"""
APPROVE = ("rewards", "approve", "cup", "s1")
LOST = 21


def _with_facts(world: World, head: str = "") -> None:
    (world.folder / "cup.toml").write_text(head + TABLE)
    banned = [f"player {number:05d},bot" for number in range(0, PLAYERS, 7)]
    (world.folder / "bans.csv").write_text("\n".join(("player_id,reason", *banned, "")))


def _seal(world: World) -> None:
    _with_facts(world)
    sealed = world.run(*CLOSE, "--until", "seal")
    assert sealed.code == 0, sealed


def _approve(world: World) -> None:
    _with_facts(world, 'approval = "manual"\n')
    assert world.run(*CLOSE).code == 22
    told = world.run("rewards", "preview", "cup", "s1", "--json")
    assert world.run(*APPROVE, json.loads(told.out)["hash"], "--because", "seen").code == 0


@pytest.fixture(scope="module")
def whole(season: Prepared) -> Iterator[Whole]:
    """The season sealed, then rewarded by a table that asks for facts and closed, by one undisturbed run."""
    with season.after(_seal) as sealed:
        yield undisturbed(sealed.world, *CLOSE)


@pytest.fixture(scope="module")
def waiting(season: Prepared) -> Iterator[Whole]:
    """The season waited for an approval, which was given; then it is closed by one undisturbed run."""
    with season.after(_approve) as approved:
        yield undisturbed(approved.world, *CLOSE)


def test_an_undisturbed_run_seals_the_facts(whole: Whole) -> None:
    """What the others are compared with: three files of facts, each named by the seal, nothing staged."""
    facts = sorted(path for path in whole.end.files if path.startswith("facts/"))
    assert [path.rpartition("/")[2].partition("-")[0] for path in facts] == ["eligible", "excluded", "matches"]
    named = whole.end.seals["cup/s1 grants"]["facts"]
    assert {whole.end.files[path] for path in facts} == {file["sha256"] for file in named}
    assert 0 < len(whole.end.ledger["grants"]) < 2 * PLAYERS
    assert not whole.end.staged()


def test_i5_i8_killed_while_granting_it_ends_the_same(whole: Whole) -> None:
    """I5, I8, C78: killed before or after a call of the reward step: each grant once, the same facts, nothing left."""
    run_again(whole, sampled(whole.of(Step.REWARD), KILLS, 2, "granting"))


@pytest.mark.slow
def test_i5_i8_failing_while_granting_it_ends_the_same(whole: Whole) -> None:
    """I5, I8, C65: a call fails or times out, done or not, and the next run goes on."""
    run_again(whole, sampled(whole.of(Step.REWARD), FAULTS[1:3], 1, "granting"))


@pytest.mark.slow
def test_i5_i8_after_an_approval(waiting: Whole) -> None:
    """I5, I8: what was approved is paid, whatever happens to the run that pays it."""
    run_again(waiting, sampled(waiting.of(Step.REWARD), SOME, 1, "approved"))


@pytest.mark.parametrize("text", ["end of copy", "link seals/cup/s1/grants.json"])
def test_i9_a_runner_that_slept_while_granting_changes_nothing(whole: Whole, text: str) -> None:
    """I5, I9: it sleeps within the load, or before the seal's put; another closes; it then learns that it lost."""
    call = next(call for call in whole.of(Step.REWARD) if call.text == text)
    with whole.worlds() as world, world.running(*CLOSE, plan=Plan(call, "pause", done=False)) as first:
        first.wait_until_paused()
        with psycopg.connect(world.ledger_url, autocommit=True) as connection:
            connection.execute("update finale.lease set expires_at = clock_timestamp() - interval '1 second'")
            if text == "end of copy":
                # Within its transaction it holds the lease's row: PostgreSQL ends it, as it does one that hangs.
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where datname = current_database() and state like 'active' and query ilike 'copy%'"
                )
        second = world.run(*CLOSE)
        assert second.code == 0, second
        outcome = first.go_on().finish()
        assert outcome.code in {LOST, 10, 12}, outcome
        assert not world.end_state().without_staging().differs(whole.end)


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(("do", "done"), [*KILLS, *FAULTS])
def test_i8_every_call_while_granting(whole: Whole, waiting: Whole, do: Deed, done: bool) -> None:
    """I8: the same, shared out, at every call of the reward step, without and with an approval."""
    for each in (whole, waiting):
        run_again(each, every(each.of(Step.REWARD), do, done))
